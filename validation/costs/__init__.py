"""What asking language models costs, what they are connected by, and how a run is reported.

Imported by the command line and reports; itself imports engine, pages and power.
"""
