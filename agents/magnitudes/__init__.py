"""Observers that estimate magnitudes: linear, Bayesian, curved, Kalman, and combiners of cues.

Users import it through `knownminds.agents`. It imports the core of this floor.
"""
