"""A paper's experiments with several models, on one page: a plan and parts."""
