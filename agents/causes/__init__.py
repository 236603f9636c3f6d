"""Causal reasoners: noisy-OR, mutation sampler, logistic and associative.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
