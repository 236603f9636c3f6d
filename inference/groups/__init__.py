"""The density of a group: its deviations, compiled code and NUTS, and PyMC's graph of it.

The posteriors import it. It imports fits, and from posteriors the parts of a group.
"""
