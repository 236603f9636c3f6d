"""Measures of causal judgements, their alignment, and least-squares fits.

Imported through `knownminds.inference`; itself imports the core of this floor and fits.
"""
