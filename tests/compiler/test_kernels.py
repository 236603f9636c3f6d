"""Kernels from definitions: what they do is what the definition does, run on numbers."""

import inspect
import pickle
import re

import numpy as np
import pytest
from compiler.definitions import Asked, Forgetful, Kalman, Staged, Stayer, Teller, Weigher, world_of
from scipy.special import expit

from knownminds.agents import AGENTS, Model, RescorlaWagner, RescorlaWagnerDual
from knownminds.agents.compiler.kernels import (
    _printed,
    likelihood_text,
    outline,
    played_in,
    simulation_text,
)
from knownminds.agents.sequences import Sequences
from knownminds.environments import BalloonRisk, Horizon, TwoStep, make
from knownminds.inference import ModelData

N, TRIALS, LAPSE = 4, 20, 0.1
CASES = [
    (Forgetful, 2),
    (Forgetful, 4),
    (Staged, 2),
    (Kalman, 2),
    (Stayer, 3),
    (Teller, 3),
    (Weigher, 3),
    (Asked, 3),
]
OF_CASES = pytest.mark.parametrize(
    ("model", "actions"), CASES, ids=[f"{model.name}-{n}" for model, n in CASES]
)
WHOLE = {"stage": 2, "state": 2, "arrives": 2, "place": 5, "item": 6, "cue": 3}
GAPS = 0.15  # share of trials without an answer


def column(name, rng):
    shape = N * TRIALS
    return rng.integers(0, WHOLE[name], shape).astype(float) if name in WHOLE else rng.random(shape)


def trials(model, actions, rng):
    """Return random columns, some trials without an answer, and which have one."""
    columns = {name: column(name, rng) for name in model.columns}
    if "action" in columns:
        columns["action"] = rng.integers(0, actions, N * TRIALS).astype(float)
    if model.given == "either":
        acts = columns["cue"] == 1
        columns["action"] = np.where(acts, columns["action"], np.nan)
        columns["response"] = np.where(acts, np.nan, columns["response"])
    return columns, rng.random(N * TRIALS) >= GAPS


def by_steps(model, theta, columns, given, actions, lapse):
    """Return the log-likelihood as the step agent has it."""
    total = np.zeros(N)
    for n in range(N):
        agent = model.from_theta(theta[n], lapse=lapse, actions=actions)
        for t in range(n * TRIALS, (n + 1) * TRIALS):
            if not given[t]:
                continue
            row = {n: None if np.isnan(c[t]) else float(c[t]) for n, c in columns.items()}
            action = None if row.get("action") is None else int(row["action"])
            total[n] += agent.log_probability(row, action, row.get("response"))
            agent.learn(row, -1 if action is None else action, row.get("reward", np.nan))
    return total


SOME = [*AGENTS.values()][::8] + [m for m in AGENTS.values() if m.mixes_lapses][::2]


@pytest.mark.parametrize("model", SOME, ids=lambda model: model.name)
def test_the_columns_of_a_model_are_those_of_its_likelihood(model):
    """They are known without its slopes, which take four fifths of the time."""
    if inspect.isfunction(model.respond) and model.respond is not Model.respond:
        _, traced = _printed(model, model.n_actions or 2)
        assert outline(model)["columns"] == traced.columns


@OF_CASES
def test_likelihood_and_slopes_are_those_of_the_definition(model, actions):
    rng = np.random.default_rng(3)
    columns, given = trials(model, actions, rng)
    theta = model.parameters.draw(rng, N)
    subject = np.repeat(np.arange(N), TRIALS)
    data = ModelData.of_columns(model, list("abcd"), subject, [], columns, actions, given)
    for lapse in (None, LAPSE):
        rates = None if lapse is None else np.full(N, lapse)
        total, gradient = data.log_likelihood(theta, rates)
        plain = by_steps(model, theta, columns, given, actions, lapse or 0.0)
        np.testing.assert_allclose(total, plain, rtol=1e-10, atol=1e-10)
        for k in range(theta.shape[1]):
            h = np.zeros_like(theta)
            h[:, k] = 1e-5 * np.abs(theta[:, k])
            up, down = (data.log_likelihood(theta + sign * h, rates)[0] for sign in (1, -1))
            slopes = (up - down) / (2 * h[:, k])
            # Central differences of relative step 1e-5 are off by about 1e-10 of the third
            # derivative, and by rounding of the log-likelihood over the step, 1e-15 / 1e-5.
            np.testing.assert_allclose(gradient[:, k], slopes, rtol=1e-5, atol=1e-5)


