"""Deciders with known utilities, and deciders that each break one rule of coherence.

Users import it through `knownminds.agents`. It imports the core of this floor.
"""
