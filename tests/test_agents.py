"""The contract of every agent, run over the registry."""

import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, play, simulate
from knownminds.agents.sequences import LANES
from knownminds.environments import ENVIRONMENTS, InstrumentalLearning, Trials, make
from knownminds.inference import ModelData, maximum_a_posteriori
from knownminds.validation.parameter_recovery import shuffled

pytestmark = pytest.mark.parametrize("model", AGENTS.values(), ids=AGENTS.keys())


def playable(model):
    return [name for name in ENVIRONMENTS if model.plays(make(name))]


def drawn(model, n, seed=1):
    return model.parameters.draw(np.random.default_rng(seed), n)


def plain_log_likelihood(model, theta, frame, lapse):
    """Follow one subject with the step-loop agent: no kernel, no array layout."""
    total = 0.0
    for _, session in frame.groupby("session"):
        agent = model.from_theta(theta, lapse=lapse)
        for row in session.to_dict("records"):
            total += np.log(agent.probabilities(row)[row["action"]])
            agent.learn(row, row["action"], row["reward"])
    return total


@pytest.mark.parametrize("lapse", [0.0, 0.15])
def test_kernel_and_step_loop_play_the_same_session(model, lapse):
    for name in playable(model):
        environment, theta = make(name), drawn(model, 6)
        fused = simulate(model, theta, environment, 11, address=(3,), lapse=lapse)
        loop = [
            play(
                model.from_theta(theta[i], lapse=lapse, actions=environment.n_actions),
                environment, 11, 3, i,
            )
            for i in range(6)
        ]  # fmt: skip
        assert fused.frame.equals(Trials.concatenate(loop).frame)


