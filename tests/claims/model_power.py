"""Sentences of studies of a comparison of models.

Facts: `content` (the JSON) and `rows` (one table of data sets for each entry of its designs).
"""

from __future__ import annotations

from math import prod

from claims import Claim, Explanation, Report
from claims.power import TAKEN

USUAL = 0.8


def shares(facts):
    """By size, the share of each true model's data sets whose smallest score is its own."""
    found = {}
    for design, rows in zip(facts.content["designs"], facts.rows, strict=True):
        names = [name for name in rows if name.startswith("score_")]
        wins = 0
        for row in rows.to_dict("records"):
            own = row[f"score_{design['true']}"]
            others = [row[name] for name in names if name != f"score_{design['true']}"]
            wins += row["status"] == "ok" and all(own < other - 1e-5 for other in others)
        assert abs(design["power"] - wins / len(rows)) < 1e-12
        size = tuple(design[name] for name in ("subjects", "sessions", "trials"))
        found.setdefault(size, []).append(wins / len(rows))
    return found


def _fewest(facts, words):
    good = {size: min(own) for size, own in shares(facts).items() if min(own) >= USUAL}
    size = min(good, key=lambda size: (prod(size), size))
    assert words["size"] == " x ".join(map(str, size))
    assert (words["usual"], words["least"]) == (f"{USUAL:.0%}", f"{good[size]:.3f}")


def _none(facts, words):
    assert words["usual"] == f"{USUAL:.0%}"
    assert all(min(own) < USUAL for own in shares(facts).values())


def _lost(facts, words):
    lost = 0
    for rows in facts.rows:
        for row in rows.to_dict("records"):
            scores = sorted(value for name, value in row.items() if name.startswith("score_"))
            lost += row["status"] != "ok" or scores[1] - scores[0] <= 1e-5
    assert int(words["lost"]) == lost > 0
    assert int(words["n"]) == sum(map(len, facts.rows))


def _head(facts, words):
    content = facts.content
    assert words["models"] == " and ".join(content["models"])
    assert words["criterion"].lower() == content["criterion"]
    assert all(len(rows) == int(words["n"]) for rows in facts.rows)


def _title(facts, words):
    assert words["models"] == " and ".join(facts.content["models"])


def _alone(facts, words):
    assert words["model"] in facts.content["models"]


REPORT = Report(
    "comparison of models",
    sources=("validation/power/model_power.py", "validation/power/model_power_page.py"),
    sentences=(
        Claim(
            "power to tell {models} apart by {criterion}, {n} data sets each",
            "a count of the rows",
            _head,
        ),
        Claim(
            "Of these designs, {size} (subjects, sessions, trials) has the fewest trials in which "
            "each model is best for at least {usual} of its own data sets: {least} at least.",
            "the smallest score of each row, counted",
            _fewest,
        ),
        Claim(
            "In none of these designs each model is best for {usual} of its own data sets.",
            "the smallest score of each row, counted",
            _none,
        ),
        Claim(
            "{lost} of {n} data sets failed or were undecided, and count as misses.",
            "rows that failed or whose best scores are equal, counted",
            _lost,
        ),
        Claim(
            "{model} alone has a pilot: other models have their priors.",
            "the models in the JSON",
            _alone,
        ),
        *TAKEN,
        Claim("How often is the true one of {models} found?", "the JSON", _title),
        Explanation("{n} of each model per design"),
        Explanation(
            "Monte-Carlo standard errors in parentheses. The best model of a data set has the "
            "smallest sum of the criterion over subjects. Data sets that failed or have no single "
            "best model count as misses."
        ),
        Explanation(
            "Share of the data sets of each model in which it is best, with 2 standard errors. "
            "Dashed: {usual}."
        ),
    ),
)
