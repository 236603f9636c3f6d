"""A paper's experiments with several models, on one page; may import every room of this floor.

`registry.py` lists them; a benchmark is a plan (`plans/NAME.toml`) and a module whose `sections`
makes the page. Imported by the command line and by `validation/studies.py` alone.
"""
