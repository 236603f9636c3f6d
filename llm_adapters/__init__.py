"""To be written."""

if __name__ != "knownminds.llm_adapters":
    raise ImportError(f"import knownminds.llm_adapters, not {__name__}")
