"""To be written."""

if __name__ != "knownminds.agents":
    raise ImportError(f"import knownminds.agents, not {__name__}")
