"""Which design serves best for the money: settings that experiments declare are searched.

Imported by the command line and reports; itself imports engine, power, costs and pages.
"""
