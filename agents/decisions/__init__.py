"""Deciders between stated offers: expected value, prospect theory, ambiguity, social preferences.

Users import it through `knownminds.agents`. It imports the core of this floor.
"""
