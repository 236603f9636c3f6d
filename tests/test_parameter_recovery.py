import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, RescorlaWagnerDual, simulate
from knownminds.environments import ENVIRONMENTS, make, session_stream
from knownminds.inference import ModelData, maximum_a_posteriori
from knownminds.validation.parameter_recovery import (
    _concordance,
    _correlation,
    _root_mean_square,
    _share,
    _shrinkage,
    fit_batch,
    read_recovery,
    recover,
    resolve_environment,
    shuffled,
    simulate_batch,
)
from knownminds.validation.study import Batch, Study, run

PLACE = "instrumental_learning"


@pytest.fixture(scope="module")
def dual():
    return recover(PLACE, "rescorla_wagner_dual", subjects=400, seed=11, workers=1)


def numbers(rows):
    return rows.drop(columns="seconds")


def test_ninety_percent_intervals_hold_the_truth_ninety_percent_of_the_time(dual):
    # 400 subjects: standard error sqrt(.9 * .1 / 400) = .015; 4 parameters, bound 3 errors = .045.
    for scores in dual.parameters:
        assert abs(scores.coverage["90"].value - 0.9) < 0.045


def test_beta_and_kappa_come_back_and_the_rates_only_weakly(dual):
    words = {scores.name: scores.verdict.word for scores in dual.parameters}
    assert words["beta"] == words["kappa"] == "recoverable"
    assert words["alpha_positive"] in ("weak", "not identified")


def test_scores_are_those_of_the_rows(dual):
    rows = dual.rows
    for s in dual.parameters:
        true, estimate = rows[f"true_{s.name}"], rows[s.name]
        assert s.bias.value == pytest.approx((estimate - true).mean())
        assert s.rmse.value == pytest.approx(np.sqrt(((estimate - true) ** 2).mean()))
        assert s.r.value == pytest.approx(np.corrcoef(true, estimate)[0, 1])
    assert dual.attempted == len(rows) == sum(dual.statuses.values()) == 400


@pytest.mark.parametrize("name", sorted(AGENTS))
@pytest.mark.parametrize("place", sorted(ENVIRONMENTS))
def test_every_registered_model_goes_through(place, name):
    if len(AGENTS[name].parameters) == 0:
        with pytest.raises(ValueError, match="needs a parameter"):
            recover(place, name)
        return
    result = recover(place, name, subjects=120, seed=3, workers=1, intervals="laplace")
    assert result.failed == 0
    # Better than chance: r of unrelated numbers is below 3 / sqrt(120) = .27.
    assert all(s.r.value > 0.27 for s in result.parameters)


def test_shuffled_sessions_do_not_recover():
    n = 300
    model, place = RescorlaWagnerDual, make(PLACE)
    theta = model.parameters.draw(session_stream(5), n)
    trials = simulate(model, theta, place, 5)
    honest = maximum_a_posteriori(model, trials)
    control = maximum_a_posteriori(model, shuffled(trials))
    k = model.parameters.index("kappa")
    names = honest.names
    for j, name in enumerate(names):
        r = np.corrcoef(theta[:, j], honest.estimate[:, j])[0, 1]
        gone = np.corrcoef(theta[:, j], control.estimate[:, j])[0, 1]
        assert gone < r - 0.2, name
    # Order is all that tells the learning rates and perseveration: r within 3 / sqrt(300) of 0.
    for j in (names.index("alpha_positive"), k):
        assert abs(np.corrcoef(theta[:, j], control.estimate[:, j])[0, 1]) < 3 / np.sqrt(n)


def test_unrelated_truth_does_not_recover(dual):
    rng = np.random.default_rng(1)
    for s in dual.parameters:
        other = rng.permutation(dual.rows[f"true_{s.name}"].to_numpy())
        r = _correlation(other, dual.rows[s.name].to_numpy(), None)
        assert abs(r.value) < 4 * r.error


def test_shuffling_keeps_subjects_and_counts():
    trials = simulate(RescorlaWagnerDual, [[0.3, 0.2, 3.0, 0.0]] * 2, make(PLACE), 1)
    mixed = shuffled(trials)
    for subject in trials.subjects:
        a, b = (t.frame[t.frame["subject"] == subject] for t in (trials, mixed))
        assert a["action"].sum() == b["action"].sum()
        assert (a["context"].to_numpy() == b["context"].to_numpy()).all()
        assert (a["action"].to_numpy() != b["action"].to_numpy()).any()


def test_a_study_cut_differently_gives_the_same_numbers():
    first = recover(PLACE, "rescorla_wagner", subjects=40, seed=2, intervals="laplace", workers=1)
    small = dataclasses.replace(first.study, batch=7)
    rows = run(small, fit_batch, workers=2)
    pd.testing.assert_frame_equal(numbers(first.rows), numbers(rows), check_exact=True)


def test_methods_see_the_same_data_and_more_subjects_begin_with_the_same_ones():
    few = recover(PLACE, "rescorla_wagner", subjects=10, seed=2, intervals="laplace", workers=1)
    mle = recover(PLACE, "rescorla_wagner", subjects=20, seed=2, method="mle", workers=1)
    a, x = simulate_batch(few.study, Batch(0, 0, 0, 10))
    b, y = simulate_batch(mle.study, Batch(0, 0, 0, 10))
    assert np.array_equal(a, b)
    assert all(np.array_equal(p, q) for p, q in zip(x.flat, y.flat, strict=True))


