"""To be written."""

if __name__ != "knownminds.environments":
    raise ImportError(f"import knownminds.environments, not {__name__}")
