"""What `phenotype` prints is true of the rows, the reference and the random scores."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from claims import check
from claims.phenotype import REPORT, cells_are_true

from knownminds.agents import BalloonPumper, ChangePointObserver, simulate
from knownminds.environments import BalloonRisk, RestlessBandit, Trials
from knownminds.validation.data.measured_page import phenotype_page
from knownminds.validation.data.phenotype import BARS, phenotype
from knownminds.validation.pages.figures import svg

METRICS = ("risk", "meta_cognition", "balloon_risk_performance", "restless_bandit_performance")
REFERENCE = {"risk": 20.0, "meta_cognition": 0.9, "balloon_risk_performance": 9.0}
RANDOM = {"risk": 1.0, "meta_cognition": 0.66, "balloon_risk_performance": 1.0}


def pumps(n, sessions=1, seed=1):
    theta = np.tile([0.95, 0.05, 1.0, 0.4], (n * sessions, 1))
    return told_apart(simulate(BalloonPumper, theta, BalloonRisk(3), seed), sessions)


def chooses(n, sessions=1, seed=2):
    theta = np.tile([0.05, 3.0, 0.0, 0.5, 0.5], (n * sessions, 1))
    return told_apart(simulate(ChangePointObserver, theta, RestlessBandit(), seed), sessions)


def told_apart(trials, sessions):
    frame = trials.to_frame()
    number = frame["subject"].astype(int)
    frame["session"] = (number % sessions).astype(str)
    frame["subject"] = "s" + (number // sessions).astype(str)
    return Trials.from_frame(frame)


def unanswered(trials):
    frame = trials.to_frame()
    frame["action"] = frame["action"].mask(frame["action"] >= 0)
    frame[["response", "reward"]] = np.nan
    frame["outcome"] = "refused"
    return Trials.from_frame(frame)


def proved(people, reference=REFERENCE, random=RANDOM, released=False):
    found = phenotype(people, reference=reference, random=random, metrics=METRICS,
                      released=released)  # fmt: skip
    numbers = {"action": float, "response": float, "reward": float}
    facts = SimpleNamespace(
        content=json.loads(found.to_json()),
        people={
            name: of
            if isinstance(of, dict)
            else {
                t.frame["environment"][0]: t.frame.astype(
                    {k: v for k, v in numbers.items() if k in t.frame}
                )
                for t in of
            }
            for name, of in people.items()
        },
        random=random,
        reference=reference,
    )
    lines = str(found).split("\n")
    table = 2 + len(people)
    check(REPORT, [lines[0], *lines[table:]], facts)
    cells_are_true(facts, lines[1:table])
    page = phenotype_page(found)
    told = [f"{one.name} {one.word}. {one.why}" for one in page.findings]
    check(REPORT, [*told, *page.notes, *(caption for caption, _ in page.figures)], facts)
    assert bool(lines[table:]) == bool(np.isnan(found.normalised).any())
    return found


def test_of_several_one_and_no_sessions():
    proved(
        {
            "many": [pumps(4), chooses(4)],
            "sessions": [pumps(1, 3), chooses(1, 3)],
            "single": [pumps(1), chooses(1)],
            "half": [pumps(3)],
            "given": {"risk": 12.0},
        }
    )


def test_of_no_answers_no_reference_and_a_reference_that_is_random():
    silent = [pumps(2), unanswered(chooses(2))]
    proved({"silent": silent, "other": [pumps(2), chooses(2)]})
    proved({"other": [pumps(2), chooses(2)]}, reference={**REFERENCE, "risk": 1.0})
    proved({"other": [pumps(2), chooses(2)]}, random={})


@pytest.mark.parametrize("released", [False, True])
def test_of_scores_beyond_random_answers(released):
    reference = {**REFERENCE, "risk": 60.0}
    found = proved({"a": [pumps(4)]}, reference, {**RANDOM, "risk": 40.0}, released)
    assert (found.normalised[0, 0] > 0) == released


def test_drawn_intervals_are_those_of_the_measure_and_not_normal_ones():
    """Of two sessions, 1.96 standard errors would cover 70%."""
    found = proved({"two": [pumps(2)]})
    low, high = (end[0, 0] for end in found.normalised_interval)
    assert high - low > 2 * 1.96 * found.normalised_error[0, 0]
    picture = svg(found.bars())
    assert BARS.split(";")[0] in picture.replace("\n", "")


def test_an_interval_without_sign_begins_at_0_where_both_signs_are_possible():
    found = proved({"two": [pumps(2)]}, random={**RANDOM, "risk": 20.0},
                   reference={**REFERENCE, "risk": 30.0}, released=True)  # fmt: skip
    low, high = (end[0, 0] for end in found.normalised_interval)
    assert 0 <= low <= found.normalised[0, 0] <= high
