"""The seven tasks of CogBench (bandits, two-step, discounting, horizon, balloons, urns), two more.

Imported through `knownminds.environments`; itself imports the core, record and words.
"""
