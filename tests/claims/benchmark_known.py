"""Sentences of the part of every benchmark's page that is about its known minds.

Facts: the section in which the sentence stands.
"""

from __future__ import annotations

from claims import Claim, Explanation, Report


def _inside(facts, words):
    rows = facts.frames["known_minds"]
    there = rows[rows["low"].notna() & rows["high"].notna()]
    inside = sum(
        low <= truth <= high for low, truth, high in there[["low", "truth", "high"]].values
    )
    assert (int(words["n"]), int(words["inside"])) == (len(there), inside)


REPORT = Report(
    "benchmark known minds",
    ("validation/benchmarks/known.py",),
    (
        Explanation(
            "Each known mind's own model, fitted to its answers in all cells of an experiment in "
            "which it has the same parameters: most probable values under the model's priors with "
            "95% intervals, beside the truth. Where answers say little, estimates lie near the "
            "prior. Known minds draw their answers in a cell by the same random numbers, so that "
            "their estimates err together."
        ),
        Explanation("There are no answers of a known mind."),
        Claim(
            "Of {n} parameters that have an interval, {inside} lie in it.",
            "the rows of the file: truths between both ends",
            _inside,
        ),
    ),
)
