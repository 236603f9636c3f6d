"""The set of magnitude runs and its page.

Imported by the command line and reports; itself imports engine and pages.
"""
