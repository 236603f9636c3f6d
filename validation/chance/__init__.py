"""Revealed beliefs of a language model and their page."""
