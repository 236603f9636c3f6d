"""Profiles of causal judgements and their page.

Imported by data, the command line and reports; itself imports pages.
"""
