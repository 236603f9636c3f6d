"""How a study is computed: cells, seeds, batches, folders, workers, verdicts.

Imported by every room of this floor.
"""
