"""The seven tasks of CogBench (bandits, two-step, discounting, horizon, balloons, urns), two more.

Users import it through `knownminds.environments`. It imports the core, record and words.
"""
