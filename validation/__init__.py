"""Studies of minds whose parameters are known, their reports, and the command line.

Functions are imported from their modules (`from knownminds.validation.power import power`): many
modules bear the name of their function, and a package can have only one thing of a name.
"""

if __name__ != "knownminds.validation":
    raise ImportError(f"import knownminds.validation, not {__name__}")
