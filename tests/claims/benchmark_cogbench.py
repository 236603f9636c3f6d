"""Sentences of the page of CogBench.

Facts: the section in which the sentence stands.
"""

from __future__ import annotations

import numpy as np

from claims import Claim, Explanation, Report


def _below(facts, words):
    """Scores lie below 0 where they are on the other side of random answers than the reference."""
    (name,) = (name for name in facts.frames if name + "_scale" in facts.frames)
    rows = facts.frames[name].set_index(["participant", "score"])["value"]
    ends = facts.frames[f"{name}_scale"].set_index("score")
    told = {}
    for one in words["below"].split("; "):
        who, _, rest = one.partition(" in ")
        score, _, value = rest.partition(" (")
        told[who, score] = float(value.rstrip(")"))
    for (who, score), value in rows.items():
        zero, one = ends.loc[score, ["random", "reference"]]
        where = (value - zero) / (one - zero) if one != zero else np.nan
        assert ((who, score) in told) == bool(where < 0), (who, score, where)
        if where < 0:
            assert abs(told[who, score] - where) < 0.0051


def _held(facts, words):
    rows = facts.frames[next(iter(facts.frames))]
    known = rows[rows[["truth", "low", "high"]].notna().all(axis=1)]
    held = ((known["low"] <= known["truth"]) & (known["truth"] <= known["high"])).sum()
    assert (int(words["n"]), int(words["held"])) == (len(known), held)


def _left(facts, words):
    assert words["left"]
    for frame in facts.frames.values():
        if "participant" in frame:
            assert not set(words["left"].split(", ")) & set(frame["participant"])


def _share(facts, words):
    """All of it where there are no more than two dimensions to be kept."""
    share = float(words["share"].rstrip("%")) / 100
    assert 0 < share <= 1
    if len(facts.frames["map"]) <= 3:
        assert share == 1


def _title(facts, words):
    assert words["title"] == facts.title


SCALE = (
    "No values of people were given (--people), and none ship. On the scale, 0 is random answers "
    "in the same design and 1 the known mind called rational, which is no person. Where it scores "
    "within two standard errors of random answers there is no scale."
)

REPORT = Report(
    "benchmark cogbench",
    ("validation/benchmarks/cogbench.py",),
    (
        Explanation("Do known minds come back?"),
        Explanation(
            "On the scale, 0 is random answers in the same design and 1 are people (--people)."
        ),
        Explanation(SCALE),
        Claim(
            "The published code drops the sign of a score on this scale, so that who lies as far "
            "below random answers as the reference lies above them looks like the reference. Here "
            "the sign is kept; below 0 are {below}.",
            "each score, less random answers, over the reference less random answers",
            _below,
        ),
        Explanation(
            "A regression of each score on the features, with an intercept for each base model; "
            "both standardised. With few models it says little, however small p is."
        ),
        Claim(
            "Who is near whom in the standardised metrics, {share} of whose distances two "
            "dimensions keep (classical scaling, where the paper has UMAP, which keeps no "
            "distances).",
            "a share, whole where three participants make a plane",
            _share,
        ),
        Explanation(
            "Temporal discounting is the seventh experiment; what it scores is behaviour and "
            "stands among the metrics, as in the paper."
        ),
        Explanation("The metrics of each participant on one scale."),
        Explanation(
            "The distance is the root of the mean squared difference from the reference over the "
            "metrics that have a value. Errors of scores make it larger, never smaller, so few "
            "sessions look less alike."
        ),
        Explanation(
            "Each difference is from the same model without thoughts, on the same sessions; its "
            "error takes the two as independent, which is too wide where they go together. They "
            "are pooled by the inverse of their variances: as one effect, as in the paper, and as "
            "effects that differ between models. Where p for one effect is small, the first says "
            "little."
        ),
        Claim("Without features, and left out: {left}.", "nobody of them is in a file", _left),
        Claim(
            "Without metrics in common with the others: {left}.",
            "nobody of them is in a file",
            _left,
        ),
        Explanation(
            "Coefficients of the features, both sides standardised, with 95% intervals; 0 is none."
        ),
        Claim(
            "Of {n} metrics of known minds that have a true value and an interval, {held} "
            "intervals of 95% hold the truth. Learning rates and the optimism bias are drawn to "
            "the prior where sessions are short. The true risk and meta-cognition take long "
            "simulations and are left out.",
            "the rows of the file: truths between both ends",
            _held,
        ),
        Explanation("The scale of the {which}"),
        Explanation("How far each participant lies from the reference."),
        Explanation("The plan asks for thoughts in no experiment."),
        Explanation(
            "Scores are regressed on features of models where a table of these is given: "
            "--features FILE, a CSV file with the columns participant, base_model, and numbers (0 "
            "and 1 for no and yes). The file features.csv beside the shipped plans is an example."
        ),
        Explanation("A map needs three participants with metrics in common."),
        Explanation("The plan has no known minds."),
        Claim(
            "{title}, each from random answers (dashed) to the reference (line).",
            "the heading",
            _title,
        ),
        Explanation("all {score}, effects that differ"),
        Explanation("What thoughts add, model by model and pooled."),
        Explanation("Participants whose metrics are alike lie near each other."),
        Explanation("{metric}: none, {why}"),
    ),
)
