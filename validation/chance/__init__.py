"""Revealed beliefs of a language model and their page.

Imported by the command line and reports; itself imports engine, pages and costs.
"""
