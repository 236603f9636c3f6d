"""Measures of decisions between stated offers.

Users import it through `knownminds.inference`. It imports the core of this floor.
"""
