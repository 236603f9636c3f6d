import numpy as np
import pandas as pd
import pytest

from knownminds.agents import (
    AssociativeReasoner,
    MutationSampler,
    NoisyOr,
    NoisyOrFive,
    simulate,
)
from knownminds.environments import Collider, Trials
from knownminds.environments.causes.causal_graph import noisy_or_table
from knownminds.inference import MEASURES
from knownminds.inference.causes.causal_answers import ROMAN, causal_answers

NAMES = (
    "explaining_away",
    "explaining_away_released",
    "markov_violation",
    "markov_violation_released",
)
MIND = np.array([0.3, 0.1, 0.8, 0.6, 0.01])  # p, b, m1, m2, sigma


def lived(theta, model=NoisyOr, seed=0, **settings):
    return simulate(model, np.atleast_2d(theta), Collider(**settings), seed)


def changed(trials, rows, **columns):
    frame = trials.to_frame()
    for name, value in columns.items():
        frame.loc[rows, name] = value
    return Trials.from_frame(frame)


def asked(trials, task, direction=None, domain=None):
    answers = causal_answers(trials)
    rows = answers["task"] == task
    rows &= True if direction is None else answers["direction"] == direction
    return (rows & (True if domain is None else answers["domain"] == domain)).to_numpy()


def test_explaining_away_is_the_difference_of_the_printed_formulas():
    p, b, m1, m2, _ = MIND
    table = noisy_or_table(p, p, b, m1, m2).mean(axis=1)
    six, seven, eight = (table[ROMAN.index(task)] for task in ("VI", "VII", "VIII"))
    text, numbers = (MEASURES[name].truth(NoisyOr, MIND[None])[0] for name in NAMES[:2])
    assert text == pytest.approx(seven - six, abs=1e-7)
    assert numbers == pytest.approx(eight - six, abs=1e-7)
    assert numbers > 1.5 * text > 0.1


def test_no_noisy_or_violates_the_markov_condition_and_association_does_by_its_share():
    measure = MEASURES["markov_violation"]
    for model in (NoisyOr, NoisyOrFive):
        theta = model.parameters.draw(np.random.default_rng(1), 100)
        assert np.abs(measure.truth(model, theta)).max() < 1e-9
    theta = AssociativeReasoner.parameters.draw(np.random.default_rng(1), 100)
    k = theta[:, AssociativeReasoner.parameters.index("k")]
    assert np.allclose(measure.truth(AssociativeReasoner, theta), k, atol=1e-9)


def test_short_walks_violate_the_markov_condition_and_explain_less_away():
    steps = np.array([0.01, 1.0, 4.0, 20.0, 3000.0])
    theta = np.column_stack([np.tile(MIND[:4], (5, 1)), steps, np.full(5, 0.1)])
    text, numbers, violation, _ = (MEASURES[name].truth(MutationSampler, theta) for name in NAMES)
    assert np.all(np.diff(violation) < 0)
    assert violation[0] > 0.98
    assert violation[-1] < 1e-3
    assert np.all(np.diff(numbers) > 0)
    assert numbers[0] < -0.05
    for found, name in ((text, NAMES[0]), (numbers, NAMES[1])):
        assert found[-1] == pytest.approx(MEASURES[name].truth(NoisyOr, MIND[None])[0], abs=2e-3)


def test_every_cell_weighs_the_same_whatever_its_number_of_answers():
    trials = lived(MIND, senses=["ppp"])
    economy = asked(trials, "IV", domain="economy")
    trials = changed(trials, asked(trials, "IV"), response=50.0)
    trials = changed(trials, asked(trials, "V"), response=50.0)
    trials = changed(trials, economy, response=80.0)
    once = MEASURES["markov_violation"].values(trials).value[0]
    assert once == pytest.approx(0.1)
    frame = trials.to_frame()
    again = frame[economy].assign(session="again")
    more = Trials.from_frame(pd.concat([frame, again, again.assign(session="third")]))
    assert MEASURES["markov_violation"].values(more).value[0] == pytest.approx(once)
    # Without cells the mean would be another one.
    answers = causal_answers(more).groupby("task")["answer"].mean()
    assert answers["IV"] - answers["V"] == pytest.approx(0.18)


def test_a_cell_without_an_answer_is_named_and_nothing_is_put_in_its_place():
    trials = lived(np.tile(MIND, (3, 1)))
    gone = asked(trials, "VII", "C1", "weather") & (trials.frame["subject"] == "1").to_numpy()
    gone &= (causal_answers(trials)["sense"] == "mmp").to_numpy()
    assert gone.sum() == 1
    whole = MEASURES["explaining_away"].by_cell(trials)
    trials = changed(trials, gone, response=np.nan, outcome="refused")
    found = MEASURES["explaining_away"].estimate(trials)
    named = "no answer to VII in weather mmp C1"
    assert found.excluded == {named: 1, "trials without an answer": 1}
    assert found.n == 3
    cell = whole.cells.index("weather mmp C1")
    others = np.delete(whole.value[1], cell)
    values = MEASURES["explaining_away"].values(trials).value
    assert values[1] == pytest.approx(others.mean())
    assert values[0] == pytest.approx(whole.value[0].mean())
    # The other measures do not read that task.
    assert MEASURES["markov_violation"].estimate(trials).excluded == {}
