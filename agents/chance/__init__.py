"""Agents that state outcomes of chance: samplers with six biases, and weighers of evidence.

Users import it through `knownminds.agents`. It imports the core of this floor.
"""
