"""Groups: their density and its sampling, crossed levels, formulas, and subjects that are left out.

Users import it through `knownminds.inference`. It imports fits, and from posteriors what judges
draws.
"""
