"""Trials in the forms of others: Psych-101 texts, Psych-DS folders, Gymnasium's interface.

The commands that move data import it. It imports the core, never a family.
"""
