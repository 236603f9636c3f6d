"""Prompts and answers: templates, parsers, names, retold histories, transcripts.

Every family's environments import it. It imports the environment's contract and designs.
"""
