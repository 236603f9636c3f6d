"""What a fit says, on its page, in its JSON and as text, proved sentence by sentence.

Few simulated minds and subjects keep it cheap; `claims.fit` takes the sampling errors of both.
"""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from claims import check
from claims.fit import REPORT, Again

from knownminds import inference
from knownminds.agents import AGENTS, play
from knownminds.environments import Trials, make
from knownminds.inference import posterior
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.point import maximum_a_posteriori, maximum_likelihood
from knownminds.inference.posteriors import group_model
from knownminds.validation.data.fit import (
    _about_effect,
    _about_support,
    fit,
)
from knownminds.validation.data.fit_page import fit_page
from knownminds.validation.data.group_fit import GroupValue, _warning

MODEL, PLACE = "rescorla_wagner", "instrumental_learning"
LOST = ("action", "response", "reward")


@pytest.fixture(autouse=True)
def _fewer_minds(monkeypatch):
    monkeypatch.setattr("knownminds.validation.data.support.SIMULATED", 150)


def lived(model, theta, place, seed):
    """Let subjects live sessions step by step."""
    parts = [
        play(AGENTS[model].from_theta(row, actions=place.n_actions or None), place, seed, i).frame
        for i, row in enumerate(theta)
    ]
    return pd.concat(parts, ignore_index=True)


def people(model, place, n, seed):
    """Frame of n people of the prior."""
    theta = AGENTS[model].parameters.draw(np.random.default_rng(seed), n)
    return lived(model, theta, place, seed)


def withheld(frame, rows):
    """Take the answers of these rows away."""
    told = frame.copy()
    for name in LOST:
        if name in told:
            told[name] = told[name].astype("Float64").mask(rows)
    return told.assign(outcome=np.where(rows, "malformed", "ok"))


def lived_again(found, place, cut, n=150, truth_of=None):
    """Simulate subjects of the law in a fit's JSON by the step loop, and fit what `cut` leaves."""
    model = AGENTS[found.model]
    support = found.to_dict()["support"]
    law = np.array([[support[name]["mean"], support[name]["sd"]] for name in found.parameters])
    rng = np.random.default_rng(7)
    z = law[:, 0] + law[:, 1] * rng.standard_normal((n, len(law)))
    theta = model.parameters.constrain(z)
    frame = cut(lived(found.model, theta, place, 99))
    data = ModelData.read(model, Trials.from_frame(frame, environment=place), place.n_actions)
    if found.method == "mle":
        point = maximum_likelihood(model, data, workers=1)
        interval = point.interval
    else:
        point = maximum_a_posteriori(model, data, workers=1)
        interval = posterior(model, data, workers=1, nuts=False).interval
    ok = np.array(point.status) != "failed"
    true = theta[[int(name) for name in data.subjects]]
    low, high = interval(0.9)
    by_name = [
        {name: values[ok, k] for k, name in enumerate(found.parameters)}
        for values in (true, point.estimate, low, high)
    ]
    return Again(*by_name)


def likelihood(theta, rows):
    """Log-likelihood of a Rescorla-Wagner learner, trial by trial."""
    total, values, last = 0.0, {}, {}
    for row in rows:
        where = (row["session"], row["context"])
        v, a = values.setdefault(where, [0.5, 0.5]), int(row["action"])
        x = theta["beta"] * (v[a] - v[1 - a])
        if where in last:
            x += theta["kappa"] if last[where] == a else -theta["kappa"]
        total -= math.log1p(math.exp(-x)) if x > -700 else -x
        v[a] += theta["alpha"] * (row["reward"] - v[a])
        last[where] = a
    return total


def texts_of(found):
    """Every sentence of the page, of the JSON and of the text."""
    page = fit_page(found)
    findings = [f"{f.name}: {f.word}. {f.why}" for f in page.findings]
    captions = [caption for caption, _ in page.figures]
    titles = [title for title, *_ in page.tables if title.startswith("Models")]
    printed = [line for line in str(found).splitlines() if line in found.sentences]
    assert printed == found.to_dict()["sentences"] == list(page.sentences)
    return [*page.sentences, *findings, *page.notes, *captions, *titles]


