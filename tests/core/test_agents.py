"""The contract of every agent, run over the registry."""

import re
import sys
from functools import cache
from itertools import groupby
from math import exp
from operator import itemgetter

import numpy as np
import pandas as pd
import pytest
from registry_pairs import made, pairs

from knownminds.agents import AGENTS, Model, play, simulate
from knownminds.agents.sequences import LANES
from knownminds.environments import ENVIRONMENTS, Trials, make
from knownminds.inference import ModelData, maximum_a_posteriori
from knownminds.validation.recovery.parameter_recovery import shuffled

PAIRS = pairs()
pytestmark = pytest.mark.parametrize("model", AGENTS.values(), ids=AGENTS.keys())


# Settings with which all courses of a session can be followed.
TINY = {
    "instrumental_learning": {"n_visits": 2, "win_probability": ((0.3, 0.7), (0.5, 0.5))},
    "two_step": {"n_days": 3},
    "iowa_gambling": {"n_cards": 4},
    "horizon": {"n_games": 2, "long_horizon": 3},
    "temporal_discounting": {},
    "balloon_risk": {"n_balloons": 2, "maxima": (4, 2)},
    "coins": {"faces": "heads", "weights": (1, 3), "kinds": "single"},
    "counts": {"laws": "poisson", "means": (2.0,), "kinds": "aside"},
    "linked_coins": {"n_coins": 2, "faces": "heads", "weights": (2,), "correlations": (0.5,)},
    "ambiguity": {"middles": [0.5], "widths": [0.5], "steps": [-0.1, 0.0, 0.1]},
    "ultimatum": {"offers": [20], "proposals": [[[0, 1], [50, 1]], [[10, 1], [50, 0.5]]]},
    "public_goods": {"endowment": 1, "multipliers": [1.6]},
    "risky_choice": {
        "problems": [[[[50, 1]], [[100, 0.5], [0, 0.5]]], [[[0, 1]], [[80, 0.3], [-50, 0.7]]]]
    },
}


# Settings in which a model remembers what it can remember.
WHOLE = {
    name: {"modality": "all"}
    for name in ("cue_combiner", "cue_combiner_equal", "cue_combiner_optimal")
}


# Sessions of the size of others, where an experiment's own are long.
SIZED = {"diagnosis": {"network": "fever", "n_contexts": 12, "repeats": 2}}


# Who repeats what was often chosen, or leans to one action, chooses it often in whatever order.
LOPSIDED = {
    ("choice_kernel", "beta_c"),
    ("rescorla_wagner_choice_kernel", "beta_c"),
    ("fictitious_update", "beta"),
    ("fictitious_update_dual", "beta"),
}
# A lean to one action is told by how often it was chosen, in whatever order.
LEANS = {("fictitious_update", "bias"), ("fictitious_update_dual", "bias")}


def sized(name, **settings):
    return make(name, **{**SIZED.get(name, {}), **settings})


def given(row):
    """Return action and response of a row, None where there is none."""
    found = (row.get(name) for name in ("action", "response"))
    return tuple(None if pd.isna(value) else value for value in found)


@cache
def playable(model):
    return [name for name in ENVIRONMENTS if model.plays(made(name))]


def home(model, units=None):
    """Make the first experiment that the model can play, of so many units if not its own."""
    name, settings = playable(model)[0], WHOLE.get(model.name, {})
    place = sized(name, **settings)
    return sized(name, **{**settings, place.size: units}) if units and place.size else place


@cache
def compiled_with_lapses():
    """Models whose kernels are compiled with lapses too: all whose kernel is written by hand.

    A printed kernel with lapses differs from the one without in the lines of one `else`, the same
    for all models that answer alike: it is compiled for the first of these in each experiment. Of
    the others the lines are those, and the compiler's own check runs them as plain Python, with
    their slopes, against the definition (`check_kernels`) before any kernel is used.
    """
    first = {}
    for model in AGENTS.values():
        lines = model.name
        if issubclass(model, Model) and "log_likelihood" not in vars(model):
            blocks = re.findall(
                r"^( *)else:\n((?:\1    .*\n)+)", model.kernel_source(), re.MULTILINE
            )
            lines = tuple(" ".join(block.split()) for _, block in blocks)
            assert blocks
        first.setdefault((lines, playable(model)[0]), model)
    return list(first.values())


