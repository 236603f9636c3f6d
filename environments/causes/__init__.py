"""Inferences on causal graphs: colliders first, networks of any shape, and tables of counts.

Users import it through `knownminds.environments`. It imports the core, record and words.
"""
