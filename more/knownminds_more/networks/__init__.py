"""Inferences on causal networks, seen and acted upon, their reasoners and contrasts."""
