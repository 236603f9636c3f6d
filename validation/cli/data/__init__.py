"""A user's data: simulated, fitted, scored, moved in and out.

Imported by the command line alone; each file is one command and imports what it needs when called.
"""
