"""Agents that are there to be beaten: chance, habit, win-stay-lose-shift.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
