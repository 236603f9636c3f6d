"""The trial record: `Trials`, its schema, and the rates of its outcomes.

Imported by every floor; itself imports words and the environment's contract.
"""
