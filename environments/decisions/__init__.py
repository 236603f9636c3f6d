"""Decisions between stated offers: risky and ambiguous gambles, and games of sharing.

Users import it through `knownminds.environments`. It imports the core, record and words.
"""
