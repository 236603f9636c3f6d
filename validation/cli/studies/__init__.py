"""Studies before and of data: recovery, calibration, power, audits, their reports, gates.

Imported by the command line alone; each file is one command and imports what it needs when called.
"""
