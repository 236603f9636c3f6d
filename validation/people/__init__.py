"""A static page that runs an experiment, and its files read back."""
