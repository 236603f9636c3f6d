"""Minds that tell outcomes of chance: samplers with six biases, and weighers of what is told.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
