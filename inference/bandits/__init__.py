"""Measures of the seven tasks of CogBench.

Users import it through `knownminds.inference`. It imports the core of this floor.
"""
