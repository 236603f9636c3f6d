"""The plans that ship, a TOML file for each benchmark; imported by nobody, read by `plan.py`."""
