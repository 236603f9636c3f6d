"""Which question to ask next, and when to stop: designs that use the answers so far.

Users import it through `knownminds.inference`. It imports fits and posteriors.
"""
