"""Games of chance with exact probabilities: dice, coins, choice, preference.

Imported through `knownminds.environments`; itself imports the core, record and words.
"""
