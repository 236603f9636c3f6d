"""Distances between elicitations against arithmetic, noise alone, and a shift."""

import numpy as np
import pytest
from deciders import decided

from knownminds.inference.diagnosis.elicitation_consistency import elicitation_consistency


def test_the_distances_are_those_of_the_definition() -> None:
    data = decided(1, contexts=2, repetitions=2)
    data.frame["plain"] = [0.1, 0.3, 0.5, 0.5]
    data.frame["squared"] = [0.3, 0.3, 0.7, 0.5]
    found = elicitation_consistency(data, replicates=10, bootstraps=10)
    assert found["value"] == pytest.approx(np.sqrt((0.01 + 0.01) / 2))
    distance = found.reading("squared")
    assert distance.value == pytest.approx(0.1)
    assert distance.published == pytest.approx(np.sqrt((0.01 + 0.01 + 0.04 + 0.0) / 4))
    assert distance.mean_shift == pytest.approx(0.1)


def test_beliefs_stated_alike_are_accused_as_often_as_the_level_says() -> None:
    found = [
        elicitation_consistency(
            decided(i, report_noise=0.3), replicates=99, bootstraps=2, seed=i
        ).reading("squared")
        for i in range(100)
    ]
    p_value, distance, null = np.array([(f.p_value, f.value, f.null) for f in found]).T
    # Standard error .022 at .05 and .05 at .5; three of them.
    assert np.mean(p_value <= 0.05) <= 0.05 + 0.066
    assert abs(np.mean(p_value <= 0.5) - 0.5) <= 0.15
    # Noise alone brings about a distance, and the exchange says which.
    assert distance.mean() > 0.02
    assert distance.mean() == pytest.approx(null.mean(), rel=0.02)


def test_missing_answers_are_left_out_of_their_context_alone() -> None:
    data = decided(1, contexts=4, repetitions=3, report_noise=0.5)
    data.frame.loc[[0, 1, 2], "squared"] = np.nan
    data.frame.loc[3, "plain"] = np.nan
    found = elicitation_consistency(data, replicates=19, bootstraps=10)
    assert found.reading("squared").n == 3
    rest = data.frame[data.frame["context"] > 0].groupby("context")[["plain", "squared"]].mean()
    expected = np.sqrt(((rest["squared"] - rest["plain"]) ** 2).mean())
    assert found.reading("squared").value == pytest.approx(expected)
