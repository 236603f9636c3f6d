"""Posteriors of one subject and of a group, their sampling, and comparison of models.

Imported through `knownminds.inference`; itself imports fits.
"""
