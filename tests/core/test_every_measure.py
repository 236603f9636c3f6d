"""The contract of all registered measures: whatever the shape of the data, a value or a reason."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES
from knownminds.inference.measure import MOST_GROUPS, UNANSWERED, SubjectMeasure

SMALL = {
    "diagnosis": {"n_contexts": 40, "repeats": 2},
    "probabilistic_reasoning": {"n_problems": 8},
}
SHAPES = {"one x one": (1, 1), "one x several": (1, 3), "several x one": (3, 1)}


@cache
def lived(place, settings, model, subjects, sessions):
    """Sessions of as many minds, and for several sessions of one mind its own."""
    agent = AGENTS[model]
    environment = make(place, **{**SMALL.get(place, {}), **dict(settings)})
    theta = agent.parameters.draw(np.random.default_rng(5), subjects)
    frame = simulate(agent, np.repeat(theta, sessions, axis=0), environment, 3).to_frame()
    number = frame["subject"].astype(int)
    frame["session"] = (number % sessions).astype(str)
    frame["subject"] = "s" + (number // sessions).astype(str)
    return Trials.from_frame(frame)


def data_of(name, subjects, sessions):
    measure = MEASURES[name]
    settings = tuple(measure.settings.items())
    return lived(measure.environments[0], settings, measure.violator, subjects, sessions)


def marked(trials, share, seed=0):
    """A share of the trials without a readable answer."""
    frame = trials.to_frame()
    gone = np.random.default_rng(seed).random(len(frame)) < share
    for column in {"action", "response", "reward"} & set(frame):
        frame.loc[gone, column] = None
    frame.loc[gone, "outcome"] = "malformed"
    return Trials.from_frame(frame)


def keeps_the_contract(measure, found):
    low, high = measure.bounds
    if not np.isfinite(found.value):
        assert np.isnan([found.low, found.high, found.p_value]).all()
        assert any(found.excluded.values()), "no value, and no reason"
        return
    assert low <= found.value <= high
    assert found.n > 0
    if np.isfinite(found.low):
        assert found.low <= found.high
        assert found.unit != "subject" or low <= found.low <= found.value <= found.high <= high
    else:
        assert np.isnan(found.p_value) or found.p_value <= 1
        assert found.note.startswith("no interval: ")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MEASURES)
def test_it_has_a_value_or_a_reason_in_every_shape_of_data(name, shape):
    measure = MEASURES[name]
    subjects, sessions = SHAPES[shape]
    found = measure.estimate(data_of(name, subjects, sessions))
    keeps_the_contract(measure, found)
    assert not found.excluded.get(UNANSWERED)
    if isinstance(measure, SubjectMeasure):
        assert np.isfinite(found.value)
    if shape == "one x one":
        assert found.unit != "subject"
    if shape == "one x several" and found.unit == "session":
        assert found.n == sessions
        assert np.isfinite(found.low)
    if shape == "several x one" and isinstance(measure, SubjectMeasure):
        assert (found.n, found.unit) == (subjects, "subject")


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("shape", ["one x one", "several x one"])
def test_lost_answers_are_counted_and_a_file_without_answers_has_a_reason(name, shape):
    measure = MEASURES[name]
    whole = data_of(name, *SHAPES[shape])
    some = measure.estimate(marked(whole, 0.2))
    assert any(some.excluded.values())
    keeps_the_contract(measure, some)
    try:
        nothing = measure.estimate(marked(whole, 1.1))
    except ValueError:  # which `score` tells as the status
        return
    assert np.isnan([nothing.value, nothing.low, nothing.p_value]).all()
    keeps_the_contract(measure, nothing)


PLAIN = ("risk", "meta_cognition", "temporal_discounting", "learning_rate")


@pytest.mark.parametrize("name", PLAIN)
def test_one_subject_has_the_value_that_it_has_among_others(name):
    several = data_of(name, 3, 1)
    among = MEASURES[name].values(several).value
    for subject, value in zip(several.subjects, among, strict=True):
        own = Trials.from_frame(several.frame[several.frame["subject"] == subject])
        found = MEASURES[name].estimate(own)
        assert found.value == pytest.approx(value, rel=1e-9)
        assert found.note == "no interval: a single session"


def test_the_jackknife_of_a_mean_over_sessions_is_its_standard_error():
    trials = data_of("temporal_discounting", 1, 6)
    measure = MEASURES["temporal_discounting"]
    apart = Trials.from_frame(trials.frame.assign(subject=trials.frame["session"], session="0"))
    each = measure.values(apart).value
    found = measure.estimate(trials)
    assert found.value == pytest.approx(each.mean())
    assert found.standard_error == pytest.approx(each.std(ddof=1) / np.sqrt(6))
    assert found.note == "interval by the jackknife over sessions"


def test_sessions_without_a_value_are_counted_and_do_not_pass_for_data():
    trials = data_of("temporal_discounting", 1, 12)
    frame = trials.to_frame()
    gone = frame["session"].isin(["0", "1"]) & (frame["trial"] == 0)
    frame.loc[gone, "action"] = None
    frame.loc[gone, "outcome"] = "refused"
    measure = MEASURES["temporal_discounting"]
    found = measure.estimate(Trials.from_frame(frame))
    left = measure.estimate(Trials.from_frame(frame[~frame["session"].isin(["0", "1"])]))
    assert found.n == 10
    assert found.excluded == {"unanswered items": 2, UNANSWERED: 2}
    assert (found.value, found.low, found.high) == (left.value, left.low, left.high)


def test_many_sessions_are_left_out_in_groups_and_cover_as_often_as_they_say():
    """Of one mind's sessions of the questionnaire, by their exact expectation."""
    measure = MEASURES["temporal_discounting"]
    theta = np.array([[0.001, 0.005, 1.0]])
    model = AGENTS["hyperbolic_discounter"]
    truth = measure.truth(model, theta)[0]
    held, samples = 0, 100
    frame = simulate(model, np.repeat(theta, 8 * samples, axis=0), make(measure.environments[0]),
                     9).to_frame()  # fmt: skip
    number = frame["subject"].astype(int)
    frame["session"], whose = (number % 8).astype(str), (number // 8).to_numpy()
    frame["subject"] = "one"
    for sample in range(samples):
        found = measure.estimate(Trials.from_frame(frame[whose == sample]))
        held += found.low <= truth <= found.high
    # Four Monte-Carlo errors of a share of .95 in 100.
    assert abs(held / samples - 0.95) < 4 * np.sqrt(0.95 * 0.05 / samples)
    many = frame[whose < 15].assign(session=number[whose < 15].astype(str))
    found = measure.estimate(Trials.from_frame(many))
    assert found.n == 120 > 2 * MOST_GROUPS
    each = measure.values(Trials.from_frame(many.assign(subject=many["session"]))).value
    assert found.value == pytest.approx(each.mean())
    # Between 50 groups of two or three sessions an error has a tenth of itself as its own.
    assert found.standard_error == pytest.approx(each.std(ddof=1) / np.sqrt(120), rel=0.4)


ROWS_OF = {  # what goes by the trial before or after, and rows after which it may
    "model_basedness": (6, 7, 20),
    "model_basedness_released": (6, 7, 20),
    "learning_rate": (3, 40),
    "optimism_bias": (3, 40),
    "meta_cognition": (3, 11),
    "directed_exploration": (7, 100),
    "random_exploration": (7, 100),
    "risk": (4, 50),
    "temporal_discounting": (0, 5),
    "perseverative_errors": (13, 40),
    "trials_to_criterion": (13, 40),
    "win_stay": (3, 40),
    "net_score": (3, 40),
    "net_score_rise": (3, 40),
}


@pytest.mark.parametrize("name", ROWS_OF)
def test_a_row_that_was_dropped_and_one_marked_malformed_give_the_same_estimate(name):
    trials = data_of(name, 3, 1)
    for row in ROWS_OF[name]:
        frame = trials.to_frame()
        dropped = frame.drop(index=row)
        for column in {"action", "response", "reward"} & set(frame):
            frame.loc[row, column] = None
        frame.loc[row, "outcome"] = "malformed"
        a, b = (MEASURES[name].estimate(Trials.from_frame(f)) for f in (dropped, frame))
        numbers = pd.DataFrame([a, b])[["value", "low", "high", "p_value"]].to_numpy(dtype=float)
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-7, nan_ok=True)
        assert a.n == b.n
