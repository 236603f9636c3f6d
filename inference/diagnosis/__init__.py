"""Tests of coherence between beliefs and decisions.

Imported through `knownminds.inference`; itself imports the core of this floor.
"""
