"""Inferences on causal graphs of three variables, colliders first.

Imported through `knownminds.environments`; itself imports the core, record and words.
"""
