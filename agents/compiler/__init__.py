"""From one plain definition of a trial to everything else: its slopes, its kernels, its checks.

Read in this order: `model` (what an author writes), `tracing` (its run on symbols), `expressions`
and `slopes` (what the run leaves), `printing`, `likelihood` and `simulation` (their text),
`cache`, `checking` and `reading` (that text as functions, held against the definition and its
file). Imported through `knownminds.agents`; itself imports the core of this floor.
"""
