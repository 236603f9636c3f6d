import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from registry_pairs import made, pairs
from scipy.stats import norm

from knownminds.agents import AGENTS, RescorlaWagnerDual, simulate
from knownminds.environments import ENVIRONMENTS, make, session_stream
from knownminds.inference import ModelData, maximum_a_posteriori
from knownminds.validation.engine.arguments import resolve_environment
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.monte_carlo import Agreement
from knownminds.validation.engine.population import draw_subjects, live
from knownminds.validation.engine.study import Batch, Study
from knownminds.validation.recovery import parameter_recovery
from knownminds.validation.recovery.parameter_recovery import (
    MASSES,
    fit_batch,
    read_recovery,
    recover,
    shuffled,
    summarise,
)

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
    assert words["alpha_positive"] in ("weak", "not identified", "between weak and not identified")


def test_scores_are_those_of_the_rows(dual):
    rows = dual.rows
    for s in dual.parameters:
        true, estimate = rows[f"true_{s.name}"], rows[s.name]
        assert s.bias.value == pytest.approx((estimate - true).mean())
        assert s.rmse.value == pytest.approx(np.sqrt(((estimate - true) ** 2).mean()))
        assert s.r.value == pytest.approx(np.corrcoef(true, estimate)[0, 1])
        held = rows[f"true_{s.name}"].between(rows[f"low_90_{s.name}"], rows[f"high_90_{s.name}"])
        assert s.coverage["90"].value == pytest.approx(held.mean())
        z_true, z = rows[f"z_true_{s.name}"], rows[f"z_{s.name}"]
        assert s.shrinkage.value == pytest.approx(1 - np.polyfit(z_true, z, 1)[0])
        assert s.n == 400
    assert dual.attempted == len(rows) == sum(dual.statuses.values()) == 400


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_what_a_model_cannot_play_is_refused(name):
    place = next(p for p in ENVIRONMENTS if not AGENTS[name].plays(made(p)))
    with pytest.raises(ValueError, match="Choose a"):
        recover(place, name)


# How fast repetition builds up: 96 trials tell little of it (r .24 of 120 learners, .55 of 2,000).
UNTOLD = {("rescorla_wagner_choice_kernel", "alpha_c")}


@pytest.mark.parametrize(("name", "place"), pairs())
def test_every_registered_model_goes_through(name, place):
    if len(AGENTS[name].parameters) == 0:
        with pytest.raises(ValueError, match="needs a parameter"):
            recover(place, name)
        return
    small = {"network": "fever", "n_contexts": 20, "repeats": 1}  # its own session is long
    where = make(place, **small) if place == "diagnosis" else place
    result = recover(where, name, subjects=120, seed=3, workers=1, intervals="laplace")
    assert result.failed == 0
    # Better than chance: r of unrelated numbers is below 3 / sqrt(120) = .27. Not every standard
    # design tells of all parameters of every model; what it tells stands in the model's own tests.
    told = [s for s in result.parameters if (name, s.name) not in UNTOLD]
    found = [s.r.value > 0.27 for s in told]
    assert all(found) if place == "instrumental_learning" else any(found)


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
        control = Agreement()
        control.add(other, dual.rows[s.name].to_numpy())
        assert abs(control.correlation.value) < 4 * control.correlation.error


def test_shuffling_keeps_subjects_and_counts():
    trials = simulate(RescorlaWagnerDual, [[0.3, 0.2, 3.0, 0.0]] * 2, make(PLACE), 1)
    mixed = shuffled(trials)
    for subject in trials.subjects:
        a, b = (t.frame[t.frame["subject"] == subject] for t in (trials, mixed))
        assert a["action"].sum() == b["action"].sum()
        assert (a["context"].to_numpy() == b["context"].to_numpy()).all()
        assert (a["action"].to_numpy() != b["action"].to_numpy()).any()


@pytest.mark.parametrize("intervals", ["laplace", "posterior"])
def test_a_study_cut_differently_gives_the_same_numbers(intervals):
    first = recover(PLACE, "rescorla_wagner", subjects=40, seed=2, intervals=intervals, workers=1)
    cell = dataclasses.replace(first.cell, batch=7)
    small = dataclasses.replace(first.study, cells=(cell,))
    again = run(small, fit_batch, summarise, workers=2, backend="threads")
    pd.testing.assert_frame_equal(numbers(first.rows), numbers(again.rows), check_exact=True)
    for one, other in zip(first.parameters, again.parameters, strict=True):
        assert one.r.value == pytest.approx(other.r.value, rel=1e-12)
        assert one.r.error == pytest.approx(other.r.error, rel=1e-9)


