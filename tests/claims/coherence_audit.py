"""Sentences of the two audits of tests: of coherence, and of the consistency score.

Facts: a `SimpleNamespace` with `content` (what the audit's JSON holds) and, of the consistency
score, `comparisons` (pairs of task and ablation that were scored).
"""

from __future__ import annotations

import re

from scipy import stats

from claims import Claim, Explanation, Report


def _design(facts, words):
    content = facts.content
    assert (int(words["contexts"]), int(words["repeats"])) == (
        content["contexts"],
        content["repeats"],
    )
    assert float(words["level"]) == 0.05


def _comparisons(facts, words):
    n = len(set(facts.comparisons))
    assert (int(words["n"]), int(words["low"]), int(words["high"])) == (n, -n, n)


def _minds(facts, words):
    content = facts.content
    told = [float(words[name]) for name in ("weight", "shift", "noise")]
    assert told == [content["prior_weight"], content["shift"], content["sigma"]]


def _replicates(facts, words):
    assert {row["replicates"] for row in facts.content["rows"]} == {int(words["n"])}


def share_of(text):
    """Return share and error of "0.350 (0.075)"."""
    return tuple(map(float, re.fullmatch(r"(\S+) \((\S+)\)", text.strip()).groups()))


def hold_share(told, count, n):
    """Hold a printed share, and its standard error, against a count."""
    share, error = share_of(told) if isinstance(told, str) else told
    assert abs(share - count / n) < 6e-4
    # With two more successes and failures (Agresti & Coull 1998): 0 and 1 have an error too.
    more = stats.binom(n + 4, (count + 2) / (n + 4))
    assert abs(error - more.std() / (n + 4)) < 6e-4


REPORT = Report(
    "coherence audit",
    sources=(
        "validation/diagnosis/coherence_audit.py",
        "validation/diagnosis/coherence_audit_page.py",
        "validation/magnitudes/consistency_audit.py",
        "validation/magnitudes/consistency_audit_page.py",
    ),
    sentences=(
        Claim(
            "tests of coherence on known deciders, {contexts} contexts x {repeats}: share rejected "
            "at {level} / published finding",
            "the design in the JSON",
            _design,
        ),
        Explanation("(Monte-Carlo errors; -: the paper calls nothing a violation)"),
        Explanation("percentile intervals of the published bootstraps above zero, no reading:"),
        Claim(
            "consistency score of known minds ({n} comparisons, {low} to {high})",
            "a count over the comparisons",
            _comparisons,
        ),
        Claim(
            "prior weight {weight}, shift {shift}, noise {noise}",
            "the settings in the JSON",
            _minds,
        ),
        Explanation("(Monte-Carlo errors; trials per task, condition and modality)"),
        Claim("{n} for each decider and value of its dial", "the rows in the JSON", _replicates),
        Claim("{n} comparisons, from {low} to {high}", "a count over comparisons", _comparisons),
        Explanation("What do the tests of coherence do to known deciders?"),
        Explanation("What does the consistency score give to known minds?"),
        Explanation(
            "Shares of data sets in which a test rejects at {level}. {decider} is rational and "
            "reports what it acts on: of it, every rejection is a false alarm."
        ),
    ),
)
