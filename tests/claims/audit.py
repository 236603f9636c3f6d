"""Sentences of `audit`.

Facts: a `SimpleNamespace` with `content` (the JSON) and `rows` (one table of data sets per entry,
in the order of the JSON's entries).
"""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
from scipy.stats import binom, norm
from statsmodels.stats.proportion import proportion_confint

from claims import Claim, Explanation, Report, check, verdicts
from claims.power import LEVEL, _failures


def _headed(facts, words):
    content = facts.content
    assert words["measure"] == content["measure"]
    assert words["place"] == content["environment"]
    assert (int(words["subjects"]), int(words["sessions"])) == (
        content["subjects"],
        content["sessions"],
    )


def _null_rows(facts, trials):
    """Rows of the minds without an effect with so many trials."""
    (found,) = [
        rows
        for entry, rows in zip(facts.content["entries"], facts.rows, strict=True)
        if entry["trials"] == int(trials) and entry["model"] == facts.content["null_model"]
    ]
    return found


def _judged(facts, words):
    """The reasons are those of `claims.verdicts`, each proved from the rows."""
    rows = _null_rows(facts, words["trials"])
    n = len(rows)
    about = SimpleNamespace(
        rejected=sum(1 for p in rows["p_value"] if p < LEVEL) / n,
        n=n,
        failed=float((rows["status"] == "failed").mean()),
        word=words["verdict"],
        unit="data set",
        size=1,
    )
    check(verdicts.REPORT, re.split(r"(?<=[.]) (?=[A-Z0-9])", words["why"]), about)


def _lost(facts, words):
    size = tuple(int(words[name]) for name in ("subjects", "sessions", "trials"))
    for entry, rows in zip(facts.content["entries"], facts.rows, strict=True):
        if (entry["subjects"], entry["sessions"], entry["trials"]) != size:
            continue
        if str((rows["status"] == "failed").sum()) == words["failed"] != "0":
            return _failures(rows, words["why"], words["failed"], words["n"])
    raise AssertionError("no entry lost so many data sets")


def _one_mind(facts, so):
    assert all((entry["subjects"] == 1) == so for entry in facts.content["entries"])


def _titled(facts, words):
    assert words["measure"] == facts.content["measure"]


def _missed(facts, words):
    """Planted rates of false alarms are counted by Wilson's interval of statsmodels."""
    n, level = int(words["n"]), 0.05
    entry = next(
        e for e in facts.content["entries"]
        if str(e["trials"]) == words["trials"] and e["attempted"] == n
    )  # fmt: skip
    counts = np.arange(n + 1)
    low, high = proportion_confint(counts, n, 0.05, method="wilson")

    def chance(share, told):
        return binom.pmf(counts, n, share)[told].sum()

    often = float(words["often"].rstrip("%")) / 100
    assert chance(often + 0.0006, low > level) >= 0.8
    assert chance(often - 0.0011, low > level) < 0.8
    if "rarely" in words:
        rarely = float(words["rarely"].rstrip("%")) / 100
        assert chance(max(rarely - 0.0006, 0.0), high < level) >= 0.8
        assert chance(rarely + 0.0011, high < level) < 0.8
    more = int(words["more"].replace(",", ""))
    upper, _ = proportion_confint(np.arange(more + 1), more, 0.05, method="wilson")
    half = binom.pmf(np.arange(more + 1), more, (often + level) / 2)[upper > level].sum()
    assert 0.75 < half < 0.9
    bias = (norm.ppf(0.975) + norm.ppf(0.8)) * entry["bias_error"]
    assert abs(float(words["bias"]) - bias) < 0.01 * bias
    assert words["chance"] == "80%"


REPORT = Report(
    "audit",
    sources=(
        "validation/power/audit.py",
        "validation/power/audit_page.py",
        "validation/power/dials.py",
    ),
    sentences=(
        Claim(
            "With {n} data sets of {trials} trials a test that rejects too often, in {often} or "
            "more, is found with a chance of {chance}, and so is a bias of {bias}; half as many "
            "false alarms beyond 5% take about {more} data sets.",
            "exact binomial chances; Wilson's interval of statsmodels",
            _missed,
        ),
        Claim(
            "With {n} data sets of {trials} trials a test that rejects in {often} or more, or in "
            "{rarely} or less, is found with a chance of {chance}, and so is a bias of {bias}; "
            "half as many false alarms beyond 5% take about {more} data sets.",
            "exact binomial chances; Wilson's interval of statsmodels",
            _missed,
        ),
        Claim(
            "audit of {measure} in {place}, {subjects} subjects x {sessions} sessions",
            "the JSON",
            _headed,
        ),
        Claim(
            "{trials} trials: {verdict}. {why}",
            "p-values below .05 counted over the rows, against the binomial error",
            _judged,
        ),
        Claim(
            "{subjects} x {sessions} x {trials} (subjects, sessions, trials): {failed} of {n} data "
            "sets failed and count as misses: {why}",
            "counts over the rows, by reason",
            _lost,
        ),
        Claim("What does {measure} do to minds whose true value is known?", "the JSON", _titled),
        Claim(
            "The sampling unit is a repeat: sessions of one mind. The test speaks about that mind "
            "(one language model at one temperature), not about others.",
            "the subjects of all entries",
            lambda facts, words: _one_mind(facts, True),
        ),
        Claim(
            "The sampling unit is a participant; its sessions are repeats and are fitted together. "
            "Seeds of one language model are repeats, not participants.",
            "the subjects of all entries",
            lambda facts, words: _one_mind(facts, False),
        ),
        # Parts that are joined into the sentences above, and labels.
        Explanation("{model}, drawn from its priors"),
        Explanation("{n} for each kind of mind and number of trials"),
        Explanation("measure, or parameter of {model},"),  # in errors
        Explanation(
            "{errors} Data sets that failed count as not rejecting. Size holds: the test rejects "
            "in {level} of the data sets without an effect, up to 1.96 Monte-Carlo standard "
            "errors. Own s.e.: the mean standard error that the analysis itself reports; it should "
            "equal the sd of the estimates' errors."
        ),
        Explanation(
            "Share of the data sets without an effect in which the test rejects, with 2 standard "
            "errors. Line: the {level} that are promised; shaded: 95% of exact tests by chance."
        ),
        Explanation(
            "By the true value (at the left, minds without the effect): share of data sets that "
            "reject, bias, own standard error over the sd of the errors, and coverage of 95% "
            "intervals; with 2 standard errors."
        ),
    ),
)
