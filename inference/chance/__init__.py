"""Revealed and stated beliefs about games of chance: distances, biases, fits.

Users import it through `knownminds.inference`. It imports the core of this floor and fits.
"""
