"""The trial record: `Trials`, its schema, and the rates of its outcomes.

Every floor imports it. It imports words and the environment's contract.
"""
