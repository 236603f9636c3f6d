"""Posteriors of single subjects, ArviZ's objects of all posteriors, and comparison of models.

Users import it through `knownminds.inference`. It imports fits, and from groups what samples.
"""
