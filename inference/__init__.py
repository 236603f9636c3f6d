"""To be written."""

if __name__ != "knownminds.inference":
    raise ImportError(f"import knownminds.inference, not {__name__}")
