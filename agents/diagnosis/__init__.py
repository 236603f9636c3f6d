"""Deciders with known utilities, and violators of coherence with one dial each.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
