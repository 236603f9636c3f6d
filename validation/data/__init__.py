"""What a user's data say: fits, scores, exchange of files.

Imported by the command line and reports; itself imports engine, pages, recovery and causes.
"""
