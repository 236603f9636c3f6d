"""A referee for models: contract, recovery, calibration, rivals and predictions on one page."""
