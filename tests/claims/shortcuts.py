"""Sentences of an audit of shortcuts.

Facts: what the audit's JSON holds.
"""

from __future__ import annotations

from claims import Claim, Explanation, Report


def _size(facts, words):
    told = {(row["environment"], row["stimuli"]) for row in facts["rows"]}
    assert (int(words["n"]), int(words["sessions"])) == (len(told), facts["sessions"])


def _of_each(facts, words):
    assert int(words["n"].replace(",", "")) == facts["sessions"]


REPORT = Report(
    "shortcuts",
    sources=(
        "validation/power/shortcut_audit.py",
        "validation/power/shortcut_audit_page.py",
    ),
    sentences=(
        Claim(
            "shortcuts of {n} experiments, {sessions} sessions each", "counts in the JSON", _size
        ),
        Claim("{n} of each", "the JSON", _of_each),
        Explanation("(standard errors over sessions)"),
        Explanation("What does each shortcut reach?"),
        Explanation("Numbers: what is looked at in place of what is asked"),
        Explanation("Actions: rules that look at nothing"),
        Explanation("Score of each look"),
        Explanation("share of squared error taken away"),
        Explanation(
            "Standard errors over sessions in parentheses. Looks: 1 - squared error of the line "
            "through what is looked at, by a slope from the other sessions, over that of the mean "
            "of a window. Habits: mean performance of a trial. A shortcut tells something if its "
            "gain is above 0 (of looks {margin}, a correlation of .1) at {level} for all of an "
            "experiment together."
        ),
    ),
)
