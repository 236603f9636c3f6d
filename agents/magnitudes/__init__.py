"""Observers that estimate magnitudes: linear, Bayesian, curved, Kalman, cue combiners and weighers.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
