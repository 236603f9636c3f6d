"""Every sentence of causal profiles, of small results of all shapes."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.causal import REPORT
from plain_colliders import plainly

from knownminds.agents import AssociativeReasoner, NoisyOr, simulate
from knownminds.environments import Collider, Trials
from knownminds.environments.words.cover_stories import SENSES
from knownminds.inference.causes.alignment import alignment
from knownminds.validation.causes import causal_page
from knownminds.validation.causes import causal_profile as profile_module
from knownminds.validation.causes.causal_page import causal_figures, causal_notes, causal_tables
from knownminds.validation.causes.causal_profile import CausalProfile, causal_profile

DOMAINS = ("economy", "sociology", "weather")
SHARP, DULL = [0.45, 0.05, 0.9, 0.85, 0.1], [0.5, 0.25, 0.6, 0.6, 0.3, 0.1]


def lived(model, theta, seed, subject, **columns):
    settings = {k: columns.pop(k) for k in ("domains", "senses", "directions") if k in columns}
    own = simulate(model, np.array([theta]), Collider(**settings), seed).to_frame()
    return own.assign(subject=subject, **columns)


def together(*parts):
    return Trials.from_frame(pd.concat(parts, ignore_index=True), environment=Collider())


PEOPLE = simulate(NoisyOr, np.tile([0.4, 0.2, 0.7, 0.5, 0.2], (4, 1)), Collider(), 3)
TWO = together(
    lived(NoisyOr, SHARP, 1, "a", agent="sharp", prompt="numeric"),
    lived(NoisyOr, [0.5, 0.1, 0.95, 0.3, 0.1], 2, "b", agent="sharp", prompt="thought"),
    lived(AssociativeReasoner, DULL, 3, "c", agent="dull", prompt="numeric"),
    lived(AssociativeReasoner, DULL, 4, "d", agent="dull", prompt="thought"),
)


def without(trials, gone):
    frame = trials.to_frame()
    frame.loc[gone, "response"] = np.nan
    frame.loc[gone, "outcome"] = "refused"
    return Trials.from_frame(frame, environment=Collider())


def named(trials):
    rows = plainly(trials)
    for column, names in (("domain", DOMAINS), ("sense", SENSES)):
        rows[column] = [names[int(k)] for k in rows[column]]
    return rows


def prove(monkeypatch, trials, reference=None, **options):
    """Check all that a profile says, as it is and as it is read back from JSON."""
    for name in ("four_panels", "paired_lines", "alignment_picture"):
        monkeypatch.setattr(causal_page, name, lambda *args: None)
    monkeypatch.setattr(causal_page.draw, "svg", lambda figure: "")
    profile = causal_profile(trials, reference=reference, **options)
    content = json.loads(profile.to_json())
    rows = named(trials)
    keys = [content["agent"], *content["conditions"]]
    rows["unit"] = rows[keys].astype(str).agg(", ".join, axis=1)
    facts = SimpleNamespace(
        content=content, rows=rows, reference=None if reference is None else named(reference)
    )
    said = []
    for one in (profile, CausalProfile.from_dict(content)):
        lines = str(one).split("\n")
        lines += [caption for caption, _ in causal_figures(one)] + causal_notes(one)
        lines += [title for title, *_ in causal_tables(one) if "the first" in title]
        said.append(lines)
    assert said[0] == said[1]
    check(REPORT, said[0], facts)
    for row in content["units"]:
        facts.unit = row["unit"]
        gaps = [part for part in row["note"].split("; ") if part.startswith("no answer to")]
        check(REPORT, gaps, facts)
    return "\n".join(said[0])


@pytest.mark.parametrize("scoring", ["by_cause", "pooled"])
def test_two_agents_in_two_conditions(monkeypatch, scoring):
    text = prove(monkeypatch, TWO, PEOPLE, conditions=["prompt"], scoring=scoring)
    assert "(violates)" in text
    assert "changes most" in text
    assert "Filled: all domains" in text


def test_missing_answers_and_a_unit_without_any(monkeypatch):
    frame = TWO.frame
    gone = np.random.default_rng(0).random(len(frame)) < 0.3
    rows = named(TWO)
    gone |= ((frame["subject"] == "a") & rows["task"].isin(["VIII", "III"])).to_numpy()
    gone |= (frame["subject"] == "d").to_numpy()
    text = prove(monkeypatch, without(TWO, gone), PEOPLE, conditions=["prompt"])
    assert "no noisy-OR is told, answers to 0 tasks" in text
    assert "(not known)" in text
    assert "no test could be made" in text


def test_everything_missing(monkeypatch):
    # What was saved told "complies" of violations that nobody knew.
    text = prove(monkeypatch, without(TWO, np.ones(len(TWO.frame), dtype=bool)))
    assert text.count("(not known)") == 2
    assert "complies" not in text


def test_as_released_with_people(monkeypatch):
    people = [
        lived(NoisyOr, [0.5, 0.2, 0.6, 0.7, 0.2], 10 + i, f"person {i}", agent="people",
              domains=[domain], senses=[sense])
        for i, (domain, sense) in enumerate(
            (d, s) for d in DOMAINS for s in ("ppp", "mmp") for _ in "ab"
        )
    ]  # fmt: skip
    model = lived(NoisyOr, [0.3, 0.1, 0.9, 0.4, 0.1], 5, "model", agent="model")
    trials = together(*people, model)
    gone = np.random.default_rng(1).random(len(trials.frame)) < 0.15
    text = prove(monkeypatch, without(trials, gone), PEOPLE, agent="agent", released=True)
    assert "As in Dettki (2025)" in text
    assert "Questions about C2 are answered by the formula of C1." in text
    assert "An item of the alignment is a single answer" in text


def test_one_subject_one_story_and_answers_that_are_all_the_same(monkeypatch):
    alone = together(lived(NoisyOr, SHARP, 1, "a", domains=["weather"], senses=["ppp"]))
    text = prove(monkeypatch, alone, PEOPLE)
    assert "Filled" not in text
    frame = alone.to_frame().assign(response=50.0)
    text = prove(monkeypatch, Trials.from_frame(frame, environment=Collider()))
    assert "no noisy-OR is told, the same mean answer to all tasks" in text
    tasks = named(alone)["task"]
    some = Trials.from_frame(alone.frame[tasks.isin(["I", "III", "IV"])], environment=Collider())
    text = prove(monkeypatch, some)
    assert "some task cannot be predicted from the others" in text


def test_conditions_between_which_nothing_changes(monkeypatch):
    one = lived(NoisyOr, SHARP, 1, "a", agent="x", domains=["weather"])
    same = together(one.assign(prompt="p"), one.assign(subject="b", prompt="q"))
    text = prove(monkeypatch, same, conditions=["prompt"])
    assert "changes most" not in text


def test_more_agents_than_are_drawn_or_compared(monkeypatch):
    # The intervals, which take long, are proved elsewhere.
    monkeypatch.setattr(profile_module, "alignment", partial(alignment, resamples=10))
    told = ["economy", "weather"]
    parts = [lived(NoisyOr, SHARP, i, f"s{i:02}", domains=told) for i in range(61)]
    frame = pd.concat(parts, ignore_index=True)
    some = named(together(frame))["task"].isin(["VI", "VIII"])  # too few for a fit
    text = prove(monkeypatch, together(frame[some]), PEOPLE)
    assert "The first 10 of 61 agents." in text
    assert "Pairs were compared only in conditions of up to 30 agents." in text
    assert "(the first 60 of 61)" in text
    assert "The first 60 of 61 agents and conditions." in text
