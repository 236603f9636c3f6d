"""Measures of coherence: their nulls, their violators, one subject and several."""

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES, Coherence

NAMES = sorted(name for name, m in MEASURES.items() if isinstance(m, Coherence))
TESTS = [name for name in NAMES if not name.endswith("_released")]
MIND = {"u_yes_1": 4.0, "u_yes_0": -4.0, "u_defer_1": 1.0, "u_defer_0": 0.5, "c": 0.0, "d": 1.0,
        "s_between": 0.2, "s_report": 0.05}  # fmt: skip
# A deviation that the test of a single subject can hardly miss.
FOUND = {
    "conditional_independence": 0.4,
    "conditional_independence_calibrated": 0.4,
    "predictive_gain": 0.4,
    "monotone_choice": 10.0,
    "elicitation_consistency": 1.0,
    "iterated_expectation": 0.5,
}


def mind(model, n=1, **changed):
    values = {**MIND, **changed}
    return np.tile([values[name] for name in AGENTS[model].parameters.names], (n, 1))


@pytest.fixture(scope="module")
def place():
    return make("diagnosis", n_contexts=80, repeats=3)


@pytest.fixture(scope="module")
def rational(place):
    return simulate(AGENTS["random_utility"], mind("random_utility", 4), place, 1)


@pytest.mark.parametrize("name", TESTS)
def test_a_violator_is_found_out_alone_and_a_rational_decider_is_not(name, place, rational) -> None:
    measure = MEASURES[name]
    (dial,) = measure.dial.direction
    violator = AGENTS[measure.violator]
    trials = simulate(violator, mind(measure.violator, **{dial: FOUND[name]}), place, 2)
    found = measure.estimate(trials)
    assert found.p_value < 0.01
    assert found.value > 0
    assert found.low <= found.value <= found.high
    frame = rational.frame
    p_values = [
        measure.estimate(Trials.from_frame(frame[frame["subject"] == s])).p_value
        for s in frame["subject"].unique()
    ]
    # Four true nulls: none is below .01 in 96 of 100 seeds.
    assert min(p_values) > 0.01


@pytest.mark.long
@pytest.mark.parametrize("name", ["elicitation_consistency", "iterated_expectation"])
def test_the_truth_in_an_experiment_is_what_many_sessions_of_it_have(name, place) -> None:
    measure = MEASURES[name].in_place(place)
    assert measure is MEASURES[name].in_place(place)
    (dial,) = measure.dial.direction
    model = AGENTS[measure.violator]
    theta = mind(measure.violator, 40, **{dial: 0.5})
    found = measure.estimate(simulate(model, theta, place, 9))
    truth = measure.group_truth(model, theta)
    # The truth is a mean over 128 sessions, so the difference has 1.15 standard errors; 4 of them.
    assert abs(found.value - truth) < 4 * 1.15 * found.standard_error
    assert found.low > 0.0
