"""Prompts and answers: templates, parsers, names, told histories, transcripts.

Imported by every family's environments; itself imports the environment's contract and designs.
"""
