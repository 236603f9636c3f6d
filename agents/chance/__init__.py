"""Agents that state outcomes of chance: samplers with six biases, and weighers of evidence.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
