"""Learners, explorers, discounters, pumpers: the agents of the seven tasks of CogBench.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
