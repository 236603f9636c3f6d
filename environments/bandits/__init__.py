"""The seven tasks of CogBench (bandits, two-step, discounting, horizon, balloons, urns), reversals.

Imported through `knownminds.environments`; itself imports the core, record and words.
"""
