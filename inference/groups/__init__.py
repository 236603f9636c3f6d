"""The density of a group: its deviations, compiled code and NUTS, and PyMC's graph of it.

Imported by posteriors; itself imports fits, and from posteriors what a group is made of.
"""
