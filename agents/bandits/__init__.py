"""Learners, explorers, discounters, pumpers: agents of CogBench's tasks and reversals.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
