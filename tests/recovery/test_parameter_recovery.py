import dataclasses

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import RescorlaWagnerDual, simulate
from knownminds.environments import make
from knownminds.validation.engine.engine import run
from knownminds.validation.recovery.parameter_recovery import (
    fit_batch,
    recover,
    shuffled,
    summarise,
)

PLACE = "instrumental_learning"


def numbers(rows):
    return rows.drop(columns="seconds")


def test_shuffling_keeps_subjects_and_counts():
    trials = simulate(RescorlaWagnerDual, [[0.3, 0.2, 3.0, 0.0]] * 2, make(PLACE), 1)
    mixed = shuffled(trials)
    for subject in trials.subjects:
        a, b = (t.frame[t.frame["subject"] == subject] for t in (trials, mixed))
        assert a["action"].sum() == b["action"].sum()
        assert (a["context"].to_numpy() == b["context"].to_numpy()).all()
        assert (a["action"].to_numpy() != b["action"].to_numpy()).any()


def test_a_study_cut_differently_gives_the_same_numbers():
    first = recover(PLACE, "rescorla_wagner", subjects=40, seed=2, workers=1)
    cell = dataclasses.replace(first.cell, batch=7)
    small = dataclasses.replace(first.study, cells=(cell,))
    again = run(small, fit_batch, summarise, workers=2, backend="threads")
    pd.testing.assert_frame_equal(numbers(first.rows), numbers(again.rows), check_exact=True)
    for one, other in zip(first.parameters, again.parameters, strict=True):
        assert one.r.value == pytest.approx(other.r.value, rel=1e-12)
        assert one.r.error == pytest.approx(other.r.error, rel=1e-9)


@pytest.mark.long
def test_hierarchical_fits_see_the_group_and_lower_the_error():
    settings = {"subjects": 30, "seed": 11, "workers": 1}
    one = recover(PLACE, "rescorla_wagner", intervals="laplace", **settings)
    group = recover(PLACE, "rescorla_wagner", method="hierarchical", **settings)
    assert np.array_equal(one.rows["true_alpha"], group.rows["true_alpha"])
    assert group.statuses == {"ok": 30}
    assert group["alpha"].rmse.value < 1.05 * one["alpha"].rmse.value
    # 30 subjects: standard error .055, bound 3 errors.
    assert abs(group["alpha"].coverage["90"].value - 0.9) < 0.165


def without_some_intervals(study, batch, threads):
    rows = fit_batch(study, batch, threads)
    rows.loc[rows.index % 10 == 0, [c for c in rows if c.startswith(("low_", "high_"))]] = np.nan
    return rows


def test_a_missing_interval_does_not_hold_the_truth():
    clean = recover(PLACE, "perseverator", subjects=100, intervals="laplace", workers=1)
    some = run(clean.study, without_some_intervals, summarise, workers=1)
    rows = clean.rows[clean.rows.index % 10 != 0]
    held = rows["true_kappa"].between(rows["low_90_kappa"], rows["high_90_kappa"])
    assert some["kappa"].n == 100
    assert some["kappa"].r == clean["kappa"].r
    assert some["kappa"].coverage["90"].value == pytest.approx(held.sum() / 100)
    width = rows["high_90_kappa"] - rows["low_90_kappa"]
    assert some["kappa"].width["90"].value == pytest.approx(width.mean())
