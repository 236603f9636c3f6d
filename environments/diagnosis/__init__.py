"""Beliefs and decisions over Bayesian networks with exact posteriors.

Imported through `knownminds.environments`; itself imports the core, record and words.
"""
