"""Measures of coherence: their nulls, their violators, one subject and several."""

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES, Coherence, SubjectMeasure
from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions
from knownminds.inference.diagnosis.coherence import SubjectAnswers, answers_of
from knownminds.validation.power.audit import audit, usual_effects
from knownminds.validation.power.dials import GroupDial

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


def test_there_are_six_tests_and_a_published_variant_of_each() -> None:
    assert len(NAMES) == 12
    assert {f"{name}_released" for name in TESTS} == set(NAMES) - set(TESTS)
    assert not any(isinstance(MEASURES[name], SubjectMeasure) for name in NAMES)


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


@pytest.mark.parametrize("name", NAMES)
def test_several_subjects_are_averaged_and_those_without_a_value_counted(name, rational) -> None:
    measure = MEASURES[name]
    frame = rational.to_frame()
    lost = frame["subject"] == "2"
    frame.loc[lost, ["action", "response"]] = np.nan
    frame.loc[lost, "outcome"] = "malformed"
    values = measure.values(Trials.from_frame(frame))
    found = measure.estimate(Trials.from_frame(frame))
    assert found.value == pytest.approx(np.nanmean(values.value))
    assert np.isnan(values.value).tolist() == [False, False, True, False]
    assert (found.n, found.unit) == (3, "subject")
    assert list(found.excluded.values()) == [1, lost.sum()]
    assert np.isnan(found.p_value) == (name not in TESTS)


def test_subjects_are_never_taken_for_one_mind(place) -> None:
    """Two rational subjects whose beliefs differ would together depend on the state."""
    low, high = (mind("random_utility", 6, c=c) for c in (-2.0, 2.0))
    trials = simulate(AGENTS["random_utility"], np.concatenate([low, high]), place, 4)
    found = MEASURES["conditional_independence"].values(trials).value
    alone = [
        MEASURES["conditional_independence"].value(SubjectAnswers.of(own))
        for _, own in BeliefDecisions.read(trials, by="subject").each()
    ]
    assert found.tolist() == pytest.approx(alone)


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


def test_a_dial_that_deviates_to_either_side_begins_at_zero() -> None:
    measure = MEASURES["elicitation_consistency"].in_place(make("diagnosis", n_contexts=20))
    parameters = AGENTS[measure.violator].parameters
    dial = GroupDial(measure, AGENTS[measure.violator], parameters.mean, 0.5 * parameters.sd)
    turns, values = dial.curve
    assert turns[0] == 0.0
    assert np.all(np.diff(values) > 0)
    assert all(values[0] < effect < values[-1] for effect in usual_effects(measure))


def test_an_audit_of_single_subjects_runs_and_of_other_measures_does_not() -> None:
    place = make("diagnosis", n_contexts=40, repeats=2, elicitations="plain")
    found = audit(
        "iterated_expectation", environment=place, subjects=1, replicates=8, effects=(0.05,), seed=1
    )
    assert found.null[0].attempted == 8
    assert found.null[0].failed == 0
    assert found.violators[0].effect == 0.05
    with pytest.raises(ValueError, match="needs at least 2; got 1"):
        audit("optimism_bias", subjects=1, replicates=8)


def test_what_no_subject_was_asked_is_said(rational) -> None:
    frame = rational.to_frame()
    beliefs = Trials.from_frame(frame[frame["question"] == 0])
    found = MEASURES["conditional_independence"].estimate(beliefs)
    assert np.isnan(found.value)
    assert found.excluded == {"no context with both a plain belief and a decision": 4}
    with pytest.raises(ValueError, match="none of 240 has them"):
        MEASURES["monotone_choice"].estimate(
            Trials.from_frame(pd.DataFrame(beliefs.frame[beliefs.frame["subject"] == "0"]))
        )
    with pytest.raises(ValueError, match="read off answers in diagnosis"):
        MEASURES["monotone_choice"].in_place(make("dice"))


def test_without_scikit_learn_the_gain_has_a_reason_and_no_value(rational, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    with pytest.raises(ValueError, match=r'pip install "knownminds\[learning\]"'):
        MEASURES["predictive_gain"].estimate(
            Trials.from_frame(rational.frame[rational.frame["subject"] == "0"])
        )
    values = MEASURES["predictive_gain"].values(rational)
    assert all('pip install "knownminds[learning]"' in reason for reason in values.reason)


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
