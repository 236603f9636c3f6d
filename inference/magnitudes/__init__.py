"""Measures and fits of estimated magnitudes.

Users import it through `knownminds.inference`. It imports the core of this floor and fits.
"""