def prove(found, frame, again, **more):
    facts = SimpleNamespace(
        content=found.to_dict(),
        trials=Trials.from_frame(frame).frame,
        whole=frame,
        again=again,
        likelihood=likelihood,
        n_actions=2,
        **more,
    )
    check(REPORT, texts_of(found), facts)


@pytest.mark.parametrize("method", ["map", "mle"])
def test_part_of_the_contexts(method):
    place = make(PLACE)

    def cut(frame):
        return frame[frame["context"].isin([0, 3])]

    frame = cut(people(MODEL, place, 12, 1))
    found = fit(Trials.from_frame(frame), MODEL, environment=PLACE, method=method, workers=1)
    prove(found, frame, lived_again(found, place, cut))


def test_answers_that_are_missing_and_trials_that_differ_between_subjects():
    place = make(PLACE, n_visits=12)

    def cut(frame):
        even = frame["subject"].astype(int) % 2 == 0
        return frame[even | (frame["trial"] < 24)]

    frame = cut(people(MODEL, place, 12, 3))
    first = frame["subject"].isin(["0", "1"]) & (frame["trial"] % 11 == 0)
    frame = withheld(frame, first)
    found = fit(Trials.from_frame(frame), MODEL, environment=PLACE, workers=1)
    prove(found, frame, lived_again(found, place, cut))
    assert any("no readable answer" in sentence for sentence in found.sentences)


def test_one_subject_of_whom_all_is_told_but_who_shows_no_group():
    place = make(PLACE)
    frame = people(MODEL, place, 1, 5)
    found = fit(Trials.from_frame(frame), MODEL, environment=PLACE, workers=1)
    prove(found, frame, lived_again(found, place, lambda rows: rows))
    assert found.simulated.law == "prior"


def test_sessions_of_one_mind():
    place = make(PLACE, n_visits=6)
    frame = people(MODEL, place, 3, 6)
    found = fit(Trials.from_frame(frame), MODEL, environment=PLACE, pooled=True, workers=1)
    assert found.sentences[0].startswith("All sessions were fitted as those of one mind")
    facts = SimpleNamespace(
        content=found.to_dict(), trials=frame.assign(subject="all"), likelihood=likelihood
    )
    check(REPORT, found.sentences[:4], facts)


def test_nobody_answered():
    place = make(PLACE, n_visits=6)
    frame = people(MODEL, place, 3, 8)
    frame = withheld(frame, np.ones(len(frame), dtype=bool))
    found = fit(Trials.from_frame(frame), MODEL, environment=PLACE, workers=1)
    prove(found, frame, None)
    assert not found.support


def test_units_are_not_called_subjects():
    place = make(PLACE)
    frame = people(MODEL, place, 4, 9)
    unit = ("subject", "context")

    def one_context(rows):
        return rows[rows["context"] == rows["subject"].astype(int) % 4]

    found = fit(Trials.from_frame(frame), MODEL, environment=PLACE, unit=unit, workers=1)
    assert found.sentences[0].startswith("Units are told apart by subject and context; 16 were")
    prove(found, frame, lived_again(found, place, one_context))
    page = fit_page(found)
    titles = [title for title, *_ in page.tables]
    told = " ".join([*found.sentences, *titles, *(f.why for f in page.findings)])
    assert "subject" not in told.replace("by subject and context", "").lower()
    assert found.group["alpha"].meaning == "median unit"


