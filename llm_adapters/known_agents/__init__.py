"""Agents in the language model's chair: synthetic, replayed, faulty, and served at an address.

Imported by name when needed; the only room of this floor that sees agents.
"""
