"""Sentences of `fit`.

Facts: a `SimpleNamespace` with `content` (what fit.json holds) and `trials` (the rows fitted).
"""

from __future__ import annotations

from collections import Counter

from claims import Claim, Report


def _counted(facts, words):
    statuses = Counter(session["status"] for session in facts.content["sessions"])
    assert int(words["n"]) == facts.trials["subject"].nunique() == sum(statuses.values())
    told = dict(reversed(each.split(" ", 1)) for each in words["counts"].split(", "))
    assert {status: int(n) for status, n in told.items()} == dict(statuses)


REPORT = Report(
    "fit",
    sources=(),
    sentences=(
        Claim(
            "{n} subjects were fitted: {counts}.",
            "a count over the rows and over the sessions of the JSON",
            _counted,
        ),
    ),
)
