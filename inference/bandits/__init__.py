"""Measures of the seven tasks of CogBench.

Imported through `knownminds.inference`; itself imports the core of this floor.
"""
