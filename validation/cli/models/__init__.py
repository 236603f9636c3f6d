"""Language models: what they cost, runs, revealed beliefs, known minds served, the doctor.

Imported by the command line alone; each file is one command and imports what it needs when called.
"""
