"""To be written."""

if __name__ != "knownminds.validation":
    raise ImportError(f"import knownminds.validation, not {__name__}")