def test_batches_hold_the_sessions_of_the_public_simulation():
    study = recover(PLACE, "rescorla_wagner", subjects=12, intervals="laplace", workers=1).study
    theta, data = simulate_batch(study, Batch(0, 0, 0, 12))
    cell = study.cells[0]
    model = AGENTS[cell.model]
    trials = simulate(model, theta, make(PLACE), 0, address=(cell.data_key, 0, 0))
    read = ModelData.read(model, trials)
    assert np.array_equal(data.flat[0], read.flat[0])
    at = np.tile([0.3, 2.0, 0.1], (12, 1))
    np.testing.assert_allclose(data.log_likelihood(at)[0], read.log_likelihood(at)[0], rtol=1e-12)


def test_fixed_truth_is_not_judged_by_correlation():
    result = recover(
        PLACE, "rescorla_wagner", subjects=30, truth={"alpha": 0.3}, intervals="laplace", workers=1
    )
    assert (result.rows["true_alpha"] == 0.3).all()
    assert result["alpha"].verdict.word == "not judged"
    assert json.loads(result.to_json())["parameters"]["alpha"]["r"] is None
    assert result.rows["true_beta"].nunique() == 30


def test_parameters_can_be_held_and_lapses_estimated():
    result = recover(
        PLACE,
        "rescorla_wagner",
        subjects=30,
        fixed={"kappa": 0.0},
        truth={"kappa": 0.0},
        lapse=0.1,
        fit_lapse=True,
        intervals="laplace",
        workers=1,
    )
    assert [s.name for s in result.parameters] == ["alpha", "beta", "lapse"]
    assert (result.rows["true_lapse"] == 0.1).all()


def test_more_trials_and_sessions_recover_better():
    settings = {"subjects": 200, "seed": 4, "intervals": "laplace", "workers": 1}
    short = recover(PLACE, "rescorla_wagner", trials=48, **settings)
    long = recover(PLACE, "rescorla_wagner", trials=384, **settings)
    several = recover(PLACE, "rescorla_wagner", trials=48, sessions=8, **settings)
    assert long["alpha"].rmse.value < short["alpha"].rmse.value
    assert several["alpha"].rmse.value < short["alpha"].rmse.value
    with pytest.raises(ValueError, match="multiple of 4 trials; got 49"):
        resolve_environment(PLACE, 49)


def test_a_resumed_recovery_reads_the_same(tmp_path):
    settings = {"subjects": 30, "seed": 9, "intervals": "laplace", "workers": 1}
    first = recover(PLACE, "rescorla_wagner", out=tmp_path / "s", **settings)
    again = recover(PLACE, "rescorla_wagner", out=tmp_path / "s", **settings)
    assert first.to_json() == again.to_json() == read_recovery(tmp_path / "s").to_json()


def test_maximum_likelihood_counts_its_runaways():
    result = recover(PLACE, "rescorla_wagner_dual", subjects=200, method="mle", workers=1)
    assert result.statuses.get("boundary", 0) > 20
    assert result.attempted == 200


def test_monte_carlo_errors_match_repeated_studies():
    # 300 repeats of n = 150: the spread of each score is known to 4%; bound 20%.
    rng = np.random.default_rng(8)
    scorers = {
        "r": _correlation,
        "concordance": _concordance,
        "shrinkage": _shrinkage,
        "rmse": lambda x, y, c: _root_mean_square(y - x, c),
        "share": lambda x, y, c: _share((y > x).astype(float), c),
    }
    values = {name: [] for name in scorers}
    errors = {name: [] for name in scorers}
    for _ in range(300):
        x = rng.gamma(2.0, size=150)
        y = 0.2 + 0.6 * x + rng.normal(size=150)
        for name, scorer in scorers.items():
            score = scorer(x, y, None)
            values[name].append(score.value)
            errors[name].append(score.error)
    for name in scorers:
        assert np.mean(errors[name]) == pytest.approx(np.std(values[name]), rel=0.2), name


def test_errors_of_subjects_fitted_together_are_summed_by_replicate():
    rng = np.random.default_rng(3)
    shared = np.repeat(rng.normal(size=40), 25)
    alone = _root_mean_square(shared + 3, None).error
    together = _root_mean_square(shared + 3, np.repeat(np.arange(40), 25)).error
    assert together == pytest.approx(5 * alone, rel=0.05)  # sqrt(25) copies of one value


def test_the_result_prints_itself(dual):
    text = str(dual)
    assert "alpha_positive" in text
    assert "400 attempted" in text
    frame = dual.to_frame()
    assert list(frame["parameter"]) == list(RescorlaWagnerDual.parameters.names)
    assert {"bias", "bias_error", "coverage_90", "coverage_90_error"} <= set(frame)


def test_hierarchical_fits_see_the_group_and_lower_the_error(tmp_path):
    settings = {"subjects": 30, "seed": 11, "workers": 1}
    one = recover(PLACE, "rescorla_wagner", intervals="laplace", **settings)
    group = recover(PLACE, "rescorla_wagner", method="hierarchical", **settings)
    assert np.array_equal(one.rows["true_alpha"], group.rows["true_alpha"])
    assert group.statuses == {"ok": 30}
    assert group["alpha"].rmse.value < 1.05 * one["alpha"].rmse.value
    # 30 subjects: standard error .055, bound 3 errors.
    assert abs(group["alpha"].coverage["90"].value - 0.9) < 0.165


def test_a_failed_fit_stays_in_the_denominator():
    good = recover(PLACE, "rescorla_wagner", subjects=20, intervals="laplace", workers=1)
    from knownminds.validation.parameter_recovery import summarise

    rows = good.rows.copy()
    rows.loc[[3, 7], "status"] = "failed"
    rows.loc[[3, 7], ["alpha", "message"]] = [np.nan, "planted"]
    marred = summarise(good.study, rows, good.versions)
    assert (marred.attempted, marred.failed, marred["alpha"].n) == (20, 2, 18)
    assert marred.notes == ("2 of 20: planted",)
    assert marred["alpha"].verdict.word != "recoverable"
    assert isinstance(good.study, Study)
