"""Measures and fits of estimated magnitudes.

Imported through `knownminds.inference`; itself imports the core of this floor and fits.
"""
