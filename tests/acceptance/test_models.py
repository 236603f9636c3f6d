"""The contract of every model: compiled for one of each kernel shape, as plain Python for all."""

from functools import cache

import numpy as np
import pytest
from registries import installed

from knownminds.agents import AGENTS, play, simulate
from knownminds.environments import ENVIRONMENTS, make
from knownminds.inference import check_agent

# One model of each kernel shape: kind of answer, memory, number of actions, world, rows that are
# prepared. A kernel written by hand is a shape of its own.
SHAPES = installed((
    "rescorla_wagner_dual", "rescorla_wagner_choice_kernel", "balloon_pumper", "weighted_bayes",
    "hyperbolic_discounter", "two_step_reduced", "horizon_explorer", "change_point_observer",
    "prospect_valence_delta", "two_scale_observer", "evidence_weigher", "kalman_observer",
    "noisy_or", "cue_combiner", "belief_sampler", "random_utility",
    "random_responder", "random_rater", "random_responder_confidence", "mutation_sampler",
))  # fmt: skip
SLOW_SHAPES = ("noisy_or", "random_utility", "mutation_sampler")  # of which a step takes long

# Settings in which a session is short, or a model uses all its parameters.
SETTINGS = {"diagnosis": {"network": "fever", "n_contexts": 12, "repeats": 2}}
WHOLE = ("cue_combiner", "cue_combiner_equal", "cue_combiner_optimal")


@cache
def made(name):
    return make(name, **SETTINGS.get(name, {}))


@cache
def environment_of(model):
    """The first experiment that a model plays."""
    name = next(name for name in ENVIRONMENTS if model.plays(made(name)))
    whole = {"modality": "all"} if model.name in WHOLE else {}
    return make(name, **SETTINGS.get(name, {}), **whole)


def drawn(model, n=1, seed=1):
    return model.parameters.draw(np.random.default_rng(seed), n)


def agent_of(model, seed=1):
    actions = environment_of(model).n_actions or None
    return model.from_theta(drawn(model, seed=seed)[0], actions=actions)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long) if n in SLOW_SHAPES else n for n in SHAPES]
)
def test_one_model_of_each_kernel_shape_keeps_the_contract(name):
    check = check_agent(AGENTS[name], environment_of(AGENTS[name]))
    assert check.ok, str(check)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in AGENTS if name not in SHAPES])
def test_every_model_keeps_the_contract(name):
    check = check_agent(AGENTS[name], environment_of(AGENTS[name]))
    assert check.ok, str(check)


@pytest.mark.parametrize("name", [n for n in AGENTS if n not in SHAPES])
def test_printed_kernels_do_what_their_definition_does(name):
    """Making them runs each new text as plain Python beside the definition; nothing is compiled."""
    model = AGENTS[name]
    agent = agent_of(model)
    agent.reset()
    kernel, design = model.simulation(environment_of(model))
    assert callable(kernel)
    assert set(design) <= {*environment_of(model).drawn, *environment_of(model).fields.shown}


all_models = pytest.mark.parametrize("model", AGENTS.values(), ids=AGENTS.keys())


@all_models
def test_every_model_and_parameter_says_what_it_is(model):
    assert model.summary
    assert model.source
    assert all(parameter.description for parameter in model.parameters)


@all_models
def test_parameters_go_to_the_unconstrained_scale_and_back(model):
    law = model.parameters
    theta = drawn(model, 50)
    assert all(p.support.contains(theta[:, k]).all() for k, p in enumerate(law))
    np.testing.assert_allclose(law.constrain(law.unconstrain(theta)), theta, rtol=1e-9, atol=1e-12)


@all_models
def test_unknown_names_and_values_outside_the_support_are_refused(model):
    values = dict(zip(model.parameters.names, drawn(model)[0].tolist(), strict=True))
    with pytest.raises(ValueError, match="alpha_possitive"):
        model(**values, alpha_possitive=0.1)
    for parameter in model.parameters:
        if np.isfinite(parameter.support.lower):
            with pytest.raises(ValueError, match=parameter.name):
                model(**values | {parameter.name: parameter.support.lower - 0.1})


@pytest.mark.parametrize("name", SHAPES)
def test_a_model_refuses_experiments_that_it_cannot_play(name):
    model = AGENTS[name]
    refused = [name for name in ENVIRONMENTS if not model.plays(made(name))]
    for name in refused[:2]:
        with pytest.raises(ValueError, match=name):
            simulate(model, drawn(model), made(name), 0)
        with pytest.raises(ValueError, match=name):
            play(agent_of(model), made(name), 0)
    assert len(refused) < len(ENVIRONMENTS)


@pytest.mark.parametrize("name", ["choice_kernel", "actor_critic"])  # of any number of actions
def test_an_agent_made_for_another_number_of_actions_does_not_play(name):
    model = AGENTS[name]
    agent = model.from_theta(drawn(model)[0], actions=5)
    with pytest.raises(ValueError, match="5 actions"):
        play(agent, environment_of(model), 0)


def answer_of(row):
    pair = (row.get(name) for name in ("action", "response"))
    return tuple(None if x is None or x != x or str(x) == "<NA>" else x for x in pair)


@pytest.mark.parametrize("name", SHAPES)
def test_only_a_model_that_remembers_hangs_on_earlier_trials(name):
    """The same trial with and without a past: the answers differ where a model remembers."""
    model = AGENTS[name]
    records = simulate(model, drawn(model), environment_of(model), 0).frame.to_dict("records")
    agent, last = agent_of(model), records[-1]
    fresh = agent.log_probability(last, *answer_of(last))
    for row in records[:-1]:
        action, _ = answer_of(row)
        agent.learn(row, -1 if action is None else action, row["reward"])
    later = agent.log_probability(last, *answer_of(last))
    assert (fresh != later) == (model.remembers or model.given == "either")


@pytest.mark.parametrize(
    "name", installed(["rescorla_wagner_dual", "horizon_explorer", "expected_value"])
)
def test_simulated_choices_have_the_probabilities_that_the_agent_states(name):
    model = AGENTS[name]
    environment, n = environment_of(model), 200
    frame = simulate(model, np.repeat(drawn(model, seed=7), n, axis=0), environment, 3).frame
    agent, residual, variance = agent_of(model, seed=7), 0.0, 0.0
    for _, session in frame.groupby("subject"):
        agent.reset()
        for row in session.to_dict("records"):
            p = agent.probabilities(row)[1]
            residual += (row["action"] == 1) - p
            variance += p * (1 - p)
            agent.learn(row, row["action"], row["reward"])
    # Choices minus their probabilities have mean 0 and this variance; a correct simulator exceeds
    # four standard errors once in 16,000 seeds.
    assert abs(residual) < 4 * np.sqrt(variance)
