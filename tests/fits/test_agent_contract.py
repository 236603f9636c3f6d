"""The contract as a callable check: right models keep it, what is wrong is told in a sentence."""

import re

import numpy as np
import pytest

from knownminds.agents import RescorlaWagner, WeightedBayes
from knownminds.environments import InstrumentalLearning
from knownminds.inference import check_agent

PLACE = InstrumentalLearning(n_visits=3)
KERNELS = {"log_likelihood": staticmethod(RescorlaWagner.log_likelihood)}


def changed(name, **members):
    return type(name, (RescorlaWagner,), {**KERNELS, **members})


def nan_far_out(theta, *rest):
    total, gradient = RescorlaWagner.log_likelihood(theta, *rest)
    return np.where(theta[:, 1] > 15.0, np.nan, total), gradient


def half_the_slope(*arguments):
    total, gradient = RescorlaWagner.log_likelihood(*arguments)
    return total, gradient / 2


def teaches_without_answer(theta, lapse, n_actions, row, start, action, reward):
    again = np.where(action < 0, 0.0, action)
    return RescorlaWagner.log_likelihood(theta, lapse, n_actions, row, start, again, reward)


def other_draws(model, environment):
    kernel, tables = RescorlaWagner.simulation(environment)

    def simulate(theta, lapse, n_actions, row, start, uniforms, *drawn):
        return kernel(theta, lapse, n_actions, row, start, 1 - uniforms, *drawn)[0]

    return simulate, tables


def too_likely(self, observation):
    return RescorlaWagner.action_probabilities(self, observation) * 1.1


def off_by(much):
    def log_density(self, observation, response, action=None):
        return WeightedBayes.log_density(self, observation, response, action) + much

    return log_density


BROKEN = {
    "not finite at alpha=": {"log_likelihood": staticmethod(nan_far_out)},
    "slope in .* is not that": {"log_likelihood": staticmethod(half_the_slope)},
    "without an answer adds": {"log_likelihood": staticmethod(teaches_without_answer)},
    "other answers with the same random": {"simulation": classmethod(other_draws)},
    "They sum": {"action_probabilities": too_likely},
    "No experiment has 'hunger'": {"columns": ("action", "hunger")},
}


@pytest.mark.parametrize("told", BROKEN)
def test_what_is_broken_is_told_in_one_sentence(told):
    place = None if "experiment" in told else PLACE
    broken = changed("Wrong", **BROKEN[told])
    found = check_agent(broken, place)
    assert not found.ok
    sentences = [rule.broken for rule in found.rules if rule.broken]
    matching = [s for s in sentences if re.search(told, s)]
    assert matching, sentences
    assert matching[0].endswith(".")


@pytest.mark.parametrize(("much", "told"), [(0.5, "1.64"), (-0.5, "0.60")])
def test_a_density_that_does_not_integrate_to_one_is_told_with_what_it_comes_to(much, told):
    kernel = {
        "log_likelihood": staticmethod(WeightedBayes.log_likelihood),
        "reads": WeightedBayes.reads,
    }
    wrong = type("Dense", (WeightedBayes,), {"log_density": off_by(much), **kernel})
    sentences = {rule.name: rule.broken for rule in check_agent(wrong).rules}
    assert f"integrates) to {told}" in sentences["probabilities of all answers sum to 1"]


def lucky(at):
    """A learner that answers at random after so many rewards in a row, which its kernel lacks."""

    def begin(self):
        RescorlaWagner.begin(self)
        self.row = 0

    def respond(self, trial):
        utilities = RescorlaWagner.respond(self, trial)
        if self.row >= at:
            return 0 * utilities
        return utilities

    def update(self, trial):
        RescorlaWagner.update(self, trial)
        self.row = (self.row + 1) * (trial.reward > 0)

    return changed("Lucky", begin=begin, respond=respond, update=update)


def test_a_fault_on_a_rare_branch_is_found_and_a_branch_that_is_never_taken_is_named():
    """Each context is visited 10 times: before the last, 9 may be rewarded in a row, 10 cannot."""
    place = InstrumentalLearning(n_visits=10)
    rare, never = (check_agent(lucky(at), place, seed=1) for at in (9, 10))
    assert not rare.ok
    assert "rare branches" in str(rare)
    assert never.ok
    assert [line.partition(": ")[2] for line in never.one_way] == ["if self.row >= at:"]
    assert "one way only" in str(never)


def test_a_broken_model_is_told_in_lines_of_a_screen(tmp_path, knownminds):
    file = tmp_path / "screened.py"
    file.write_text(
        "from knownminds.agents import RescorlaWagner\n\n\nclass Screened(RescorlaWagner):\n"
        '    """It reads what nobody has."""\n\n    name = "screened"\n\n'
        "    def update(self, trial):\n        self.values += trial.no_such_thing\n",
        encoding="utf-8",
    )
    code, out, err = knownminds("show", "screened", "--check", "--plugin", file)
    assert (code, err) == (2, "")
    assert out.splitlines()[1].split() == ["rule", "deviation"]
    assert "broken\n  " in out
    assert max(map(len, out.splitlines())) <= 80
