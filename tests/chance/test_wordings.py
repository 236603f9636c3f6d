"""Variance of beliefs split into contexts, wordings and sampling."""

import numpy as np
import pandas as pd

from knownminds.inference.stability import split_scores


def test_the_sampling_of_counts_is_taken_out_of_what_wordings_do():
    """An agent whose answers a wording moves by a known amount, in 60 worlds of counts."""
    rng = np.random.default_rng(3)
    draws, contexts, sd = 40, 30, {"wordings": 0.05, "wordings by context": 0.07}
    found = []
    for _ in range(60):
        true = (
            rng.uniform(0.35, 0.65, (contexts, 1))
            + rng.uniform(-1, 1, 3) * np.sqrt(3) * sd["wordings"]
            + rng.uniform(-1, 1, (contexts, 3)) * np.sqrt(3) * sd["wordings by context"]
        )
        share = rng.binomial(draws, true) / draws
        frame = pd.DataFrame(
            {
                "y": share.ravel(),
                "error": np.sqrt(share * (1 - share) / (draws - 1)).ravel(),
                "model": np.repeat(np.arange(contexts), 3),
                "template": np.tile(np.arange(3), contexts),
            }
        )
        split = split_scores(frame, "y", "error", exact=True)
        found.append([split.parts[s].value for s in ("paraphrase", "interaction")])
    found = np.array(found)
    error = found.std(axis=0, ddof=1) / np.sqrt(60)
    for mean, own, known in zip(found.mean(axis=0), error, sd.values(), strict=True):
        assert abs(mean - known**2) < 4 * own
