"""Beliefs and decisions over Bayesian networks with exact posteriors.

Users import it through `knownminds.environments`. It imports the core, record and words.
"""
