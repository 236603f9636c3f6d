"""Studies of agents whose parameters are known, their reports, and the command line.

Its functions are those of the command line, and names of the package itself
(`from knownminds import recover`).
"""

if __name__ != "knownminds.validation":
    raise ImportError(f"import knownminds.validation, not {__name__}")
