"""Observers that estimate magnitudes: linear, Bayesian, Kalman, cue combiners.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
