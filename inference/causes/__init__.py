"""Measures of causal judgements, their alignment, and least-squares fits.

Users import it through `knownminds.inference`. It imports the core of this floor and fits.
"""
