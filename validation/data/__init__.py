"""What a user's data say: fits, scores, phenotypes, exchange of files.

Imported by the command line and reports; itself imports engine, pages, recovery and causes.
"""
