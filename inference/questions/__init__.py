"""What to ask next, and when to stop: designs that go by the answers so far.

Imported through `knownminds.inference`; itself imports fits and posteriors.
"""
