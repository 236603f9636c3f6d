"""Reversal learning: two machines that change places, its learners and its measures."""