def test_methods_see_the_same_data_and_more_subjects_begin_with_the_same_ones():
    settings = {"seed": 2, "workers": 1}
    few = recover(PLACE, "rescorla_wagner", subjects=10, intervals="laplace", **settings)
    mle = recover(
        PLACE, "rescorla_wagner", subjects=20, replicates=2, sessions=2, method="mle", **settings
    )
    assert np.array_equal(few.rows["true_alpha"], mle.rows["true_alpha"][:10])
    batch = Batch(0, 0, 10)
    drawn = [draw_subjects(study, batch) for study in (few.study, mle.study)]
    lived = [live(r.study, batch, d) for r, d in zip((few, mle), drawn, strict=True)]
    assert np.array_equal(drawn[0].theta, drawn[1].theta)
    for name, column in lived[0].columns.items():
        assert np.array_equal(column, lived[1].columns[name][lived[1].session == 0]), name


def test_batches_hold_the_sessions_of_the_public_simulation():
    study = recover(PLACE, "rescorla_wagner", subjects=12, intervals="laplace", workers=1).study
    batch = Batch(0, 0, 12)
    subjects = draw_subjects(study, batch)
    cell, theta = study.cells[0], subjects.theta
    model = AGENTS[cell.model]
    trials = simulate(model, theta, make(PLACE), 0, address=(cell.data_key, 0, 0))
    data, read = live(study, batch, subjects).data(model), ModelData.read(model, trials)
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


def planted(study, batch, threads):
    """Fail in 5% of the subjects."""
    if (np.arange(batch.first, batch.last) % 20 == 3).any():
        raise FloatingPointError("planted")
    return fit_batch(study, batch, threads)


def test_planted_failures_show_up_in_the_counts_and_nowhere_else():
    clean = recover(PLACE, "rescorla_wagner", subjects=100, intervals="laplace", workers=1)
    marred = run(clean.study, planted, summarise, workers=1)
    assert (marred.attempted, marred.failed) == (100, 5)
    assert marred.statuses["failed"] == 5
    assert sum(marred.statuses.values()) == 100
    assert marred.notes == ("5 of 100: planted",)
    failed = marred.rows["status"] == "failed"
    pd.testing.assert_frame_equal(
        numbers(marred.rows[~failed]), numbers(clean.rows[~failed]), check_exact=True
    )
    assert marred.rows.loc[failed, "alpha"].isna().all()
    for scores in marred.parameters:
        kept = clean.rows[~failed]
        expected = Agreement()
        expected.add(kept[f"true_{scores.name}"].to_numpy(), kept[scores.name].to_numpy())
        assert scores.n == 95
        assert scores.r.value == pytest.approx(expected.correlation.value, rel=1e-12)
        assert scores.bias.value == pytest.approx(expected.bias.value, rel=1e-9)


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


def all_but_ten_fail(study, batch, threads):
    if (np.arange(batch.first, batch.last) >= 10).any():
        raise ValueError("planted")
    return fit_batch(study, batch, threads)


def test_many_failures_bar_the_best_verdict():
    clean = recover(PLACE, "perseverator", subjects=40, intervals="laplace", workers=1)
    assert clean["kappa"].verdict.word == "recoverable"
    marred = run(clean.study, all_but_ten_fail, summarise, workers=1)
    assert marred["kappa"].n == 10
    assert marred["kappa"].verdict.word != "recoverable"
    assert "75% of the fits failed" in str(marred["kappa"].verdict)


# Regions of the prior


def test_regions_are_thirds_of_the_prior_and_their_subjects_add_up(dual):
    for scores in dual.parameters:
        parameter = RescorlaWagnerDual.parameters[scores.name]
        support = parameter.support
        ends = [(region.low, region.high) for region in scores.regions]
        assert ends[0][0] == support.lower
        assert ends[-1][1] == support.upper
        third = support.constrain(parameter.mean + parameter.sd * norm.ppf([1 / 3, 2 / 3]))
        assert [ends[0][1], ends[1][1]] == pytest.approx(third)
        assert [ends[1][0], ends[2][0]] == [ends[0][1], ends[1][1]]
        assert sum(region.n for region in scores.regions) == scores.n == 400
        for region in scores.regions:
            # A third of 400: standard error sqrt(400 * 2 / 9) = 9.4, bound 4 of these.
            assert abs(region.n - 400 / 3) < 38
            true = dual.rows[f"true_{scores.name}"]
            mine = dual.rows[(region.low <= true) & (true < region.high)]
            assert len(mine) == region.n
            error = mine[f"z_{scores.name}"] - mine[f"z_true_{scores.name}"]
            told = region.relative_error.value * parameter.sd
            assert told == pytest.approx(np.sqrt((error**2).mean()))


