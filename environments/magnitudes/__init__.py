"""Magnitudes estimated from text and pictures: markers, ratios, mazes, durations.

Users import it through `knownminds.environments`. It imports the core, record and words.
"""
