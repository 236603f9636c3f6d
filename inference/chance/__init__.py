"""Revealed and stated beliefs about games of chance: distances, biases, fits.

Imported through `knownminds.inference`; itself imports the core of this floor and fits.
"""
