"""Posteriors of one subject and of a group, their sampling, and comparison of models.

Users import it through `knownminds.inference`. It imports fits.
"""
