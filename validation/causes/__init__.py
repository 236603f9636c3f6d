"""Profiles of causal judgements and their page."""