def in_steps(model, world, theta, tables, uniforms, actions):
    """Let step agents and the world live sessions; return what was given, shown and paid."""
    lived = []
    for n in range(N):
        agent, place, span = model.from_theta(theta[n], lapse=LAPSE, actions=actions), world(), None
        place.begin()
        for t in range(TRIALS):
            drawn = type("Drawn", (), {name: whole(table[n, t]) for name, table in tables.items()})
            if world.span is not None and span != getattr(drawn, world.span):
                span = getattr(drawn, world.span)
                place.begin()
            shown = dict(place.show(drawn))
            shown.pop("present", True)
            row = {**{name: getattr(drawn, name) for name in tables}, **shown}
            numbers = type("Numbers", (), {"random": lambda self, n=None, u=uniforms[n, t]: u})()
            choice = agent.choose(row, numbers)
            given = choice if isinstance(choice, tuple) else (choice,)
            if model.given == "either":
                given = (choice, -np.inf) if isinstance(choice, int) else (-1, choice)
            action = -1 if model.given == "response" else given[0]
            paid = place.pay(drawn, action)
            reward = np.nan if paid is None else float(paid)
            agent.learn({**row, "response": given[-1]}, action, reward)
            lived.append([*given, *(float(x) for x in shown.values()), reward])
    return np.array(lived)


def whole(x):
    return x if np.ndim(x) else int(x) if float(x).is_integer() else float(x)


@OF_CASES
def test_the_simulation_plays_what_definition_and_world_do(model, actions):
    rng = np.random.default_rng(4)
    world, shapes = world_of(model, actions)
    played = played_in(model, world, shapes, actions)
    tables = {name: rng.random((N, TRIALS, *shape)) for name, shape in shapes.items()}
    for name in tables.keys() & WHOLE.keys():
        tables[name] = column(name, rng).reshape(N, TRIALS)
    if "day" in tables:
        tables["day"] = np.tile(np.arange(TRIALS) // 3, (N, 1)).astype(float)
    inner = () if model.given == "action" else (2,)
    uniforms, theta = rng.random((N, TRIALS, *inner)), model.parameters.draw(rng, N)
    sequences = Sequences.group(np.repeat(np.arange(N), TRIALS), (), N)

    def packed(table):
        return sequences.pack(table.reshape(N * TRIALS, *table.shape[2:]))

    out = played(
        theta, np.full(N, LAPSE), actions, sequences.row, sequences.start, packed(uniforms),
        *(packed(tables[name]) for name in played.tables),
    )  # fmt: skip
    names = [name for name in played.columns if name != "present"]
    got = np.column_stack([sequences.unpack(part, N * TRIALS) for part in out[: len(names)]])
    expected = in_steps(model, world, theta, tables, uniforms, actions)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def test_a_model_is_simulated_of_which_nothing_was_asked_before():
    """Its outline is traced while its simulation is: the expressions of both stay apart."""
    model = type("Fresh", (Weigher,), {"name": "fresh", "__module__": Weigher.__module__})
    assert "action" in played_in(model, *world_of(model, 3), 3).columns


class Guarded(Forgetful):
    """Calculates what Python's own functions refuse, where it is not asked for."""

    def respond(self, trial):
        low = np.where(self.values > 0, np.log(self.values), -3.0)
        return np.where(self.values > 1, np.sqrt(self.values - 1) / (1 - self.values), low)


def test_a_step_agent_survives_pickling_and_numbers_that_python_refuses():
    agent = pickle.loads(pickle.dumps(RescorlaWagnerDual(
        alpha_positive=0.3, alpha_negative=0.2, beta=2.0, kappa=0.1
    )))  # fmt: skip
    agent.learn({"trial": 0, "context": 0}, 1, 1.0)
    assert isinstance(agent.choose({"trial": 1, "context": 0}, np.random.default_rng(0)), int)
    lead = 2.0 * 0.3 * 0.5 + 0.1
    assert agent.action_probabilities({"context": 0})[1] == pytest.approx(expit(lead), rel=1e-14)
    assert agent.action_probabilities({"context": 1}).tolist() == [0.5, 0.5]
    guarded = Guarded(alpha=1.0 - 1e-12, phi=0.2, beta=1.0)
    guarded.learn({}, 0, 0.0)
    assert np.isfinite(guarded.action_probabilities({})).all()


def test_who_goes_by_rewards_alone_does_not_play_where_they_hang_on_more():
    for place in (TwoStep(), Horizon(), BalloonRisk()):
        with pytest.raises(ValueError, match=r"goes by rewards alone; those of .* as well"):
            RescorlaWagner.check_plays(place)


@pytest.mark.parametrize(
    ("model", "place"),
    [
        ("rescorla_wagner", "instrumental_learning"),  # actions
        ("two_step_hybrid", "two_step"),  # stages, and what the world shows
        ("linear_observer", "marker_location"),  # numbers
        ("rescorla_wagner_confidence", "restless_bandit"),  # both
        ("balloon_pumper", "balloon_risk"),  # trials that fall away
    ],
)
def test_a_loop_over_lanes_stores_into_one_array(model, place):
    """Or LLVM proves nothing of two that do not overlap, and no loop is turned into vectors."""
    texts = simulation_text(AGENTS[model], make(place)), likelihood_text(AGENTS[model])
    trials = re.findall(r"\n {8}for t in .*?\n {4,8}\w", "".join(texts), re.DOTALL)
    assert len(trials) == 3
    for loop in re.split(r"for i in range.*", "".join(trials)):
        assert len(set(re.findall(r"\n +(\w+)\[.*\] \+?= ", loop))) <= 1
