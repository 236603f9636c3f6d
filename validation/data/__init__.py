"""What a user's data say: fits, scores, exchange of files."""
