"""Other people's data made into trials: readers of files, formats, mappings, and the account.

Imported by the commands that move data; imports the floors below and the core.
"""
