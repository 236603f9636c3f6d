import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from knownminds.agents import AGENTS, RescorlaWagnerDual, simulate
from knownminds.environments import make
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.question import Running
from knownminds.validation.engine.study import read_study
from knownminds.validation.recovery.parameter_recovery import fit_batch, recover, say, shuffled
from knownminds.validation.recovery.readable_range import BANDS, unreadable
from knownminds.validation.recovery.recovery_tables import smallest_designs

PLACE, MODEL = "instrumental_learning", "rescorla_wagner"
PARAMETERS = AGENTS[MODEL].parameters


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


def test_a_study_cut_differently_gives_the_same_numbers(tmp_path):
    first = recover(PLACE, MODEL, subjects=40, seed=2, workers=1, out=tmp_path)
    study, _ = read_study(tmp_path)
    small = dataclasses.replace(study, cells=(dataclasses.replace(study.cells[0], batch=7),))
    again = run(small, fit_batch, say, Running(workers=2, backend="threads"))
    pd.testing.assert_frame_equal(numbers(first.rows), numbers(again.rows), check_exact=True)
    assert again["Estimates"].equals(first["Estimates"])


def without_some_intervals(study, batch, threads):
    rows = fit_batch(study, batch, threads)
    rows.loc[rows.index % 10 == 0, [c for c in rows if c.startswith(("low_", "high_"))]] = np.nan
    return rows


def test_a_missing_interval_does_not_hold_the_truth(tmp_path):
    given = {"subjects": 100, "intervals": "laplace", "workers": 1}
    clean = recover(PLACE, "perseverator", **given, out=tmp_path)
    study, _ = read_study(tmp_path)
    some = run(study, without_some_intervals, say, Running(workers=1))
    rows = clean.rows[clean.rows.index % 10 != 0]
    held = rows["true_kappa"].between(rows["low_90_kappa"], rows["high_90_kappa"])
    assert some["Estimates"].loc["kappa", "r"] == clean["Estimates"].loc["kappa", "r"]
    intervals = some["Intervals"].loc["kappa"]
    assert intervals["90% covers"].value == pytest.approx(held.sum() / 100)
    width = rows["high_90_kappa"] - rows["low_90_kappa"]
    assert intervals["width of 90%"].value == pytest.approx(width.mean())


@pytest.mark.long
def test_hierarchical_fits_see_the_group_and_lower_the_error():
    settings = {"subjects": 30, "seed": 11, "workers": 1}
    one = recover(PLACE, MODEL, intervals="laplace", **settings)
    group = recover(PLACE, MODEL, method="hierarchical", **settings)
    assert np.array_equal(one.rows["true_alpha"], group.rows["true_alpha"])
    assert group["Status of the fits"].loc["ok", "fits"] == 30
    errors = [result["Estimates"].loc["alpha", "rmse"].value for result in (one, group)]
    assert errors[1] < 1.05 * errors[0]
    # 30 subjects: standard error .055, bound 3 errors.
    assert abs(group["Intervals"].loc["alpha", "90% covers"].value - 0.9) < 0.165


@pytest.mark.long
def test_correlations_over_subjects_come_back():
    result = recover(
        make(PLACE, n_visits=8), MODEL, subjects=8, replicates=2, seed=1, workers=1,
        method="hierarchical", correlation={"beta,alpha": 0.6},
    )  # fmt: skip
    table = result["Correlations over subjects"]
    assert list(table.index) == ["alpha, beta", "alpha, kappa", "beta, kappa"]
    rows = result.rows.drop_duplicates("replicate")
    for pair, truth in (("alpha, beta", 0.6), ("alpha, kappa", 0.0)):
        error = rows[f"cor({pair})"] - truth
        assert table["bias"][pair].value == pytest.approx(error.mean())
        assert table["rmse"][pair].value == pytest.approx(np.sqrt((error**2).mean()))
        held = (rows[f"low cor({pair})"] <= truth) & (truth <= rows[f"high cor({pair})"])
        assert table["90% covers"][pair].value == pytest.approx(held.mean())


# Several designs