@pytest.mark.parametrize("lapse", [None, 0.15])
def test_gradient_is_that_of_finite_differences(model, lapse):
    trials = simulate(model, drawn(model, 8), InstrumentalLearning(), 5)
    data, z = ModelData.read(model, trials), np.random.default_rng(2).normal(0, 1, (8, 9))
    theta = model.parameters.constrain(z[:, : len(model.parameters)])
    rates = None if lapse is None else np.full(8, lapse)
    gradient = data.log_likelihood(theta, rates)[1]
    wide = theta if lapse is None else np.column_stack([theta, rates])

    def at(values):
        if lapse is None:
            return data.log_likelihood(values)[0]
        return data.log_likelihood(values[:, :-1], values[:, -1])[0]

    for k in range(wide.shape[1]):
        # Fourth-order differences: the error is about h**4 plus rounding over h, below 1e-8.
        h = np.zeros_like(wide)
        h[:, k] = 1e-3 * np.minimum(1.0, np.abs(wide[:, k]))
        difference = 8 * (at(wide + h) - at(wide - h)) - (at(wide + 2 * h) - at(wide - 2 * h))
        numeric = difference / (12 * h[:, k])
        assert np.allclose(gradient[:, k], numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lapse", [0.0, 0.15])
def test_kernel_agrees_with_a_plain_python_likelihood(model, lapse):
    theta = drawn(model, 5, seed=4)
    # Unequal sessions, two of them for one subject, so that lanes have unequal lengths.
    parts = []
    for i, visits in enumerate((3, 24, 7, 1, 12)):
        frame = simulate(model, theta[i : i + 1], InstrumentalLearning(visits), i).to_frame()
        parts.append(Trials.from_frame(frame.assign(subject=str(i))))
    again = simulate(model, theta[:1], InstrumentalLearning(5), 9).to_frame()
    parts.append(Trials.from_frame(again.assign(subject="1", session="1")))
    trials = Trials.concatenate(parts)
    data = ModelData.read(model, trials)
    rates = np.full(5, lapse) if lapse else None
    kernel = data.log_likelihood(theta, rates)[0]
    plain = [
        plain_log_likelihood(model, theta[i], trials.frame[trials.frame.subject == name], lapse)
        for i, name in enumerate(data.subjects)
    ]
    assert np.allclose(kernel, plain, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("lapse", [None, 0.15])
def test_probabilities_of_all_response_sequences_sum_to_one(model, lapse):
    environment = InstrumentalLearning(n_visits=2, win_probability=((0.3, 0.7), (0.5, 0.5)))
    environment.reset(seed=8)
    design = environment.design
    rows = []
    for k, actions in enumerate(product(range(2), repeat=environment.n_trials)):
        chosen = np.array(actions)
        rows.append(
            {
                "subject": [str(k)] * len(chosen),
                "trial": range(len(chosen)),
                "context": design.table["context"],
                "first": design.table["first"],
                "action": chosen,
                "reward": environment.rewards(design, chosen),
            }
        )
    columns = {name: np.concatenate([np.asarray(row[name]) for row in rows]) for name in rows[0]}
    data = ModelData.read(model, Trials.from_frame(pd.DataFrame(columns)), n_actions=2)
    theta = np.repeat(drawn(model, 1, seed=6), len(rows), axis=0)
    rates = None if lapse is None else np.full(len(rows), lapse)
    assert np.exp(data.log_likelihood(theta, rates)[0]).sum() == pytest.approx(1.0, abs=1e-12)


def test_missing_trials_add_nothing_and_teach_nothing(model):
    trials = simulate(model, drawn(model, 3), InstrumentalLearning(6), 5)
    frame = trials.to_frame()
    gone = np.random.default_rng(0).random(len(frame)) < 0.3
    holes = frame.copy()
    holes.loc[gone, ["action", "reward"]] = None
    holes.loc[gone, "outcome"] = "malformed"
    theta = drawn(model, 3, seed=3)
    with_holes = ModelData.read(model, Trials.from_frame(holes), n_actions=2)
    without = ModelData.read(model, Trials.from_frame(frame[~gone]), n_actions=2)
    assert np.array_equal(with_holes.n_trials, without.n_trials)
    for left, right in zip(
        with_holes.log_likelihood(theta), without.log_likelihood(theta), strict=True
    ):
        assert np.allclose(left, right, rtol=1e-12, atol=1e-12)


def test_simulated_choices_have_the_probabilities_the_agent_states(model):
    environment, theta = InstrumentalLearning(4), drawn(model, 1, seed=7)
    n = 4000
    trials = simulate(model, np.repeat(theta, n, axis=0), environment, 3)
    frame = trials.frame
    # Score residuals: choices minus stated probabilities have mean 0 and a known variance.
    agent, residual, variance = model.from_theta(theta[0]), 0.0, 0.0
    for _, session in list(frame.groupby("subject", sort=False))[:600]:
        agent.reset()
        for row in session.to_dict("records"):
            p = agent.probabilities(row)[1]
            residual += row["action"] - p
            variance += p * (1 - p)
            agent.learn(row, row["action"], row["reward"])
    # Four standard errors: a correct simulator fails once in 16,000 seeds.
    assert abs(residual) < 4 * np.sqrt(variance)


def test_parameters_are_recovered_and_a_shuffled_session_does_not_recover(model):
    n = 400
    theta = drawn(model, n)
    trials = simulate(model, theta, InstrumentalLearning(), 2)
    # Permuting (action, reward) within subjects destroys what was learned; what survives, such
    # as how lopsided someone's choices are, is little.
    fits = [maximum_a_posteriori(model, t) for t in (trials, shuffled(trials))]
    truth = model.parameters.unconstrain(theta)
    for k, name in enumerate(model.parameters.names):
        recovered, lost = (np.corrcoef(truth[:, k], fit.z[:, k])[0, 1] for fit in fits)
        # Fisher's z of either has the standard error 1 / sqrt(n - 3); 3.5 of the difference's.
        bound = 3.5 * np.sqrt(2 / (n - 3))
        assert np.arctanh(recovered) - np.arctanh(lost) > bound, name
        assert abs(lost) < 0.25 < recovered, name


def test_lanes_are_as_many_as_the_layout_has(model):
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
        environment = make(name)
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
    if model.n_actions is None:
        agent = model.from_theta(drawn(model, 1)[0], actions=5)
        with pytest.raises(ValueError, match=r"between 5 actions; .* offers 2\. Make it with"):
            play(agent, InstrumentalLearning(), 0)


def test_what_a_model_that_remembers_nothing_does_hangs_on_no_earlier_trial(model):
    agent, shown = model.from_theta(drawn(model, 1)[0]), {"trial": 0, "context": 0, "first": 0}
    before = agent.probabilities(shown)
    agent.learn(shown, 1, 1.0)
    assert np.array_equal(before, agent.probabilities(shown)) != model.remembers


def test_every_parameter_says_what_it_is(model):
    assert model.summary
    assert model.source
    assert all(parameter.description for parameter in model.parameters)
