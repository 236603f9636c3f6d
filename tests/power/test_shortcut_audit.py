"""Shortcuts: known ones are found, decoupled stimuli hide theirs, and none is new."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from knownminds import audit
from knownminds.environments import ENVIRONMENTS, make
from knownminds.validation.power.shortcut_audit import FOUND, HABITS, LOOKS

SESSIONS = 6
# What each experiment is known to give away, and why that is so by design or as published.
KNOWN = {
    "coins": {"always action 1", "always action 2"},  # middle outcomes are likelier
    "dice": {"always action 1"},  # of two or three dice likewise
    "preference": {"named first"},  # it is k times as likely
    # Small counts are likelier, and with heads twice as frequent two of three coins.
    "counts": {"always action 0", "always action 1", "always action 2", "always action 3"},
    "linked_coins": {"always action 2"},
    "collider": {"variables told to be present", "variables told to be absent",
                 "the effect is asked"},
    "causal_inference": {"variables told to be present", "variables told to be absent",
                         "place of the variable asked about"},
    "causal_strength": {"contrast"},  # which is a part of power, and lies near it
    "probabilistic_reasoning": {"prior", "likelihood"},  # each is half of the answer
    "temporal_discounting": {"always action 0", "named first"},
    # An answer moves the next offer to where the other answer is likelier.
    "adjusting_amount": {"the action after the last one"},
    # A middling contribution is what a conditional cooperator most often comes near.
    "public_goods": {f"always action {k}" for k in range(1, 7)},
    "diagnosis": {"right answer of the trial before", "words of the question",
                  "characters of the question"},  # a person is asked about several times
    "iowa_gambling": {"always action 2", "always action 3"},  # the good decks
    "marker_location, published": {"dashes before the marker", "dashes behind the marker",
                                   "px of a picture to the left of the marker"},
    "line_ratio, published": {"dashes of the shorter line", "dashes of both lines",
                              "characters of the question"},
    "maze_distance, published": {"steps of the path", "moves of the path", "words of the question",
                                 "characters of the question",
                                 "diagonal of the box around the path"},
    "duration, published": {"words of the dialogue", "turns of the dialogue",
                            "words of the question", "characters of the question"},
    # What is left of decoupled stimuli, all below half of the squared error.
    "marker_location, decoupled": {"dashes before the marker", "dashes behind the marker",
                                   "px of a picture to the left of the marker"},
    "cue_conflict, published": {"dashes before the marker", "dashes behind the marker",
                                "px of a picture to the left of the marker"},
    "cue_conflict, decoupled": {"dashes before the marker", "dashes behind the marker",
                                "px of a picture to the left of the marker"},
    "line_ratio, decoupled": {"dashes of the shorter line", "dashes of the longer line"},
    "maze_distance, decoupled": {"diagonal of the box around the path"},
    "duration, decoupled": {"seconds of all pauses", "mean of both rates"},
}  # fmt: skip


@cache
def audited(place=None):
    found = audit("shortcuts", environment=place, replicates=SESSIONS, seed=1)
    tables = [found.tables[name] for name in (LOOKS, HABITS) if name in found.tables]
    whole = pd.concat(tables).sort_index()
    return whole.assign(gain=whole["gain"].map(float))


def of(place, stimuli=""):
    return audited(place).loc[place, stimuli]


@pytest.mark.long
def test_every_experiment_is_audited_and_gives_away_what_is_known_and_no_more():
    """At .05 for all of an experiment; the seed is fixed, so that what is found stays found."""
    table = audited()
    assert set(table.index.get_level_values("experiment")) == set(ENVIRONMENTS)
    for (place, stimuli), own in table.groupby(["experiment", "stimuli"]):
        name = f"{place}, {stimuli}" if stimuli else place
        found = set(own.index.get_level_values("shortcut")[own["verdict"] == FOUND])
        assert found <= KNOWN.get(name, set()), name
        assert len(own) >= (3 if make(place).n_actions else 4)
        if stimuli == "decoupled":
            assert own["gain"].max() < 0.6


@pytest.mark.parametrize(
    ("place", "shortcut", "low", "high"),
    [
        ("marker_location", "dashes before the marker", 0.999, 1.001),
        ("duration", "words of the dialogue", 0.92, 0.99),
    ],
)
def test_it_finds_the_known_shortcuts_of_published_stimuli(place, shortcut, low, high):
    """The negative control: an audit that cannot find these would find nothing."""
    row = of(place, "published").loc[shortcut]
    assert low < row["r"] < high
    assert row["verdict"] == FOUND
    assert row["gain"] == pytest.approx(row["r"] ** 2, abs=0.05)


def test_numbers_are_those_of_a_regression_by_hand():
    """Pooled within windows and sessions, with statsmodels-free algebra on the raw design."""
    from knownminds.environments import session_stream

    place = make("duration", stimuli="published")
    number = list(ENVIRONMENTS).index("duration")
    rows = []
    for session in range(SESSIONS):
        table = place.draw(session_stream(1, number, session)).table
        words = table["words_first"] + table["words_second"]
        own = {"words": words, "value": table["value"], "w": table["window"]}
        rows.append(pd.DataFrame(own).assign(session=session))
    frame = pd.concat(rows)
    centred = frame[["words", "value"]] - frame.groupby(["session", "w"])[
        ["words", "value"]
    ].transform("mean")
    r = stats.pearsonr(centred["words"], centred["value"]).statistic
    own = of("duration", "published").loc["words of the dialogue"]
    assert own["r"] == pytest.approx(r)
    saved = []
    for session in range(SESSIONS):
        rest, here = (centred[(frame["session"] == session) == one] for one in (False, True))
        slope = np.polyfit(rest["words"], rest["value"], 1)[0]
        saved.append(((here["value"] - slope * here["words"]) ** 2).sum())
    gain = 1 - sum(saved) / (centred["value"] ** 2).sum()
    assert own["gain"] == pytest.approx(gain, abs=1e-4)


@pytest.mark.parametrize(
    ("place", "score"),
    [
        ("instrumental_learning", "performance of a trial"),
        ("dice", "how probable the picked outcome is"),
        ("ultimatum", "agreement with inequity_averse"),
    ],
)
def test_a_score_says_of_what_it_is(place, score, knownminds):
    code, said, err = knownminds("audit", "shortcuts", "--environment", place, "--replicates", 3)
    assert code == 0, err
    said = " ".join(said.split())
    assert f"shortcut of {place} reach? (score: {score})" in said
    assert "verdict" in said
    assert "3 sessions: 3 ok" in said
