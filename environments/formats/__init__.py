"""Trials in the forms of others: Psych-101 texts, Psych-DS folders, Gymnasium's interface.

Imported by the commands that move data; itself imports the core, never a family.
"""
