"""Turns the plain definition of a trial into its likelihood, with gradient, and its simulation.

Read the files in this order: `definition` (laws and parameters), `symbols` (numbers on which plain
NumPy code runs, and their slopes), `tracing` (models and worlds run on symbols), `printing`,
`likelihood` and `simulation` (their text), `cache` (that text as functions), `kernels` (what models
use), `errors` and `javascript`. Authors write a `Model` of `agents.model`.
"""
