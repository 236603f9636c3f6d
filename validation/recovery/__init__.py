"""Are parameters, and models, recovered from a design?

Imported by the command line, reports and gates; itself imports engine and pages.
"""
