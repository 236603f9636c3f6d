"""From one plain definition of a trial to its likelihood, with the gradient, and its simulation.

Read in this order: `model` (what an author writes), `definition` (laws and parameters), `symbols`
(numbers that plain NumPy code runs on, and their slopes), `tracing` (models and worlds run on
them), `printing`, `likelihood` and `simulation` (their text), `cache` (that text as functions),
`errors` and `javascript`. Imported through `knownminds.agents`; itself imports the core of this
floor.
"""
