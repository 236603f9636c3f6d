"""What every model and measure must pass, the stored results, the gallery of them, the doctor.

Imported by the command line; itself imports every study.
"""
