"""Decisions between stated offers: risky and ambiguous gambles, and games of sharing.

Imported through `knownminds.environments`; itself imports the core, record and words.
"""
