"""Experiments, models and measures that grow on knownminds, beyond the five papers.

Each room has an experiment or a family of them, with words, models and measures. `members.toml`
lists them all; a room imports knownminds and no other room.
"""
