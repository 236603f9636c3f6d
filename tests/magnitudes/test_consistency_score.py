"""The consistency score against arithmetic, and what it does to known agents."""

import json

import numpy as np
import pandas as pd
import pytest
from magnitude_sets import answers_of

from knownminds.environments import CONDITIONS
from knownminds.inference.magnitudes.consistency_score import (
    ABLATIONS,
    consistency_score,
    shift_scores,
)
from knownminds.inference.magnitudes.magnitude_answers import MULTIMODAL, MagnitudeAnswers

ADAPTING = {name: 0.45 for name in CONDITIONS} | {"base": 0.15}


def read(frame: pd.DataFrame, rounds: int = 0) -> MagnitudeAnswers:
    return MagnitudeAnswers.read(frame, by="model", rounds=rounds)


@pytest.fixture(scope="module")
def adapting() -> pd.DataFrame:
    return answers_of("a", tasks=MULTIMODAL, prior=ADAPTING)


def test_a_shift_scores_its_sign_and_a_weight_that_disregards_the_stimulus_nothing() -> None:
    base = np.array([0.2, 0.2, 0.2, 0.2, 0.95, np.nan, 0.2])
    ablation = np.array([0.3, 0.1, 0.2, 0.91, 0.95, 0.3, 0.9])
    found = shift_scores(base, ablation)
    assert found[:5].tolist() == [1.0, -1.0, 1.0, 0.0, 0.0]
    assert np.isnan(found[5])
    assert found[6] == 1.0


def test_a_mind_that_adapts_earns_nearly_all_and_far_more_than_one_that_does_not(
    adapting: pd.DataFrame,
) -> None:
    found = consistency_score(read(adapting, rounds=20), "a", replicates=400)
    assert found.total[0] >= 13
    assert found.low <= found.total[0] <= found.high + 1
    assert set(found.known) == {"non-adapting", "adapting", "perfect"}
    # 15 signs, of which 3 and 2 in each task share their base: variance 3 (5 + 8/3) = 23.
    steady = found.known["non-adapting"]
    assert abs(steady.mean()) < 4 * np.sqrt(23 / 400)
    assert steady.std(ddof=1) == pytest.approx(np.sqrt(23), rel=0.2)
    assert (steady >= found.total[0]).mean() < 0.02
    assert found.known["adapting"].mean() > 12
    assert len(json.loads(found.to_json())) == 15


def test_a_slope_above_one_hides_no_shift_and_earns_no_wonder() -> None:
    conditions = ("base", *ABLATIONS)
    overshooting, shifting = (
        consistency_score(
            read(
                answers_of(
                    "a", tasks=MULTIMODAL, conditions=conditions, text_weight=None,
                    prior={name: -0.4 + shift * (name != "base") for name in conditions},
                )
            ),
            "a",
            replicates=100,
        )
        for shift in (0.0, 0.15)
    )  # fmt: skip
    for found in (overshooting, shifting):
        assert found.total[0] == 15  # all weights are held at 0
        assert found.comparisons["saturated"].all()
        # Agents of the same slope that never adapt earn as much, nearly always.
        assert (found.known["non-adapting"] == 15).mean() > 0.9
    effect = shifting.effects.iloc[0]
    error = (effect["high"] - effect["low"]) / (2 * 1.96)
    assert abs(effect["shift"] - 0.15) < 3.5 * error < 0.15
    assert overshooting.effects["p_value"].iloc[0] > 0.01


def test_a_missing_condition_is_named_and_leaves_no_score(adapting: pd.DataFrame) -> None:
    verbal = CONDITIONS.index("verbal")
    less = adapting[(adapting["condition"] != verbal) | (adapting["environment"] != "line_ratio")]
    found = consistency_score(read(less), "a")
    assert np.isnan(found.total[0])
    assert found.missing == ("line_ratio verbal: no verbal trials with text+image",)
    scores = found.to_frame().set_index("task")["score"]
    assert scores["line_ratio"].isna().any()
    assert scores["maze_distance"].sum() >= 3
    assert found.known == {}
    silent = adapting.copy()
    silent.loc[adapting["condition"] == verbal, "response"] = np.nan
    assert "too few answers in verbal" in consistency_score(read(silent), "a").missing[0]
