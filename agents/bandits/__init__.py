"""Learners, explorers, discounters, pumpers: agents of CogBench's tasks and reversals.

Users import it through `knownminds.agents`. It imports the core of this floor.
"""
