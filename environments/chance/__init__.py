"""Games of chance with exact probabilities: dice, coins, choice, preference.

Users import it through `knownminds.environments`. It imports the core, record and words.
"""
