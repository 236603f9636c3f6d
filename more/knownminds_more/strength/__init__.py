"""Judgements of causal strength from tables of cases, their judges and contrasts."""
