"""Records of simulated sessions: what `from_frame` makes of their table, and refused as there."""

import importlib

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, RescorlaWagner, simulate
from knownminds.agents.sequences import Sequences
from knownminds.environments import ENVIRONMENTS, InstrumentalLearning, Trials, make

play = importlib.import_module("knownminds.agents.play")


def sessions_of(place, n=3):
    model = next(model for model in AGENTS.values() if model.plays(place))
    theta = model.parameters.draw(np.random.default_rng(1), n)
    return play.simulate_sessions(model, theta, place, 5)


def looked_at(lived, names):
    """Return the record by the way on which every row is looked at."""
    columns = {"subject": np.array(names)[lived.subject], "session": "0", "trial": lived.trial}
    frame = pd.DataFrame({**columns, **lived.columns, "outcome": "ok"})
    return Trials.from_frame(frame, environment=lived.environment)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_record_is_what_a_look_at_every_row_makes(name):
    lived, names = sessions_of(make(name)), ["a", "ccc", "bb"]
    found, expected = lived.to_trials(names), looked_at(lived, names)
    pd.testing.assert_frame_equal(found.frame, expected.frame)
    assert found.frame.attrs == expected.frame.attrs
    assert np.array_equal(found.session_codes, expected.session_codes)


def test_rows_out_of_order_are_put_in_order_and_copies_refused():
    place = InstrumentalLearning(n_visits=2)
    lived = sessions_of(place)
    turned = {name: column[::-1] for name, column in lived.columns.items()}
    back = play.Sessions(place, lived.subject[::-1], lived.trial[::-1], turned).to_trials("abc")
    assert back.subjects == ("c", "b", "a")
    assert back.frame["trial"].tolist() == list(range(place.n_trials)) * 3
    twice = np.zeros_like(lived.trial)
    with pytest.raises(ValueError, match="A trial stands once"):
        play.Sessions(place, lived.subject, twice, lived.columns).to_trials()


def test_how_many_are_played_at_once_changes_nothing(monkeypatch):
    theta = RescorlaWagner.parameters.draw(np.random.default_rng(3), 70)
    lapse = np.linspace(0.0, 0.4, 70)
    whole = simulate(RescorlaWagner, theta, InstrumentalLearning(), 2, lapse=lapse)
    monkeypatch.setattr(play, "AT_ONCE", 1)
    parts = simulate(RescorlaWagner, theta, InstrumentalLearning(), 2, lapse=lapse)
    pd.testing.assert_frame_equal(whole.frame, parts.frame)


@pytest.mark.parametrize("codes", [[2, 0, 1, 0], [10**12, 5, 10**12, 3]])
def test_sequences_keep_the_order_of_their_trials(codes):
    column = np.tile(codes, 3)
    subject = np.repeat([0, 1], 6)
    found = Sequences.group(subject, [column])
    expected = {}
    for trial, key in enumerate(zip(subject.tolist(), column.tolist(), strict=True)):
        expected.setdefault(key, []).append(trial)
    lists = [
        found.order[b : b + n].tolist() for b, n in zip(found.begin, found.length, strict=True)
    ]
    assert sorted(lists) == sorted(expected.values())
    assert sorted(map(len, lists), reverse=True) == list(map(len, lists))
