"""Texts that pages of several kinds share.

Facts: a `SimpleNamespace` with `seconds` (of all rows), `truth` and `lapse` (as they were asked).
"""

from __future__ import annotations

from claims import Claim, Explanation, Report


def _time(facts, words):
    assert abs(float(words["s"].replace(",", "")) - sum(facts.seconds)) <= 0.05 + 1e-9


def _truth(facts, words):
    for name, value in facts.truth.items():
        assert f"{name}: {value:g}" in words["held"]
    assert (words["held"] == "") is not bool(facts.truth or facts.lapse)
    assert ("lapse rate" in words["held"]) is bool(facts.lapse)
    assert not facts.lapse or words["held"].endswith(f"lapse rate {facts.lapse:g}")


REPORT = Report(
    "all pages",
    sources=("validation/pages/page.py",),
    sentences=(
        Explanation("Monte-Carlo standard errors in parentheses."),
        Explanation(
            "Statuses: flat, the trials say next to nothing about a parameter; boundary, the data "
            "ask for an infinite value; failed, no trustworthy estimate."
        ),
        Claim("{s} s, summed over processes", "a sum over the rows", _time),
        Claim("drawn from the priors{held}", "the true values that were asked for", _truth),
        Explanation("Status of the {what}"),
    ),
)
