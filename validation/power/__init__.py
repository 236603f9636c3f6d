"""Does a design detect an effect, and does a measure mean what its name says?

Imported by the command line, reports, gates and costs; itself imports engine and pages.
"""
