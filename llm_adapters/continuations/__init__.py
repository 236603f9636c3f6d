"""Exact probabilities of the texts that may continue a prompt, each as a whole.

Imported by providers that give token probabilities, and by inference's and validation's chance.
"""
