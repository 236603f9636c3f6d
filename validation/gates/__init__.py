"""What every model and measure must pass, and the doctor.

Imported by the command line; itself imports every study.
"""
