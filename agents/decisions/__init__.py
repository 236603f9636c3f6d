"""Deciders between stated offers: expected value, prospect theory, ambiguity, social preferences.

Imported through `knownminds.agents`; itself imports the core of this floor.
"""
