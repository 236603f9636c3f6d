"""Inferences on causal graphs, colliders first; networks of any shape, and tables of counts.

Imported through `knownminds.environments`; itself imports the core, record and words.
"""
