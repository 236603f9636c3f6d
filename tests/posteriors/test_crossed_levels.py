"""Crossed levels of a group model: models that meet conditions, and what is left of each unit."""

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.inference import hierarchical
from knownminds.inference.groups.crossed_levels import units_of

MODEL = AGENTS["weighted_bayes"]
N_PEOPLE, N_PLACES = 9, 4


def people_in_places(seed, place_sd):
    """People in places; the weight of the prior varies over people and over places."""
    rng = np.random.default_rng(seed)
    person = rng.normal(0.0, 0.5, N_PEOPLE)
    place = rng.normal(0.0, place_sd, N_PLACES)
    who, where = np.divmod(np.arange(N_PEOPLE * N_PLACES), N_PLACES)
    theta = np.tile([0.0, 1.0, 1.0, 0.3], (len(who), 1))
    theta[:, 1] += person[who] + place[where] + rng.normal(0.0, 0.1, len(who))
    frame = simulate(MODEL, theta, make("probabilistic_reasoning", n_problems=12), seed=seed).frame
    unit = frame["subject"].astype(int).to_numpy()
    told = frame.assign(subject=np.char.add("p", who[unit].astype(str)), place=where[unit])
    told["session"] = told["place"].astype(str)
    return Trials.from_frame(told), person, place


@pytest.fixture(scope="module")
def crossed_fit():
    trials, person, place = people_in_places(seed=4, place_sd=0.6)
    names = ("subject", "place")
    return hierarchical(MODEL, trials, unit=names, crossed=names, seed=1, rounds=1), person, place


@pytest.mark.long
def test_deviations_of_people_and_places_are_told_apart(crossed_fit):
    fit, person, place = crossed_fit
    assert fit.verdict == "converged", fit.reasons
    assert len(fit.subjects) == N_PEOPLE * N_PLACES
    draws = fit.posterior["deviation"].sel(parameter="b_prior").stack(s=("chain", "draw"))
    found = draws.mean("s").to_dataframe("mean").assign(sd=draws.std("s"))
    for factor, truth in (("subject", person), ("place", place)):
        own = found[found.index.str.startswith(f"{factor}=")]
        error = own["mean"] - (truth - truth.mean())
        # Each deviation rests on 48 or 108 answers with an error near .3 and on units whose own
        # sd is .1; the common mean is shared, which the posterior sd knows.
        assert (error.abs() < 4 * own["sd"]).all()
        assert np.corrcoef(own["mean"], truth)[0, 1] > 0.9
    spread = fit.group.loc[["sd(b_prior | subject)", "sd(b_prior | place)", "sd(b_prior)"]]
    assert (spread["mean"].iloc[:2] > 0.25).all()
    assert spread["low"].iloc[2] < 0.1 < spread["high"].iloc[2]


@pytest.mark.long
def test_what_does_not_vary_over_places_gets_no_spread_over_them(crossed_fit):
    fit, _, _ = crossed_fit
    for name in ("b_0", "b_likelihood"):
        assert fit.group.loc[f"sd({name} | place)", "mean"] < 0.15


def test_units_are_named_by_their_columns():
    trials, _, _ = people_in_places(seed=1, place_sd=0.1)
    assert units_of(trials, ["subject", "place"]).iloc[0] == "p0 | 0"
    with pytest.raises(ValueError, match="no 'city' among"):
        units_of(trials, ["city"])
    gone = Trials.from_frame(
        trials.frame.assign(place=trials.frame["place"].where(trials.frame.index > 0))
    )
    with pytest.raises(ValueError, match="Every trial needs a 'place'"):
        units_of(gone, ["place"])
