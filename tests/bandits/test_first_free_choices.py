"""`horizon_explorer` is fitted to first free choices unless all trials are asked for."""

import json

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import HorizonBlind, HorizonExplorer
from knownminds.environments import Horizon, Session, Trials, session_stream
from knownminds.inference import maximum_a_posteriori
from knownminds.validation.data.fit import fit

GAMES, PEOPLE = 60, 30


@pytest.fixture(autouse=True)
def _fewer_minds(monkeypatch):
    """What a fit says of its support and of its predictions is tested elsewhere."""
    monkeypatch.setattr("knownminds.validation.data.support.SIMULATED", 40)
    monkeypatch.setattr("knownminds.validation.data.predictive.SIMULATED_ROWS", 100_000)


@pytest.fixture(scope="module")
def people():
    """First choices by the model, A_6 = .5; later choices exploit, and dislike what is unknown."""
    rng, environment, rows = np.random.default_rng(1), Horizon(GAMES), []
    for k in range(PEOPLE):
        session = Session(environment, environment.draw(session_stream(k)))
        for seen in session:
            gain = (seen["mean_1"] - seen["mean_0"]) / 10
            unknown = np.sign(seen["count_0"] - seen["count_1"])
            bonus = 0.5 if seen["horizon"] > 1 else 0.0
            x = (
                (gain + bonus * unknown) / 0.6
                if seen["play"] == 0
                else (gain - 0.3 * unknown) / 0.3
            )
            action = int(rng.random() < 1 / (1 + np.exp(-x)))
            session.take(action)
        rows += [{"subject": str(k), **row} for row in session.rows]
    return Trials.from_frame(pd.DataFrame(rows), environment=environment)


@pytest.mark.long
def test_the_bonus_has_the_sign_that_first_choices_have(people):
    first, every = (
        fit(people, "horizon_explorer", all_trials=all_trials, workers=1)
        for all_trials in (False, True)
    )
    # Standard error of a median of 30 below .06 each; the truths are .5 and, of later choices, -.3.
    groups = [found["Parameters"].set_index("parameter") for found in (first, every)]
    assert groups[0].loc["A_6", "estimate"] > 0.25
    assert groups[1].loc["A_6", "estimate"] < -0.1
    n = int((people.frame["play"] == 0).sum())
    counts, others = (found["Counts"].set_index("of")["number"] for found in (first, every))
    assert counts["trials"] == counts["first free choices"] == n
    assert counts["all trials"] == others["trials"] == len(people)
    assert counts["subjects without such trials"] == 0
    assert any("Only the first free choices" in note for note in first.notes)
    assert any("All trials were fitted, not" in note for note in every.notes)


@pytest.mark.long
def test_the_fit_is_that_of_the_rows_alone_and_stands_in_its_json(people, tmp_path):
    only = Trials.from_frame(people.frame[people.frame["play"] == 0])
    for model in (HorizonExplorer, HorizonBlind):
        one, other = (maximum_a_posteriori(model, each) for each in (people, only))
        assert np.allclose(one.z, other.z, atol=1e-6)
        assert np.array_equal(one.n_trials, other.n_trials)
    found = fit(people, "horizon_blind", workers=1)
    found.save(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text()) == found.to_dict()
