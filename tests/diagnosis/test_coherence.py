"""Measures of coherence: their nulls, their violators, one subject and several."""

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES, Coherence
from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions
from knownminds.inference.diagnosis.coherence import SubjectAnswers, answers_of

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


def test_what_is_simulated_for_a_truth_is_what_is_read_off_trials(place) -> None:
    model, theta = AGENTS["incoherent_believer"], mind("incoherent_believer", 3, kappa=0.4)
    direct = list(answers_of(model, theta, place, 7))
    read = BeliefDecisions.read(simulate(model, theta, place, 7), by="subject").each()
    for (_, own), answers in zip(read, direct, strict=True):
        told = SubjectAnswers.of(own)
        assert np.array_equal(told.state, answers.state)
        for name, said in told.beliefs.items():
            assert np.array_equal(said, answers.beliefs[name])
        assert np.array_equal(told.action, answers.action)
        assert np.array_equal(told.parts, answers.parts)
        assert np.array_equal(told.givens, answers.givens)
        for name in NAMES:
            assert MEASURES[name].value(told) == pytest.approx(
                MEASURES[name].value(SubjectAnswers.of(answers.decisions())), abs=1e-12
            )


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


def test_subjects_who_were_asked_otherwise_for_the_parts_are_counted_apart(place) -> None:
    singly = make("diagnosis", n_contexts=80, repeats=3, parts="separate")
    theta = mind("incoherent_believer", 2, kappa=0.5)
    one, other = (simulate(AGENTS["incoherent_believer"], theta, p, 3) for p in (place, singly))
    measure = MEASURES["iterated_expectation"]
    for trials in (one, other):  # alone, either is read
        assert np.isfinite(measure.values(trials).value).all()
    renamed = other.to_frame().assign(subject=[f"b{s}" for s in other.frame["subject"]])
    both = Trials.from_frame(pd.concat([one.to_frame(), renamed], ignore_index=True))
    found = measure.values(both)
    assert np.isfinite(found.value).tolist() == [True, True, False, False]
    estimate = measure.estimate(both)
    assert estimate.value == pytest.approx(measure.values(one).value.mean())
    assert estimate.excluded == {"asked for p(z | x) otherwise than others": 2}
