"""Tests of coherence between beliefs and decisions.

Users import it through `knownminds.inference`. It imports the core of this floor.
"""
