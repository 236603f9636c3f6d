"""Agents that serve as a baseline: chance, habit, win-stay-lose-shift.

Users import it through `knownminds.agents`. It imports the core of this floor.
"""
