"""Magnitudes estimated from text and pictures: markers, ratios, mazes, durations.

Imported through `knownminds.environments`; itself imports the core, record and words.
"""
