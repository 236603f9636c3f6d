"""How a study is computed: cells, seeds, batches, folders, workers, verdicts."""
