"""The table of a set of runs, its pages, and the command line that makes them."""

import numpy as np
import pandas as pd
import pytest
from magnitude_sets import answers_of

from knownminds.environments import CONDITIONS
from knownminds.inference.magnitudes.consistency_score import ABLATIONS
from knownminds.inference.magnitudes.factor_evidence import FACTORS
from knownminds.validation.magnitudes.magnitude_table import (
    MagnitudeTable,
    magnitude_table,
)

ADAPTING = {name: 0.45 for name in CONDITIONS} | {"base": 0.15}

SOME = ("base", *ABLATIONS)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    both = [
        answers_of("steady", conditions=SOME, prior=0.2, seed=2),
        answers_of("turner", conditions=SOME, prior=ADAPTING),
    ]
    return pd.concat(both, ignore_index=True)


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> MagnitudeTable:
    return magnitude_table(frame, rounds=10, replicates=200)


def test_the_table_has_every_cell_of_every_participant(table: MagnitudeTable) -> None:
    assert table.participants == ("steady", "turner")
    # Six conditions, three modalities in three tasks and one in the fourth.
    assert len(table.cells) == 2 * 6 * (3 * 3 + 1)
    assert len(table.cues) == 2 * 6 * 3 * 5
    assert len(table.consistency) == 2 * 15
    assert len(table.fits) == len(table.cells) * 14
    assert (table.cells["n"] == 99).all()
    assert table.cells[[*FACTORS, "error", "prior_weight", "bias"]].notna().all(axis=None)
    summary = table.summary().set_index("participant")
    assert summary.loc["turner", "BCS"] > summary.loc["steady", "BCS"]
    assert (summary["missing"] == "").all()
    for letter in "AEC":
        assert summary[letter].between(0, 1.5).all()
    rows = table.cells.set_index(["participant", "task", "condition", "modality"])
    own = rows.loc[("turner", "line_ratio", "base", "text+image")]
    assert summary.loc["turner", "NRMSE_line_ratio"] == own["error"]
    assert own["low"] < own["high"]


def test_fits_of_a_cell_find_what_it_was_made_with(table: MagnitudeTable) -> None:
    text = table.cells[(table.cells["modality"] == "text") & (table.cells["task"] != "duration")]
    weight = text.groupby(["participant", "condition"])["prior_weight"].mean()
    # Standard error of a slope: .03 / (.126 sqrt(99)) = .024, by sqrt(3) less for three tasks.
    for who, condition in weight.index:
        truth = 0.2 if who == "steady" else ADAPTING[condition]
        assert weight[who, condition] == pytest.approx(truth, abs=4 * 0.024 / np.sqrt(3))
    assert (text["bayesian"] > 0.5).mean() > 0.9


def test_missing_answers_and_conditions_are_counted_and_named(frame: pd.DataFrame) -> None:
    less = frame[(frame["model"] == "turner") & (frame["environment"] == "line_ratio")]
    less = less[less["condition"].isin([0, 1])].copy()
    less["outcome"] = "ok"
    less.loc[less.index[:7], ["response", "outcome"]] = [np.nan, "malformed"]
    found = magnitude_table(less, rounds=0)
    assert found.cells["missing"].sum() == 7
    told = str(found)
    assert "Trials without a readable answer, left out and counted: 7." in told
    assert "turner has no A: no base trials of marker_location with text+image" in told
    assert "none, for lack of a comparison" in told
    assert found.composite["value"].isna().all()
    assert found.cells["low"].isna().all()  # no bootstraps, no intervals
    assert [rate.count for rate in found.outcomes["line_ratio"] if rate.outcome == "ok"] == [
        len(less) - 7
    ]
