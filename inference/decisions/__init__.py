"""Measures of decisions between stated offers.

Imported through `knownminds.inference`; itself imports the core of this floor.
"""
