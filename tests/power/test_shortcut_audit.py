"""Shortcuts: known ones are found, decoupled stimuli hide theirs, and none is new."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.shortcuts import REPORT
from scipy import stats

from knownminds.environments import ENVIRONMENTS, Environment, make
from knownminds.environments.shortcuts import habits, looks
from knownminds.validation.power.audit import read_audit
from knownminds.validation.power.shortcut_audit import FOUND, shortcut_audit
from knownminds.validation.report import page_of

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


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    return shortcut_audit(sessions=SESSIONS, seed=1, out=tmp_path_factory.mktemp("shortcuts") / "a")


def of(audit, place, stimuli=""):
    table = audit.to_frame()
    own = table[(table["environment"] == place) & (table["stimuli"] == stimuli)]
    return own.set_index("shortcut")


def test_every_experiment_is_audited_and_gives_away_what_is_known_and_no_more(every):
    """At .05 for all of an experiment; the seed is fixed, so that what is found stays found."""
    table = every.to_frame()
    assert set(table["environment"]) == set(ENVIRONMENTS)
    for (place, stimuli), own in table.groupby(["environment", "stimuli"]):
        name = f"{place}, {stimuli}" if stimuli else place
        found = set(own["shortcut"][own["verdict"] == FOUND])
        assert found <= KNOWN.get(name, set()), name
        assert len(own) >= (3 if make(place).n_actions else 4)
        if stimuli == "decoupled":
            assert own["gain"].max() < 0.6


@pytest.mark.parametrize(
    ("place", "shortcut", "low", "high"),
    [
        ("marker_location", "dashes before the marker", 0.999, 1.001),
        ("line_ratio", "dashes of the shorter line", 0.999, 1.001),
        ("maze_distance", "steps of the path", 0.55, 0.85),
        ("duration", "words of the dialogue", 0.92, 0.99),
    ],
)
def test_it_finds_the_known_shortcuts_of_published_stimuli(every, place, shortcut, low, high):
    """The negative control: an audit that cannot find these would find nothing."""
    row = of(every, place, "published").loc[shortcut]
    assert low < row["r"] < high
    assert row["verdict"] == FOUND
    assert row["gain"] == pytest.approx(row["r"] ** 2, abs=0.05)


def test_steps_and_words_and_the_order_of_trials_tell_nothing_of_decoupled_stimuli(every):
    """Below .1, to four standard errors where it is drawn at random (6 sessions of 99 trials)."""
    error = 4 / np.sqrt(SESSIONS * 99)
    for place, shortcuts in {
        "maze_distance": ("steps of the path", "moves of the path"),
        "duration": ("words of the dialogue", "words of the question"),
        "line_ratio": ("dashes of both lines", "characters of the question"),
        "marker_location": ("dashes of the line", "trial"),
    }.items():
        own = of(every, place, "decoupled")
        assert (own.loc[list(shortcuts), "r"].abs() < 0.1 + error).all()
    assert abs(of(every, "maze_distance", "decoupled").loc["steps of the path", "r"]) < 0.03
    assert abs(of(every, "duration", "decoupled").loc["words of the dialogue", "r"]) < 0.01


def test_the_order_in_which_options_are_named_pays_nowhere_but_where_it_is_the_chance(every):
    table = every.to_frame()
    named = table[table["shortcut"].isin(["named first", "named second"])]
    assert set(named["environment"][named["verdict"] == FOUND]) <= {
        "preference", "temporal_discounting"
    }  # fmt: skip


def test_numbers_are_those_of_a_regression_by_hand(every):
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
    assert of(every, "duration", "published").loc["words of the dialogue", "r"] == pytest.approx(r)
    saved = []
    for session in range(SESSIONS):
        other, own = (centred[(frame["session"] == session) == one] for one in (False, True))
        slope = np.polyfit(other["words"], other["value"], 1)[0]
        saved.append(((own["value"] - slope * own["words"]) ** 2).sum())
    gain = 1 - sum(saved) / (centred["value"] ** 2).sum()
    found = of(every, "duration", "published").loc["words of the dialogue", "gain"]
    assert found == pytest.approx(gain, abs=1e-4)


def test_it_is_kept_read_and_printed(every, knownminds, tmp_path):
    assert len(json.loads(every.to_json())["rows"]) == len(every.to_frame())
    page = page_of(every)
    first, _, *_, last = str(every).splitlines()
    sentences = [first, last, page.title, dict(page.asked)["sessions"], *page.notes]
    check(REPORT, sentences, json.loads(every.to_json()))
    assert next(title for title, *_ in page.tables).startswith("Numbers")
    words = ["audit", "shortcuts", "--environment", "marker_location", "--replicates", 3]
    code, out, err = knownminds(*words, "--set", "stimuli=decoupled", "--out", tmp_path / "a")
    assert code == 0, err
    assert "marker_location, decoupled" in out
    assert read_audit(tmp_path / "a").to_frame()["stimuli"].unique().tolist() == ["decoupled"]
    code, out, err = knownminds(
        "audit", "shortcuts", "--environment", "maze", "--out", tmp_path / "b"
    )
    assert (code, out) == (2, "")
    assert "maze_distance" in err
    assert not (tmp_path / "b").exists()
    code, _, err = knownminds("audit", "shortcuts", "--environment", "dice", "--replicates", 2)
    assert (code, "at least 3 of them; got 2" in err) == (2, True)


class Rates(Environment):
    """Asks for a number of which nobody says which one is right."""

    given, n_actions, n_trials, n_draws, feedback = "response", 0, 3, 3, False

    def tables(self, uniforms):
        return {}


def test_an_experiment_that_does_not_say_what_is_right_is_told(monkeypatch):
    monkeypatch.setitem(ENVIRONMENTS, "rates", Rates)
    monkeypatch.setattr(Rates, "name", "rates", raising=False)
    with pytest.raises(ValueError, match="rates does not say which one is right"):
        shortcut_audit("rates", sessions=3)


def test_general_shortcuts_need_nothing_but_the_session():
    place = make("line_ratio")
    seen, _ = place.reset(seed=0)
    found = looks(place, seen)
    text = place.render(seen, ()).text
    assert found["words of the question"] == len(text.split())
    assert found["characters of the question"] == len(text)
    rules = habits(make("iowa_gambling"))
    other = rules["the action after the last one"]
    played = [0]
    for _ in range(5):
        played.append(other({}, played[-1]))
    assert all((b - a) % 4 == 1 for a, b in pairwise(played))