@pytest.mark.parametrize(
    ("model", "place", "cut"),
    [
        ("horizon_blind", make("horizon", n_games=40), lambda f: f[f["play"] == 0]),
        ("two_step_reduced", make("two_step", n_days=60), lambda f: f[f["trial"] < 60]),
        ("hyperbolic_discounter", make("temporal_discounting"), lambda f: f[f["item"] < 3]),
        ("change_point_observer", make("restless_bandit"), lambda f: f[f["trial"] < 30]),
        ("rescorla_wagner", make("reversal_learning"), lambda f: f[f["trial"] < 60]),
        ("balloon_pumper", make("balloon_risk"), lambda f: f[f["balloon"] < 8]),
        ("noisy_or", make("collider", domains=["weather"], senses=["ppp"]), lambda f: f),
        ("noisy_or", make("collider"), lambda f: f[f["query"] == 0]),
        (
            "weighted_bayes",
            make("probabilistic_reasoning", n_problems=30),
            lambda f: f[f["trial"] < 15],
        ),
        (
            "random_utility",
            make("diagnosis", n_contexts=12, repeats=2),
            lambda f: f[f["repetition"] == 0],
        ),
        ("belief_sampler", make("coins"), lambda f: f[f["kind"] == 0]),
        ("linear_observer", make("marker_location"), lambda f: f[f["window"] == 1]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_part_of_each_experiment(model, place, cut):
    frame = cut(people(model, place, 8, 11))
    # By maximum likelihood a few observers run away, and one of them makes a correlation.
    method = "map" if model == "linear_observer" else "mle"
    found = fit(Trials.from_frame(frame), model, environment=place.name, method=method, workers=1)
    told = [s for s in texts_of(found) if " prefer" not in s and "pure chance" not in s]
    again = lived_again(found, place, cut, n=100)
    trials = Trials.from_frame(frame).frame
    facts = SimpleNamespace(content=found.to_dict(), trials=trials, whole=frame, again=again)
    check(REPORT, told, facts)


@pytest.mark.parametrize("all_trials", [False, True])
def test_which_trials_were_fitted_is_told(all_trials):
    place = make("horizon", n_games=20)
    frame = people("horizon_blind", place, 6, 13)
    frame = frame[(frame["subject"] != frame["subject"].iloc[0]) | (frame["play"] > 0)]
    given = {"environment": "horizon", "method": "mle", "all_trials": all_trials, "workers": 1}
    found = fit(Trials.from_frame(frame), "horizon_blind", **given)
    about = ("trials were fitted", "were fitted (", "All trials were", "Left out")
    told = [s for s in found.sentences if any(part in s for part in about)]
    assert len(told) == (2 if all_trials else 3)
    check(REPORT, told, SimpleNamespace(content=found.to_dict(), whole=frame))


@pytest.fixture(scope="module")
def group_of_four():
    """A group model that is compiled once, and its data."""
    frame = people(MODEL, make(PLACE, n_visits=6), 4, 14)
    data = ModelData.read(AGENTS[MODEL], Trials.from_frame(frame), 2)
    return group_model.GroupModel.build(data), data


@pytest.mark.parametrize("divergences", [0, 3])
def test_what_was_tried_is_told_where_sampling_does_not_converge(
    monkeypatch, group_of_four, divergences
):
    """400 effective draws cannot come of 80; divergences, which no data promise, are put there."""
    own = group_model.check_convergence

    def judged(posterior, effects, found):
        return own(posterior, effects, found + divergences)

    monkeypatch.setattr(group_model, "check_convergence", judged)
    model, data = group_of_four
    lines = []
    sampled = model.sample(data, draws=10, tune=20, seed=3, rounds=2, tell=lines.append)
    content = {"divergences": sampled.divergences}
    facts = SimpleNamespace(content=content, lines=lines, reasons=sampled.reasons)
    told = _warning(sampled)
    assert len(told) == (3 if sampled.divergences else 2)
    check(REPORT, told[1:], facts)


@pytest.mark.parametrize(
    ("draws", "verdict"),
    [
        (np.abs(np.random.default_rng(1).normal(0.0, 0.5, 4000)), "stays open"),
        (np.random.default_rng(2).normal(0.8, 0.1, 4000), "differ."),
        (np.abs(np.random.default_rng(3).normal(0.0, 0.02, 4000)), "are alike."),
    ],
    ids=["prior", "far from 0", "at 0"],
)
def test_a_spread_is_above_0_whatever_the_data_say(draws, verdict):
    """All of these intervals exclude 0; only the Bayes factor tells them apart."""
    name = "sd(b_prior | place)"
    dims = ("chain", "draw", "factor", "parameter")
    spread = xr.DataArray(draws.reshape(4, -1, 1, 1), dims=dims)
    spread = spread.assign_coords(factor=["place"], parameter=["b_prior"])
    parameters = AGENTS["weighted_bayes"].parameters
    stub = SimpleNamespace(posterior={"level_sd": spread}, parameters=parameters)
    stub._spread_differs = partial(inference.HierarchicalFit._spread_differs, stub)
    factor = inference.HierarchicalFit.levels_differ(stub, name)
    low, high = np.quantile(draws, [0.05, 0.95])
    assert low > 0
    told = _about_effect(name, GroupValue(draws.mean(), low, high, "sd", factor))
    facts = SimpleNamespace(content={"model": "weighted_bayes"}, draws={name: draws})
    check(REPORT, [told], facts)
    assert verdict in told


def test_the_weight_of_a_regressor_is_told_with_its_side_of_0():
    for centre in (0.5, 0.1):
        draws = np.random.default_rng(4).normal(centre, 0.2, 4000)
        low, high = np.quantile(draws, [0.05, 0.95])
        told = _about_effect("b_0 ~ old", GroupValue(draws.mean(), low, high, "weight"))
        check(REPORT, [told], SimpleNamespace(draws={"b_0 ~ old": draws}))


def test_words_between_two_verdicts_are_neither_read_nor_condemned():
    """Any word of a verdict is told: what is unsettled as such, what is not judged as that."""
    place = make(PLACE, n_visits=6)
    frame = people(MODEL, place, 6, 12)
    found = fit(Trials.from_frame(frame), MODEL, environment=PLACE, workers=1)
    words = ("between recoverable and weak", "not judged", "between weak and not identified")
    support = {
        name: replace(found.support[name], verdict=word)
        for name, word in zip(found.parameters, words, strict=True)
    }
    changed = replace(found, support=support)
    of_fits = (" r = ", "drawn", "cannot be read from these rows")
    told = [s for s in _about_support(changed) if not any(part in s for part in of_fits)]
    check(REPORT, told, SimpleNamespace(content=changed.to_dict(), trials=frame))
    for sentence in (
        "150 minds do not settle whether differences between single subjects in alpha can be read.",
        "Nothing is judged of beta.",
        "So differences between single subjects in kappa should not be read off these estimates.",
    ):
        assert sentence in told


def test_the_command_of_a_page_repeats_which_trials_were_fitted_and_how_they_were_sampled():
    frame = people("horizon_blind", make("horizon", n_games=10), 5, 15)
    given = {"environment": "horizon", "method": "mle", "workers": 1}
    found = fit(Trials.from_frame(frame), "horizon_blind", all_trials=True, **given)
    assert "--all-trials" in fit_page(found).command
    sampled = replace(found, method="hierarchical", options={
        **found.options, "all_trials": False, "target_accept": 0.9, "most_minutes": 5.0,
    })  # fmt: skip
    command = fit_page(sampled).command
    assert command.endswith("--target-accept 0.9 --most-minutes 5")
    assert "--all-trials" not in command


def test_a_posterior_that_is_not_to_be_used_says_so_above_all_else():
    """It was one of twenty bullets under a verdict on the predictive checks."""
    frame = people("perseverator", make(PLACE, n_visits=2), 3, 15)
    found = fit(Trials.from_frame(frame), "perseverator", environment=PLACE, method="mle")
    warning = "The sampling did not converge; do not use these numbers: 1 divergent draw."
    unsound = replace(
        found,
        method="hierarchical",
        verdict="not converged",
        divergences=1,
        sampling={"kappa": {"r_hat": 1.0, "ess_bulk": 900.0, "ess_tail": 800.0}},
        sentences=(warning, *found.sentences),
    )
    page = fit_page(unsound)
    first = page.findings[0]
    assert (first.word, first.tone) == ("not converged", "bad")
    assert warning not in page.sentences
    assert warning in unsound.to_dict()["sentences"]
    check(
        REPORT, [f"{first.name}: {first.word}. {first.why}"], SimpleNamespace(
            content=unsound.to_dict()
        )
    )  # fmt: skip
    assert not any(one.word == "not converged" for one in fit_page(found).findings)
