"""Sentences on the trials to which a model is fitted, in `fit`, `recover` and `confuse`.

Facts: any with `content`, what the JSON holds, whose options say whether all trials were asked for.
"""

from __future__ import annotations

from claims import Claim, Explanation, Report

# The column and value that single out the trials which a model is fitted to, and their name.
SELECTIONS = {
    "horizon_explorer": ("play", 0, "first free choices"),
    "horizon_blind": ("play", 0, "first free choices"),
}


def all_asked(facts):
    return facts.content.get("options", facts.content)["all_trials"]


def models_of(facts):
    content = facts.content
    return content["models"] if "models" in content else [content["model"]]


def _only_these(facts, words):
    assert not all_asked(facts)
    named = {SELECTIONS[m][2] for m in models_of(facts) if m in SELECTIONS}
    assert named == {words["trials"]}


def _all_as_asked(facts, words):
    assert all_asked(facts)
    assert words["trials"] in {SELECTIONS[m][2] for m in models_of(facts) if m in SELECTIONS}


def _some_need_all(facts, words):
    names = words["names"].split(", ")
    assert not all_asked(facts)
    assert set(names) <= set(models_of(facts)) - set(SELECTIONS)
    assert words["trials"] in {SELECTIONS[m][2] for m in models_of(facts) if m in SELECTIONS}


REPORT = Report(
    "trials that are fitted",
    sources=("agents/agent.py",),
    sentences=(
        Claim(
            "Only the {trials} were fitted (--all-trials takes all). {reason}",
            "the options of the JSON",
            _only_these,
        ),
        Claim(
            "All trials were fitted, as asked, not the {trials} alone. {reason}",
            "the options of the JSON",
            _all_as_asked,
        ),
        Claim(
            "All trials were fitted, not the {trials} alone: {names} go by all trials.",
            "the rivals of the JSON",
            _some_need_all,
        ),
        Explanation(
            "Later choices of a game follow from earlier ones, and people mostly exploit there, "
            "which an information bonus fitted to all plays would take for a dislike of "
            "information."
        ),
    ),
)