def test_every_design_of_a_grid_is_the_recovery_of_that_design_alone():
    fits = {"seed": 3, "intervals": "laplace", "workers": 1}
    grid = {"subjects": [20, 30], "sessions": [1, 2], "trials": 24}
    surface = recover(PLACE, MODEL, **grid, **fits)
    for subjects in (20, 30):
        alone = recover(PLACE, MODEL, subjects=subjects, sessions=2, trials=24, **fits)
        for title in ("Estimates", "Intervals"):
            own = surface[title].xs((subjects, 2, 24), level=(1, 2, 3))
            assert own.equals(alone[title])


YES, WEAK, NO = "recoverable", "weak", "not identified"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ({(20, 1, 24): YES, (20, 1, 48): YES}, "24 trials"),
        ({(20, 1, 24): WEAK, (20, 1, 48): YES}, "48 trials"),
        ({(20, 1, 24): WEAK, (20, 1, 48): NO}, "-"),
        ({(20, 1, 24): YES, (20, 1, 48): "not judged"}, "-"),
        # A size at which it works by luck, and above which it does not, is none.
        ({(20, 1, 24): YES, (20, 1, 48): WEAK, (20, 1, 96): YES}, "96 trials"),
        # Only designs that are at least as large in all sizes count against one.
        (
            {(20, 1, 24): NO, (40, 1, 24): NO, (20, 2, 48): YES, (40, 2, 48): YES},
            "20 subjects x 2 sessions x 48 trials",
        ),
        ({(20, 1, 96): YES, (40, 1, 24): NO, (40, 1, 96): YES}, "20 subjects x 96 trials"),
        ({(20, 1, 96): YES, (40, 1, 24): YES, (40, 1, 96): NO}, "-"),
        # Of several, the fewest trials in all; the fewest subjects if they are equal.
        ({(10, 1, 96): YES, (20, 1, 24): YES, (20, 1, 96): YES}, "20 subjects x 24 trials"),
        ({(10, 2, 48): YES, (20, 1, 48): YES, (20, 2, 48): YES}, "10 subjects x 2 sessions"),
    ],
)
def test_the_smallest_design_from_which_on_a_parameter_is_recoverable(words, answer):
    for order in (words, dict(reversed(words.items()))):
        table = pd.DataFrame(list(order), columns=["subjects", "sessions", "trials"])
        table = table.assign(parameter="alpha", verdict=list(order.values()))
        (row,) = smallest_designs(table).to_dict("records")
        assert row["recoverable from"] == answer


# Values that cannot be read


def stretches(width_of, n=3000):
    rng = np.random.default_rng(5)
    widths = {}
    for parameter in PARAMETERS:
        z = rng.standard_normal(n)
        own = width_of(z) if parameter.name == "beta" else np.full(n, 0.4)
        width = np.clip(own + 0.02 * rng.standard_normal(n), 0, 1)
        widths[parameter.name] = (parameter.mean + parameter.sd * z, width)
    return unreadable(PARAMETERS, widths, None).to_dict("records")


def at(quantile):
    beta = PARAMETERS["beta"]
    return float(np.exp(beta.mean + beta.sd * norm.ppf(quantile)))


def test_bands_that_say_nothing_are_joined_to_a_stretch():
    (high,) = stretches(lambda z: np.where(z > norm.ppf(9 / BANDS), 0.97, 0.3))
    assert (high["parameter"], high["high"]) == ("beta", np.inf)
    assert high["low"] == pytest.approx(at(9 / BANDS))
    assert high["relative_width"].value == pytest.approx(0.97, abs=0.005)
    low, middle = stretches(
        lambda z: np.where((z < norm.ppf(2 / BANDS)) | (abs(z) < norm.ppf(7 / BANDS)), 0.95, 0.4)
    )
    assert (low["low"], low["high"]) == (0.0, pytest.approx(at(2 / BANDS)))
    assert middle["low"] == pytest.approx(at(5 / BANDS))
    assert middle["high"] == pytest.approx(at(7 / BANDS))
    (whole,) = stretches(lambda z: np.full_like(z, 0.99))
    assert (whole["low"], whole["high"]) == (0.0, np.inf)


def test_where_all_bands_are_alike_few_studies_name_one():
    """5% of studies at most; of 200, three binomial errors of 1.5% more."""
    named = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        widths = {
            p.name: (p.mean + p.sd * rng.standard_normal(500), rng.uniform(0.74, 1.0, 500))
            for p in PARAMETERS
        }
        named += len(unreadable(PARAMETERS, widths, None)) > 0
    assert named / 200 < 0.05 + 3 * 0.0154
