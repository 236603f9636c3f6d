"""Decisions between stated offers: gambles, sums now or later, and games of sharing."""
