"""Are posteriors right? Simulation-based calibration and its test of ranks.

Imported by the command line, reports and gates; itself imports engine and pages.
"""
