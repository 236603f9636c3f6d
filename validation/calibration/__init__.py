"""Are posteriors right? Simulation-based calibration and its test of ranks."""
