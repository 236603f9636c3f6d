"""Other people's data made into trials: readers of files, formats, mappings, and the account."""
