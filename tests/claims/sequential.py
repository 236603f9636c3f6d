"""Sentences of studies of stopping rules.

Facts: `content` (the JSON) and `null`, `effect` (the rows of their data sets).
"""

from __future__ import annotations

import re

from claims import Claim, Explanation, Report


def _score(told, values):
    """Compare VALUE (ERROR) with a mean and the error of that mean, both by plain counting."""
    value, error = map(float, re.fullmatch(r"(-?[\d.]+) \(([\d.]+)\)", told).groups())
    n = len(values)
    mean = sum(values) / n
    own = (sum((x - mean) ** 2 for x in values) / (n - 1) / n) ** 0.5
    assert abs(value - mean) < 6e-4
    assert abs(error - own) < 6e-4


def _alarms(rows, told):
    value, error = map(float, re.fullmatch(r"([\d.]+) \(([\d.]+)\)", told).groups())
    hits, n = sum(found == 1 for found in rows["found"]), len(rows)
    shrunk = (hits + 2) / (n + 4)
    assert abs(value - hits / n) < 6e-4
    assert abs(error - (shrunk * (1 - shrunk) / (n + 4)) ** 0.5) < 6e-4


def _promised(facts, words):
    _alarms(facts.null, words["alarms"])
    assert facts.content["rule"]["kind"] == "alpha_spending"
    assert float(words["alpha"]) == facts.content["rule"]["alpha"]


def _unpromised(facts, words):
    _alarms(facts.null, words["alarms"])
    assert facts.content["rule"]["kind"] != "alpha_spending"


def _cost(facts, words):
    for told, rows in ((words["without"], facts.null), (words["with"], facts.effect)):
        assert abs(float(told) - sum(rows["units"]) / len(rows)) <= 0.051
    assert int(words["most"]) == facts.content["rule"]["looks"][-1]
    assert words["unit"] == facts.content["unit"]
    assert float(words["size"]) == facts.effect["effect"].iloc[0]


def _bias(facts, words):
    known = facts.effect[facts.effect["estimate"].notna()]
    _score(words["bias"], list(known["estimate"] - known["effect"]))
    assert float(words["size"]) == facts.effect["effect"].iloc[0]


def _failed(facts, words):
    rows = facts.null if float(words["size"]) == facts.null["effect"].iloc[0] else facts.effect
    assert int(words["n"]) == sum(status == "failed" for status in rows["status"])
    assert int(words["of"]) == len(rows)


def _headed(facts, words):
    content = facts.content
    assert words["measure"] == content["measure"]
    assert words["environment"] == content["environment"]
    assert words["model"] == content["model"]
    assert int(words["n"]) == len(facts.null) == len(facts.effect)
    assert words["rule"].endswith(", ".join(map(str, content["rule"]["looks"])))


ROWS = "the rows of the data sets"
REPORT = Report(
    "power --stop",
    sources=("validation/power/sequential.py", "validation/power/sequential_page.py"),
    sentences=(
        Claim(
            "stopping rule for {measure} in {environment}, {model}, {n} data sets each: {rule}",
            "the JSON and the rows",
            _headed,
        ),
        Claim(
            "False alarms: {alarms} of the data sets without an effect, where the rule promises "
            "{alpha}.",
            ROWS,
            _promised,
        ),
        Claim(
            "False alarms: {alarms} of the data sets without an effect; the rule promises nothing "
            "about them.",
            ROWS,
            _unpromised,
        ),
        Claim(
            "It asks {without} of {most} {unit} on average where there is none, and {with} where "
            "it is {size}.",
            ROWS,
            _cost,
        ),
        Claim(
            "At the stop the estimate of an effect of {size} is off by {bias} on average.",
            ROWS,
            _bias,
        ),
        Claim(
            "{n} of {of} data sets with an effect of {size} had no test at some look and went on "
            "there.",
            ROWS,
            _failed,
        ),
        Explanation("What does the stopping rule do to {measure}?"),
        Explanation("{measure} = {size}, and none"),
        Explanation("{n} without an effect and with it"),
        Explanation(
            "{errors} Once, at the end: the same data sets, tested a single time at 5% at the last "
            "look. The 95% intervals are those of a single look; after a stop they may cover less."
        ),
        Explanation(
            "Share of data sets that have stopped by each look, without an effect and with it."
        ),
        Explanation("once, at the end"),
        Explanation("no test at some look"),
    ),
)
