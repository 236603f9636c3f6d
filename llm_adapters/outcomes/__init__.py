"""Exact probabilities of whole outcome strings.

Imported by providers that give token probabilities, and by inference's and validation's chance.
"""
