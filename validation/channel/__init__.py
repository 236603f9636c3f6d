"""Do known agents come through words as they are?

Imported by the command line and reports; itself imports engine and pages.
"""