def drawn(model, n, seed=1):
    return model.parameters.draw(np.random.default_rng(seed), n)


def one(model, theta, lapse=0.0):
    return model.from_theta(theta, lapse=lapse, actions=home(model).n_actions)


def plain_log_likelihood(model, theta, frame, lapse):
    """Follow one subject with the step-loop agent: no kernel, no array layout.

    Returns the log-likelihood, and how far rounding may have moved it: a share near 1 is only
    known to the last digit of a double, so that of the other action is wrong by as much.
    """
    total, rounding, place = 0.0, 0.0, home(model)
    span = place.response_range
    for _, session in frame.groupby("session"):
        agent = model.from_theta(theta, lapse=lapse, actions=place.n_actions)
        for row in session.to_dict("records"):
            action, response = given(row)
            own = agent.log_probability(row, action, response, span)
            total += own
            rounding += 4e-16 * exp(min(-own, 700.0))
            agent.learn(row, -1 if action is None else action, row["reward"])
    return total, rounding


def courses(environment, design):
    """Follow every course that a session of actions can take: its rows, one list for each."""
    begun, found = [()], []
    while begun:
        before = begun.pop()
        observation, _ = environment.reset(options={"design": design})
        rows = []
        for action in before:
            seen = observation
            observation, reward, over, _, info = environment.step(action)
            rows.append({**seen, "action": action, "reward": reward, **info.get("brought", {})})
        if before and over:
            found.append(rows)
        else:
            begun += [(*before, action) for action in range(environment.n_actions)]
    return found


def censored(model):
    """Whether the likelihood knows that numbers were cut off; None where the range is not left."""
    return getattr(model, "censored", None)


@pytest.mark.parametrize("lapse", [0.0, 0.15])
def test_kernel_and_step_loop_play_the_same_session(model, lapse):
    for name in [p for m, p in PAIRS if m == model.name]:
        environment, theta = sized(name), drawn(model, 6)
        fused = simulate(model, theta, environment, 11, address=(3,), lapse=lapse)
        loop = [
            play(
                model.from_theta(theta[i], lapse=lapse, actions=environment.n_actions),
                environment, 11, 3, i,
            )
            for i in range(6)
        ]  # fmt: skip
        # Numbers that are given may differ in the last digit, as compilers order sums anew.
        frames = [fused.frame, Trials.concatenate(loop).frame]
        pd.testing.assert_frame_equal(*frames, check_exact=False, rtol=1e-12, atol=1e-12)
        if "action" in fused.frame:
            assert fused.frame["action"].equals(frames[1]["action"])


