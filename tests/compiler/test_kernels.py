"""Kernels from definitions: what they do is what the definition does, and a mistake is found."""

import pickle
import re

import hand_written_learner
import numpy as np
import pytest
from compiler.definitions import (
    Forgetful,
    Kalman,
    Staged,
    Stayer,
    Teller,
    Weigher,
    world_of,
)
from scipy.special import expit

from knownminds.agents import (
    RescorlaWagner,
    RescorlaWagnerDual,
    simulate,
)
from knownminds.agents.compiler import expressions as ex
from knownminds.agents.compiler.cache import loaded, simulation_source
from knownminds.agents.compiler.checking import _as_python, check_kernels, check_simulation
from knownminds.agents.compiler.program import trace
from knownminds.environments import (
    BalloonRisk,
    Horizon,
    InstrumentalLearning,
    TwoStep,
)
from knownminds.inference import ModelData

CASES = [
    (Forgetful, 2),
    (Forgetful, 4),
    (Staged, 2),
    (Kalman, 2),
    (Stayer, 3),
    (Teller, 3),
    (Weigher, 3),
]


def simulation_of(model, actions):
    with ex.new_graph():
        return simulation_source(trace(model, actions, *world_of(model, actions)))


@pytest.mark.parametrize(("model", "actions"), CASES, ids=[f"{m.name}-{n}" for m, n in CASES])
def test_draws_likelihood_and_slopes_are_those_of_the_definition(model, actions):
    check_kernels(model, model.kernel_source(actions), actions)
    world, shapes = world_of(model, actions)
    check_simulation(model, simulation_of(model, actions), actions, world, shapes)


def test_a_generated_kernel_does_what_the_one_written_by_hand_does():
    ours, theirs = RescorlaWagnerDual, hand_written_learner.RescorlaWagnerDual
    assert ours.parameters.table() == theirs.parameters.table()
    n, rng = 50, np.random.default_rng(0)
    theta, place = theirs.parameters.draw(rng, n), InstrumentalLearning()
    assert (ours.columns, ours.simulation(place)[1]) == (theirs.columns, theirs.design)
    for lapse in (None, 0.1):
        left, right = (simulate(m, theta, place, 3, lapse=lapse) for m in (ours, theirs))
        assert left.frame.equals(right.frame)
        rates = None if lapse is None else rng.uniform(0.01, 0.3, n)
        a, b = (ModelData.read(m, left).log_likelihood(theta, rates) for m in (ours, theirs))
        for x, y in zip(a, b, strict=True):
            assert (np.abs(x - y) <= 1e-13 * (1 + np.abs(y))).all()


MISTAKES = {
    "a slope with the wrong sign": (r"push = side \* missed", "push = -side * missed", "slope in"),
    "a slope that lapses leave out": (r"\* taken \* missed / mixed", "* taken / mixed", "slope in"),
    "the other action": (r"side \* \(", "-side * (", "log-likelihood"),
    "missing trials that teach": (
        r"pick\(given > 0.0, (new_last_0), last_0\)", r"\1", "log-likelihood"
    ),
    "a lapse rate that counts twice": (r"0.5 \* share", "share", "log-likelihood, with lapses"),
    "a rate for another": (
        r"pick\((t\d+ > 0.0), alpha_positive", r"pick(\1, alpha_negative", "log-likelihood"
    ),
    "a step that changes another number": (r"state\[0\] = ", "state[1] = ", "log-likelihood, step"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_the_compiler_is_found_and_the_model_refused_by_name(mistake):
    pattern, wrong, told = MISTAKES[mistake]
    text = RescorlaWagnerDual.kernel_source()
    changed = re.sub(pattern, wrong, text)
    assert changed != text
    with pytest.raises(ValueError, match=f"kernel of RescorlaWagnerDual gives another {told}"):
        check_kernels(RescorlaWagnerDual, changed, 2)


class Guarded(Forgetful):
    """Reckons what Python's own functions refuse, where it is not asked for."""

    def respond(self, trial):
        low = np.where(self.values > 0, np.log(self.values), -3.0)
        return np.where(self.values > 1, np.sqrt(self.values - 1) / (1 - self.values), low)


def test_a_step_agent_is_plain_python_that_takes_what_numpy_takes():
    agent = pickle.loads(pickle.dumps(RescorlaWagnerDual(
        alpha_positive=0.3, alpha_negative=0.2, beta=2.0, kappa=0.1
    )))  # fmt: skip
    agent.learn({"trial": 0, "context": 0}, 1, 1.0)
    assert isinstance(agent.choose({"trial": 1, "context": 0}, np.random.default_rng(0)), int)
    lead = 2.0 * 0.3 * 0.5 + 0.1
    assert agent.action_probabilities({"context": 0})[1] == pytest.approx(expit(lead), rel=1e-14)
    assert agent.action_probabilities({"context": 1}).tolist() == [0.5, 0.5]
    respond = _as_python(Guarded.kernel_source()).respond
    assert respond([0.3, 0.2, 1.0], [0.0, 1.0], {}) == (-3.0, 0.0)
    assert respond([0.3, 0.2, 1.0], [2.0, 0.5], {})[0] == -1.0


def test_a_mistake_in_the_simulation_is_found_too():
    text = simulation_of(RescorlaWagnerDual, 2)
    wrong = text.replace("u < bound", "u >= bound")
    assert wrong != text
    with pytest.raises(ValueError, match="kernel of RescorlaWagnerDual gives another draws"):
        check_simulation(RescorlaWagnerDual, wrong, 2, *world_of(RescorlaWagnerDual, 2))


def test_what_is_refused_leaves_no_file_that_the_next_process_would_take(tmp_path):
    def refuse():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loaded("x = 1\n", "nobody", tmp_path, refuse)
    assert not list(tmp_path.glob("*.py"))
    assert loaded("x = 1\n", "nobody", tmp_path, lambda: None).x == 1
    assert loaded("x = 1\n", "nobody", tmp_path, refuse).x == 1  # checked once


def test_who_goes_by_rewards_alone_does_not_play_where_they_hang_on_more():
    for place in (TwoStep(), Horizon(), BalloonRisk()):
        with pytest.raises(ValueError, match=r"goes by rewards alone; those of .* as well"):
            RescorlaWagner.check_plays(place)
