"""Sentences of `phenotype`.

Facts: a `SimpleNamespace` with `content` (what its JSON holds), `people` (by name, the table of
the rows of each experiment, or scores), `random` and `reference` (scores by metric).
"""

from __future__ import annotations

import numpy as np

from claims import Claim, Explanation, Report
from claims.score import BOUNDS, SUBJECT, _ends


def _values(facts, who, metric):
    """The metric of each of somebody's subjects from the rows, anew; one number if it was given."""
    of = facts.people[who]
    if metric in of:
        return np.array([of[metric]])
    place = {"risk": "balloon_risk", "meta_cognition": "restless_bandit"}.get(metric)
    place = place or metric.removesuffix("_performance")
    if place not in of:
        return np.array([])
    read = SUBJECT.get(metric) or SUBJECT[f"performance {place}"]
    found = np.array([read(own) for _, own in of[place].groupby("subject", sort=False)])
    return found[np.isfinite(found)]


def _share(facts, metric, value):
    """Where a score lies between random answers and the reference; NaN without these."""
    zero, one = facts.random.get(metric, np.nan), facts.reference.get(metric, np.nan)
    share = (value - zero) / (one - zero) if abs(one - zero) > 1e-12 else np.nan
    return abs(share) if facts.content["released"] else share


def cells_are_true(facts, lines):
    """Prove the table: a head with the metrics, and a line per participant."""
    metrics = list(dict.fromkeys(row["metric"] for row in facts.content["scores"]))
    assert lines[0].split() == " ".join(metrics).replace("_", " ").split()
    assert len(lines) == 1 + len(facts.people)
    for who, line in zip(facts.people, lines[1:], strict=True):
        assert line.startswith(who)
        cells = line.removeprefix(who).split()
        for metric, cell in zip(metrics, cells, strict=True):
            values = _values(facts, who, metric)
            share = _share(facts, metric, values.mean()) if len(values) else np.nan
            assert (cell == "-") == bool(np.isnan(share))
            assert cell == "-" or abs(float(cell) - share) < 5.1e-3
            _interval_is_true(facts, who, metric, values)


def _interval_is_true(facts, who, metric, values):
    [row] = [r for r in facts.content["scores"]
             if (r["participant"], r["metric"]) == (who, metric)]  # fmt: skip
    if len(values) < 2 or np.ptp(values) == 0 or facts.content["released"]:
        return
    error = values.std(ddof=1) / np.sqrt(len(values))
    bounds = BOUNDS.get(metric, (0, np.inf if metric.startswith("balloon") else 1))
    ends = _ends(values.mean(), error, len(values) - 1, bounds)
    wanted = sorted(_share(facts, metric, end) for end in ends)
    if np.isfinite(wanted).all():
        assert np.allclose([row["normalised_low"], row["normalised_high"]], wanted, atol=1e-6)


def _signed(facts, words):
    assert facts.content["released"] is False


def _unsigned(facts, words):
    assert facts.content["released"] is True
    known = [row["normalised"] for row in facts.content["scores"]]
    assert all(value is None or value >= 0 for value in known)


def _missing(facts, words):
    """Each reason is told once, and holds of some empty cell; each empty cell has one."""
    told = set(words["reasons"].split("; "))
    found = set()
    for row in facts.content["scores"]:
        values = _values(facts, row["participant"], row["metric"])
        share = _share(facts, row["metric"], values.mean()) if len(values) else np.nan
        assert bool(row["missing"]) == bool(np.isnan(share))
        if not row["missing"]:
            continue
        found.add(row["missing"])
        of, metric = facts.people[row["participant"]], row["metric"]
        if len(values) == 0:
            asked = any(hasattr(own, "columns") for own in of.values())
            assert row["missing"] == "not measured" or asked
        elif metric not in facts.reference:
            assert row["missing"] == "no reference"
        elif metric not in facts.random:
            assert row["missing"] == "no random score"
        else:
            assert row["missing"] == "reference is random"
            assert facts.reference[metric] == facts.random[metric]
    assert told == found


def _gaps(facts, words):
    """Somebody has no value on some metric, reckoned from the rows."""
    _missing(
        facts,
        {"reasons": "; ".join(sorted({r["missing"] for r in facts.content["scores"]} - {""}))},
    )


def _nobody(facts, words):
    """None of the metrics of this participant has a share, and these are the reasons."""
    own = [row for row in facts.content["scores"] if row["participant"] == words["who"]]
    for row in own:
        values = _values(facts, words["who"], row["metric"])
        assert not len(values) or np.isnan(_share(facts, row["metric"], values.mean()))
    assert set(words["why"].split("; ")) == {row["missing"] for row in own}


REPORT = Report(
    "phenotype",
    sources=("validation/data/phenotype.py",),
    sentences=(
        Claim("phenotype: 0 = random answers, 1 = reference", "the JSON", _signed),
        Claim(
            "phenotype: without sign, 0 = random answers, 1 = reference",
            "the signs in the JSON",
            _unsigned,
        ),
        Claim("(-: {reasons})", "scores of each participant anew, from the rows", _missing),
        Explanation(
            "black lines: 95% intervals, random answers and reference taken as known; "
            "arrows: beyond"
        ),
        Claim("{who} has no score. {why}.", "the rows of this participant", _nobody),
        Explanation(
            "Each metric on the scale from random answers (dashed, 0) to the reference (1), a bar "
            "per participant with its 95% interval."
        ),
        Explanation("The metrics of each participant on one scale, with 95% intervals."),
        Explanation(
            "The scale is (score - random) / (reference - random) and keeps its sign. Intervals "
            "are of 95% and those of the measure; random answers and reference are taken as known."
        ),
        Claim(
            "As in the published code, normalised scores are without sign.",
            "the signs in the JSON",
            _unsigned,
        ),
        Claim(
            "What is missing is missing for a reason, which stands in the table; nothing is "
            "filled in.",
            "scores of each participant anew, from the rows",
            _gaps,
        ),
        Explanation("{metric}: {summary} ({source})."),
        Explanation("centre {lowest}, rim {span}"),
        Explanation("the scores of {name}"),
    ),
)
