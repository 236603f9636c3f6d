"""The battery of coherence tests, its page and its audits.

Imported by the command line and reports; itself imports engine and pages.
"""
