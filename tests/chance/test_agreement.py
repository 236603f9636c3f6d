"""Agreement of stated and revealed probabilities, and how often its intervals hold the truth."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from knownminds.validation.chance import agreement
from knownminds.validation.chance.agreement import agreement_of

RHO = 0.7


def world(rng, contexts, per_context=1):
    """Probabilities with a common part by context: normal scores with the correlation RHO."""
    z = rng.multivariate_normal([0, 0], [[1, RHO], [RHO, 1]], contexts)
    z = np.repeat(z, per_context, axis=0)
    one, other = 1 / (1 + np.exp(-z.T))
    return pd.DataFrame(
        {
            "scenario": "mine",
            "context": np.repeat(np.arange(contexts), per_context).astype(str),
            "truth": 0.5,
            "revealed": one,
            "stated": other,
        }
    )


def test_the_values_are_those_of_scipy():
    rows = world(np.random.default_rng(0), 25)
    found = agreement_of(rows)
    off = (rows[["revealed", "stated"]] - 0.5).abs()
    assert found["probabilities"] == pytest.approx(
        spearmanr(rows["revealed"], rows["stated"]).statistic
    )
    assert found["errors"] == pytest.approx(spearmanr(off["revealed"], off["stated"]).statistic)
    for name in agreement.NUMBERS:
        assert found[f"{name}_low"] < found[name] < found[f"{name}_high"]