def test_choices_that_hardly_follow_the_values_tell_little_about_how_much_they_do(dual):
    regions = dual["beta"].regions
    for what in ("relative_error", "relative_width"):
        low, middle, high = (getattr(region, what) for region in regions)
        for better in (middle, high):
            apart = low.value - better.value
            assert apart > 3 * np.hypot(low.error, better.error)


def test_an_estimate_that_ignores_the_data_is_recovered_in_no_region(dual):
    """Even in the middle of the prior, where it is near all truths and its intervals cover."""
    rows = dual.rows.copy()
    for parameter in RescorlaWagnerDual.parameters:
        name, sd = parameter.name, parameter.sd
        rows[f"z_{name}"] = parameter.mean
        rows[name] = parameter.support.constrain(np.full(len(rows), parameter.mean))
        for mass in MASSES:
            half = sd * norm.ppf(0.5 + mass / 2)
            for end, z in (("low", parameter.mean - half), ("high", parameter.mean + half)):
                rows[f"{end}_{mass * 100:g}_{name}"] = parameter.support.constrain(
                    np.full(len(rows), z)
                )

    class Blind:
        study, versions = dual.study, dual.versions

        @staticmethod
        def tables(cell):
            yield rows

    for scores in summarise(Blind).parameters:
        assert [region.verdict.word for region in scores.regions] == ["not identified"] * 3
        assert scores.regions[1].relative_error.value < 0.3
        assert scores.regions[1].coverage.value == 1


def test_a_truth_at_the_end_of_its_support_is_in_the_last_region():
    result = recover(
        PLACE, "rescorla_wagner", subjects=30, truth={"alpha": 1.0}, intervals="laplace", workers=1
    )
    assert [region.n for region in result["alpha"].regions] == [0, 0, 30]


def test_where_no_truth_lies_nothing_is_judged():
    result = recover(
        PLACE, "rescorla_wagner", subjects=30, truth={"alpha": 0.01}, intervals="laplace", workers=1
    )
    assert [region.n for region in result["alpha"].regions] == [30, 0, 0]
    assert [region.verdict.word for region in result["alpha"].regions][1:] == ["not judged"] * 2
    json.loads(result.to_json())


# The public face


def test_the_cell_and_the_study_say_what_was_asked():
    result = recover(
        PLACE,
        "rescorla_wagner",
        subjects=5,
        replicates=3,
        sessions=2,
        trials=48,
        lapse=0.1,
        truth={"alpha": 0.3},
        seed=8,
        intervals="laplace",
        workers=1,
    )
    assert isinstance(result.study, Study)
    assert result.cell is result.study.cells[0]
    assert (result.cell.subjects, result.cell.sessions, result.study.replicates) == (5, 2, 3)
    assert result.attempted == 15
    words = result.study.command_line()
    for told in ("--trials 48", "--set alpha=0.3", "--lapse 0.1", "--seed 8", "--replicates 3"):
        assert told in words
    assert result["alpha"].name == "alpha"
    with pytest.raises(ValueError, match=r"no parameter named 'aplha'. Nearest: alpha"):
        result["aplha"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": "rescorla_wagner_dul"}, "Nearest: rescorla_wagner_dual"),
        ({"environment": "instrumental"}, "Nearest: instrumental_learning"),
        ({"method": "mpa"}, "no method named 'mpa'. Nearest: map"),
        ({"intervals": "laplas"}, "Nearest: laplace"),
        ({"truth": {"aplha": 0.2}}, "Did you mean alpha"),
        ({"truth": {"alpha": 1.2}}, r"alpha lies in \(0, 1\); got 1.2"),
        ({"lapse": 1.2}, "lapse lies in"),
        ({"subjects": 0}, "at least 1; got 0"),
        ({"replicates": 0}, "at least 1; got 0"),
        ({"sessions": 0}, "at least 1; got 0"),
        ({"seed": -1}, "from 0 on; got -1"),
        ({"method": "hierarchical", "subjects": 1}, "at least 2 subjects; got 1"),
        ({"fixed": {"aplha": 0.2}}, "aplha"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path, change, named):
    asked = {"environment": PLACE, "model": "rescorla_wagner", "out": tmp_path / "s"} | change
    with pytest.raises(ValueError, match=named):
        recover(**asked)
    assert list(tmp_path.iterdir()) == []


def test_large_studies_keep_a_sample_of_their_rows_and_score_all(monkeypatch):
    settings = {"subjects": 100, "intervals": "laplace", "workers": 1}
    whole = recover(PLACE, "perseverator", **settings)
    monkeypatch.setattr(parameter_recovery, "ROWS_KEPT", 40)
    thinned = recover(PLACE, "perseverator", **settings)
    assert thinned.rows["subject"].tolist() == list(range(0, 100, 3))
    assert thinned["kappa"] == whole["kappa"]
    assert thinned.attempted == 100
