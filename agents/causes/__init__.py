"""Causal reasoners: noisy-OR, mutation sampler, logistic and associative.

Users import it through `knownminds.agents`. It imports the core of this floor.
"""