@pytest.mark.parametrize("lapse", [None, 0.15])
def test_gradient_is_that_of_finite_differences(model, lapse):
    if lapse and model not in compiled_with_lapses():
        return  # the same lines as another model's
    trials = simulate(model, drawn(model, 8), home(model), 5)
    data, z = (
        ModelData.read(model, trials, all_trials=True),
        np.random.default_rng(2).normal(0, 1, (8, 16)),
    )
    theta = model.parameters.constrain(z[:, : len(model.parameters)])
    rates = None if lapse is None else np.full(8, lapse)
    gradient = data.log_likelihood(theta, rates)[1]
    wide = theta if lapse is None else np.column_stack([theta, rates])

    def at(values):
        if lapse is None:
            return data.log_likelihood(values)[0]
        return data.log_likelihood(values[:, :-1], values[:, -1])[0]

    for k in range(wide.shape[1]):
        # Fourth-order differences: the error is about h**4 plus rounding over h, relative to the
        # size of the log-likelihood.
        h = np.zeros_like(wide)
        # Filters that answers move bend more within such a step than the bound below allows.
        size = 3e-4 if model.given == "either" else 1e-3
        h[:, k] = size * np.minimum(1.0, np.abs(wide[:, k]))
        difference = 8 * (at(wide + h) - at(wide - h)) - (at(wide + 2 * h) - at(wide - 2 * h))
        numeric = difference / (12 * h[:, k])
        assert np.allclose(gradient[:, k], numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lapse", [0.0, 0.15])
def test_kernel_agrees_with_a_plain_python_likelihood(model, lapse):
    if lapse and model not in compiled_with_lapses():
        return  # the same lines as another model's
    theta = drawn(model, 5, seed=4)
    # Unequal sessions, two of them for one subject, so that lanes have unequal lengths.
    parts = []
    for i, units in enumerate((3, 24, 7, 2, 12)):
        frame = simulate(model, theta[i : i + 1], home(model, units), i).to_frame()
        parts.append(Trials.from_frame(frame.assign(subject=str(i))))
    again = simulate(model, theta[:1], home(model, 5), 9).to_frame()
    parts.append(Trials.from_frame(again.assign(subject="1", session="1")))
    trials = Trials.concatenate(parts)
    data = ModelData.read(model, trials, home(model).n_actions, all_trials=True)
    rates = np.full(5, lapse) if lapse else None
    kernel = data.log_likelihood(theta, rates)[0]
    plain = [
        plain_log_likelihood(model, theta[i], trials.frame[trials.frame.subject == name], lapse)
        for i, name in enumerate(data.subjects)
    ]
    total, rounding = np.array(plain).T
    told = rounding < 1e-3  # the others had shares that a double cannot tell from 0
    assert told.sum() >= 4
    apart = np.abs(kernel - total)[told]
    assert (apart < 1e-10 * (1 + np.abs(total[told])) + rounding[told]).all()


@pytest.mark.parametrize("lapse", [None, 0.15])
def test_probabilities_of_all_courses_of_a_session_sum_to_one(model, lapse):
    if lapse and model not in compiled_with_lapses():
        return  # the same lines as another model's
    if model.given != "action":
        return  # the next test integrates over the numbers that are given
    name = playable(model)[0]
    environment = make(name, **TINY[name])
    environment.reset(seed=8)
    found = courses(environment, environment.design)
    rows = [{"subject": str(k), **row} for k, course in enumerate(found) for row in course]
    trials = Trials.from_frame(pd.DataFrame(rows))
    data = ModelData.read(model, trials, environment.n_actions, all_trials=True)
    theta = np.repeat(drawn(model, 1, seed=6), len(found), axis=0)
    rates = None if lapse is None else np.full(len(found), lapse)
    assert np.exp(data.log_likelihood(theta, rates)[0]).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("lapse", [None, 0.15])
def test_the_density_of_numbers_given_integrates_to_one(model, lapse):
    if lapse and model not in compiled_with_lapses():
        return  # the same lines as another model's
    if model.given == "action":
        return  # the test before sums over them
    environment, n = home(model), 20_000
    first, _ = environment.reset(seed=8)
    low, high = environment.response_range
    if censored(model) is False:
        # The law of a number before it is cut off, which has to end somewhere, and no lapse.
        low, high = 4 * low - 3 * high, 4 * high - 3 * low
        if lapse is not None:
            return
    at = low + (high - low) * (np.arange(n) + 0.5) / n
    if censored(model):
        at[0], at[-1] = low, high  # where the log density is a log probability
    actions = range(environment.n_actions) if model.given == "both" else [None]
    total = 0.0
    for action in actions:
        shown = {"subject": np.repeat(np.arange(n), 2).astype(str), **first}
        rows = pd.DataFrame({**shown, "trial": np.tile([0, 1], n), "response": np.repeat(at, 2)})
        rows["reward"] = 0.0
        if model.given in ("both", "either"):
            rows["action"] = pd.array([action] * len(rows), dtype="Int64")
        rows["outcome"] = np.tile(["ok", "malformed"], n)
        gone = rows["outcome"] == "malformed"  # a fit wants two trials of everybody
        rows.loc[gone, [c for c in ("action", "response", "reward") if c in rows]] = None
        data = ModelData.read(
            model, Trials.from_frame(rows), environment.n_actions, all_trials=True
        )
        theta = np.repeat(drawn(model, 1, seed=6), n, axis=0)
        rates = None if lapse is None else np.full(n, lapse)
        own = np.exp(data.log_likelihood(theta, rates)[0])
        if censored(model):
            total += own[0] + own[-1]
            own[0], own[-1] = own[1], own[-2]
        total += own.mean() * (high - low)
    # The midpoint rule at 20,000 points; a density may be clipped within 1e-5 of the ends.
    assert total == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("lapse", [None, 0.15])
def test_probabilities_of_a_decision_after_a_stated_number_sum_to_one(model, lapse):
    if lapse and model not in compiled_with_lapses():
        return  # the same lines as another model's
    if model.given != "either":
        return
    environment = home(model)
    environment.reset(seed=8)
    table = environment.design.table
    decision = int(np.flatnonzero(environment.asks(table) == "action")[0])
    n = environment.n_actions
    shown = {name: column[[0, decision] * (n + 1)] for name, column in table.items()}
    rows = pd.DataFrame({"subject": np.repeat(np.arange(n + 1), 2).astype(str), **shown})
    rows["trial"] = np.tile([0, decision], n + 1)
    rows["response"] = np.tile([0.3, np.nan], n + 1)
    # The last subject has stated a number and not decided.
    rows["action"] = pd.array([x for a in (*range(n), None) for x in (None, a)], dtype="Int64")
    rows["outcome"] = ["ok"] * (2 * n + 1) + ["malformed"]
    data = ModelData.read(model, Trials.from_frame(rows), n, all_trials=True)
    theta = np.repeat(drawn(model, 1, seed=6), n + 1, axis=0)
    rates = None if lapse is None else np.full(n + 1, lapse)
    own = data.log_likelihood(theta, rates)[0]
    assert np.exp(own[:-1] - own[-1]).sum() == pytest.approx(1.0, abs=1e-12)
    assert np.ptp(own[:-1]) > 1e-6


def test_missing_trials_add_nothing_and_teach_nothing(model):
    trials = simulate(model, drawn(model, 3), home(model, 6), 5)
    frame = trials.to_frame()
    gone = np.random.default_rng(0).random(len(frame)) < 0.3
    if "stage" in frame:  # without a first choice there is no second stage
        gone[:] = False
    holes = frame.copy()
    given = [name for name in ("action", "response", "reward") if name in frame]
    holes.loc[gone, given] = None
    holes.loc[gone, "outcome"] = "malformed"
    theta = drawn(model, 3, seed=3)
    with_holes = ModelData.read(model, Trials.from_frame(holes), 2, all_trials=True)
    without = ModelData.read(model, Trials.from_frame(frame[~gone]), 2, all_trials=True)
    assert np.array_equal(with_holes.n_trials, without.n_trials)
    for left, right in zip(
        with_holes.log_likelihood(theta), without.log_likelihood(theta), strict=True
    ):
        assert np.allclose(left, right, rtol=1e-12, atol=1e-12)


def test_simulated_choices_have_the_probabilities_the_agent_states(model):
    environment, theta = home(model, 4), drawn(model, 1, seed=7)
    # Some ten thousand decisions, or a hundred first numbers.
    n = 100 if model.given == "response" else min(600, max(100, 12_000 // environment.n_trials))
    low, high = environment.response_range
    frame = simulate(model, np.repeat(theta, n, axis=0), environment, 3).frame
    if model.given == "response":
        frame = frame.groupby("subject").head(1)  # of a session's numbers all that is looked at
    agent, residual, variance = one(model, theta[0]), 0.0, 0.0
    points = low + (high - low) * (np.arange(1000) + 0.5) / 1000
    # Choices minus stated probabilities have mean 0 and a known variance. Of the first number of
    # a session it is whether it lies in the lower half, or where hundredths are given, up to .50.
    half = low + 0.505 * (high - low)
    by_subject = itemgetter("subject")
    for _, session in groupby(frame.to_dict("records"), key=by_subject):
        agent.reset()
        for place, row in enumerate(session):
            action, response = given(row)
            if action is None and place:
                continue
            if action is None:
                below = [exp(agent.log_density(row, x)) for x in points[:505]]
                at_the_end = exp(agent.log_density(row, low)) if censored(model) else 0.0
                p = min(sum(below) * (high - low) / 1000 + at_the_end, 1.0)
                happened = response < half
            else:
                p, happened = agent.probabilities(row)[1], action == 1
            residual += happened - p
            variance += p * (1 - p)
            agent.learn(row, -1 if action is None else action, row["reward"])
    # Four standard errors: a correct simulator fails once in 16,000 seeds.
    assert abs(residual) < 4 * np.sqrt(variance)


def test_parameters_are_recovered_and_a_shuffled_session_does_not_recover(model):
    if "context" not in home(model).fields.stimulus or not home(model).feedback:
        return  # what a shuffle leaves is told in the tests of the model itself
    n = 400
    theta = drawn(model, n)
    trials = simulate(model, theta, home(model), 2)
    # Permuting (action, reward) within subjects destroys what was learned; what survives, such
    # as how lopsided someone's choices are, is little.
    fits = [maximum_a_posteriori(model, t) for t in (trials, shuffled(trials))]
    truth = model.parameters.unconstrain(theta)
    for k, name in enumerate(model.parameters.names):
        recovered, lost = (np.corrcoef(truth[:, k], fit.z[:, k])[0, 1] for fit in fits)
        # Fisher's z of either has the standard error 1 / sqrt(n - 3); 3.5 of the difference's.
        bound = 3.5 * np.sqrt(2 / (n - 3))
        assert recovered > 0.25, name
        if (model.name, name) in LEANS:
            assert lost > 0.25, name
            continue
        assert np.arctanh(recovered) - np.arctanh(lost) > bound, name
        assert abs(lost) < 0.25 or (model.name, name) in LOPSIDED, name


def test_lanes_are_as_many_as_the_layout_has(model):
    if issubclass(model, Model):
        assert f"LANES = {LANES}\n" in model.kernel_source()
    else:
        assert sys.modules[model.__module__].LANES == LANES


def test_refuses_unknown_names_and_values_outside_the_support(model):
    with pytest.raises(ValueError, match="parameters of this model are"):
        model(**{name: 0.5 for name in model.parameters.names}, alpha_possitive=0.1)
    for parameter in model.parameters:
        if np.isfinite(parameter.support.lower):
            values = dict.fromkeys(model.parameters.names, 0.5) | {parameter.name: -0.1}
            with pytest.raises(ValueError, match=f"{parameter.name} lies in"):
                model(**values)


def test_a_model_that_cannot_play_an_experiment_says_so_in_one_sentence_and_a_remedy(model):
    for name in ENVIRONMENTS:
        environment = made(name)
        if model.plays(environment):
            model.check_plays(environment)
            continue
        with pytest.raises(ValueError, match=f"^{model.name} .*; .*{name}.*\\. Choose a") as told:
            model.check_plays(environment)
        assert str(told.value).count(". ") == 1
        with pytest.raises(ValueError, match="Choose a"):
            simulate(model, drawn(model, 1), environment, 0)
        with pytest.raises(ValueError, match="Choose a"):
            play(model.from_theta(drawn(model, 1)[0]), environment, 0)


def test_a_mind_made_for_another_number_of_actions_does_not_play(model):
    if model.n_actions is None and model.given != "response":
        agent = model.from_theta(drawn(model, 1)[0], actions=5)
        with pytest.raises(ValueError, match=r"between 5 actions; .* offers \d+\. Make it with"):
            play(agent, home(model), 0)


def test_what_a_model_that_remembers_nothing_does_hangs_on_no_earlier_trial(model):
    """Two prompts for one trial, with another past: the answers differ where a model remembers."""
    environment = home(model)
    records = simulate(model, drawn(model, 1), environment, 0).frame.to_dict("records")
    agent = one(model, drawn(model, 1)[0])
    last = records[-1]

    def stated():
        return agent.log_probability(last, *given(last))

    before = stated()
    for row in records[:-1]:
        action, _ = given(row)
        agent.learn(row, -1 if action is None else action, row["reward"])
    assert (before != stated()) == (model.remembers or model.given == "either")


def test_every_parameter_says_what_it_is(model):
    assert model.summary
    assert model.source
    assert all(parameter.description for parameter in model.parameters)
