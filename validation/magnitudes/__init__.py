"""The set of magnitude runs and its page."""
