"""The contract as a callable check: right models keep it, what is wrong is told in a sentence."""

import re
from math import exp

import numpy as np
import pytest

from knownminds.agents import BalloonPumper, Model, RescorlaWagner, WeightedBayes, real, unit
from knownminds.environments import BalloonRisk, InstrumentalLearning, make
from knownminds.inference import check_agent

PLACE = InstrumentalLearning(n_visits=3)
KERNELS = {
    "log_likelihood": staticmethod(RescorlaWagner.log_likelihood),
    "simulate": staticmethod(RescorlaWagner.simulate),
    "design": ("payoffs",),
}


class Certain(Model):
    """Chooses by sums as they are, so that the other choice has next to no chance."""

    weight = unit("weight of the later sum", mean=0.0, sd=1.0)

    def begin(self):
        pass

    def respond(self, trial):
        return self.weight * trial.later_amount - trial.sooner_amount


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


def other_draws(theta, lapse, n_actions, row, start, uniforms, payoffs):
    return RescorlaWagner.simulate(theta, lapse, n_actions, row, start, 1 - uniforms, payoffs)


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
    "other answers with the same random": {"simulate": staticmethod(other_draws)},
    "They sum": {"action_probabilities": too_likely},
    "No experiment has 'hunger'": {"columns": ("action", "hunger")},
}


def test_steps_are_small_near_the_end_of_a_support():
    """Its prior belief lies so near 1 that differences of a thousandth of it are no slopes."""
    found = check_agent(BalloonPumper, BalloonRisk(n_balloons=4), seed=2)
    assert found.ok, found


@pytest.mark.parametrize("model", [RescorlaWagner, WeightedBayes])
def test_a_right_model_keeps_all_rules(model):
    found = check_agent(model)
    assert found.ok, str(found)
    assert len(found.rules) == 9
    assert "kept" in str(found)


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


def test_a_parameter_that_is_called_as_a_column_is_told():
    wrong = type("Clash", (WeightedBayes,), {"ball": real("a name that is taken")})
    (rule,) = check_agent(wrong).rules
    assert rule.broken == "The parameter 'ball' is called as a column is; rename it."


def test_a_parameter_that_is_called_as_something_the_experiment_shows_is_told():
    """The model does not read it; a table of true values beside choices would have it twice."""
    wrong = type("Shown", (Certain,), {"sooner_delay": unit("a name that is shown")})
    assert "sooner_delay" not in wrong.columns
    assert "sooner_delay" in make("temporal_discounting").fields.stimulus
    (rule,) = check_agent(wrong, "temporal_discounting").rules
    assert rule.broken == "The parameter 'sooner_delay' is called as a column is; rename it."


def test_an_experiment_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="no environment named 'nowhere'"):
        check_agent(WeightedBayes, "nowhere")


def test_the_subject_with_the_worst_likelihood_is_told():
    """Not the first one, whose likelihoods may be equal."""

    found = check_agent(Certain, "temporal_discounting")
    (broken,) = (rule.broken for rule in found.rules if rule.broken)
    kernel, plain = re.findall(r"is (\S+), that of the step loop (\S+) at weight=", broken)[0]
    # The step loop has probabilities, which are 0 below 1e-308; the kernel has their logarithms.
    assert plain == "-inf"
    assert float(kernel) < -708


def test_a_definition_that_cannot_be_traced_is_told():
    wrong = type("Exponent", (RescorlaWagner,), {"respond": lambda self, trial: exp(self.beta)})
    (rule,) = check_agent(wrong).rules
    assert "write np.exp" in rule.broken


@pytest.mark.parametrize(("much", "told"), [(0.5, "1.64"), (-0.5, "0.60")])
def test_a_density_that_does_not_integrate_to_one_is_told_with_what_it_comes_to(much, told):
    wrong = type("Dense", (WeightedBayes,), {"log_density": off_by(much)})
    wrong.log_likelihood = staticmethod(WeightedBayes.log_likelihood)
    sentences = {rule.name: rule.broken for rule in check_agent(wrong).rules}
    assert f"integrates) to {told}" in sentences["probabilities of all answers sum to 1"]
