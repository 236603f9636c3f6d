"""Do known minds come through words as they are?

Imported by the command line and reports; itself imports engine and pages.
"""
