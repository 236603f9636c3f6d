"""One file per provider of language models, each behind `Adapter`, each with its extra.

Imported by name when needed; itself imports the contract and continuations.
"""
