"""From one plain definition of a trial to its likelihood, with the gradient, and its simulation.

Read in this order: `definition` (laws and parameters), `symbols` (numbers that plain NumPy code
runs on, and their slopes), `tracing` (models and worlds run on them), `printing`, `likelihood` and
`simulation` (their text), `cache` (that text as functions), `kernels` (what models ask for),
`errors` and `javascript`. What an author writes is `Model` in `agents.model`.
"""
