import numpy as np
import pandas as pd
import pytest

from knownminds.agents import NoisyOr, simulate
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
