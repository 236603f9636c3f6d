"""Samplers of beliefs about games of chance, with six biases.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
