"""Sentences of `calibrate`: of a whole study, and of the ranks of a quantity.

Facts: a `SimpleNamespace` with `content` (what the JSON holds), `rows` (a row for each replicate,
with status, message and the rank of each quantity) and, for sentences about a quantity, `ranks`,
`level` and `told` (its part of the JSON). The statistic of the test, its law, and what it notices
come from simulations of ranks; nothing is taken from `rank_uniformity`.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import sqrt
from pathlib import Path

import numpy as np
from scipy.stats import binom, norm
from stated import agrees

from claims import Claim, Explanation, Report
from claims.recovery import counted

L = 99
STUDIES = 4000


def gammas(ranks):
    """Return the smallest two-sided tail of the ECDF of each row of ranks, [R, n]."""
    n = ranks.shape[1]
    k = max([d for d in (10, 20, 25, 50, 100) if d <= n], default=100)
    rows = np.repeat(np.arange(len(ranks)), n)
    bins = np.bincount(rows * k + (ranks * k // (L + 1)).ravel(), minlength=len(ranks) * k)
    below = bins.reshape(len(ranks), k).cumsum(axis=1)[:, :-1]
    z = np.arange(1, k) / k
    tails = 2 * np.minimum(binom.cdf(below, n, z), binom.sf(below - 1, n, z))
    return np.minimum(tails.min(axis=1), 1.0)


@lru_cache(maxsize=8)
def null(n):
    """Return the law of gamma of n uniform ranks, from simulated ones."""
    return np.sort(gammas(np.random.default_rng(1).integers(0, L + 1, (5 * STUDIES, n))))


def p_value(ranks):
    return float((null(len(ranks)) <= gammas(ranks[None])[0] + 1e-12).mean())


@lru_cache(maxsize=64)
def noticed(n, level, shift=0.0, width=1.0):
    """Return the share of simulated studies that are rejected, posteriors being wrong so."""
    rng = np.random.default_rng(2)
    place = norm.cdf((shift + rng.normal(size=(STUDIES, n))) / width)
    own = null(n)
    # Gamma takes few values: the largest at which no more than the level is rejected.
    values, counts = np.unique(own.round(12), return_counts=True)
    allowed = values[np.cumsum(counts) <= level * len(own)]
    limit = allowed[-1] + 1e-9 if len(allowed) else -1
    return float((gammas(rng.binomial(L, place)) <= limit).mean())


# Four errors of a share of 80% of the simulated studies, and .03 for the law's own simulation,
# whose quantile at the level has an error of a tenth or so.
TOLERANCE = 4 * sqrt(0.8 * 0.2 / STUDIES) + 0.03


def error_of(p):
    return 4 * sqrt(max(p * (1 - p), 1e-4) / (5 * STUDIES))


def _uniform(f, words):
    p = p_value(f.ranks)
    assert abs(float(words["p"]) - p) <= error_of(p) + 5e-4
    assert p > f.level - error_of(p)
    assert float(words["level"]) == float(f"{f.level:.3g}")
    assert (f.told["verdict"] == "calibrated") == f.told["inside_band"] is True


def _rejected(f, words):
    p = p_value(f.ranks)
    assert abs(float(words["p"]) - p) <= error_of(p) + 5e-4
    assert p <= f.level + error_of(p)
    assert float(words["level"]) == float(f"{f.level:.3g}")
    assert f.told["verdict"] not in ("calibrated", "not judged")


def u_of(f):
    return (f.ranks + 0.5) / (L + 1)


def _shifted(f, words):
    u = u_of(f)
    assert agrees(words["mean"], u.mean())
    assert (words["high"] == "high") == (u.mean() < 0.5)
    assert abs(u.mean() - 0.5) > 2 * u.std(ddof=1) / sqrt(len(u))
    assert f"biased {words['high']}" in f.told["verdict"]


def expected_variance(mean):
    """Return the variance of ranks of a shifted posterior of the right width, by simulation."""
    z = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    return norm.cdf(sqrt(2) * norm.ppf(mean) + z).var() - 1 / (12 * (L + 1) ** 2)


def _wrong_width(f, words):
    u = u_of(f)
    spread = u.var(ddof=1) / expected_variance(u.mean())
    assert abs(float(words["times"]) - spread) < 0.005 + 0.002
    assert (words["narrow"] == "narrow") == (spread > 1)
    word = "over-confident" if spread > 1 else "under-confident"
    assert word in f.told["verdict"]


def _neither(f, words):
    u = u_of(f)
    assert f.told["verdict"] == "miscalibrated"
    assert abs(u.mean() - 0.5) <= 2 * u.std(ddof=1) / sqrt(len(u))
    assert abs(u.var(ddof=1) / expected_variance(u.mean()) - 1) < 3 * 2 / sqrt(len(u))


def _few(f, words):
    assert int(words["n"]) == len(f.ranks) < int(words["least"])
    assert (words["chance"], words["width"]) == ("80%", "0.5")
    assert f.told["verdict"] == "not judged"
    assert noticed(int(words["least"]), f.level, width=0.5) > 0.8 - TOLERANCE
    assert noticed(int(0.6 * int(words["least"])), f.level, width=0.5) < 0.8 + TOLERANCE


def _could_see(f, words):
    n = len(f.ranks)
    assert int(words["n"]) == n
    assert words["chance"] == "80%"
    widths, _, shift = words["told"].partition("or one shifted by ")
    if not widths or widths.startswith("shifted"):
        widths, shift = "", words["told"].removeprefix("shifted by ")
    for width in (float(w) for w in widths.partition(" times")[0].split(" or ") if w):
        assert noticed(n, f.level, width=width) > 0.8 - TOLERANCE
        assert noticed(n, f.level, width=width**0.75) < 0.8 + TOLERANCE
    if shift:
        size = float(shift.partition(" ")[0])
        assert noticed(n, f.level, shift=size) > 0.8 - TOLERANCE
        assert noticed(n, f.level, shift=-0.75 * size) < 0.8 + TOLERANCE


def _sees_nothing(f, words):
    n = len(f.ranks)
    assert int(words["n"]) == n
    for wrong in ({"width": 0.01}, {"width": 100.0}, {"shift": 10.0}):
        assert n == 0 or noticed(n, f.level, **wrong) < 0.8 + TOLERANCE


def _named(f, words):
    assert words["model"] == f.content["model"]
    assert words["place"] == f.content["environment"]
    if "what" in words:
        grouped = f.content["method"] == "hierarchical"
        assert words["what"] == ("a group's posterior" if grouped else "single posteriors")


def _unsound(f, words):
    unsound = (f.rows["status"] != "ok").sum()
    assert int(words["n"]) == unsound > 0.05 * len(f.rows)
    assert (int(words["attempted"]), words["share"]) == (len(f.rows), "5%")
    assert f.content["calibrated"] is False


def _note(f, words):
    assert Counter(f.rows["message"])[words["message"]] == int(words["n"])
    assert int(words["attempted"]) == len(f.rows)


def _gamma(f, words):
    p = p_value(f.ranks)
    assert abs(float(words["p"]) - p) <= error_of(p) + 5e-4
    assert (words["band"] == "inside") == (f.told["verdict"] == "calibrated")
    assert float(words["mass"]) == float(f"{1 - f.level:.4g}")


def _spread(f, words):
    own = u_of(f).var(ddof=1) / expected_variance(u_of(f).mean())
    assert abs(float(words["spread"].split()[-1]) - own) < 0.007


def _is(condition):
    def proof(f, words):
        assert condition(f, words)

    return proof


LAW = "gamma of the ranks among gammas of simulated uniform ranks"
SHAPE = "NumPy on the ranks; the variance expected by simulation"
POWER = "ranks of posteriors so wrong, simulated and put to the test, and of ones a quarter less so"


def _half(f, words):
    """A tenth of the precision of a round number apart, four times as many replicates."""
    n = int(words["n"].replace(",", ""))
    ranked = f.content["attempted"] - f.content["failed"] if hasattr(f, "content") else f.n
    assert 4 * ranked <= n <= 4.4 * ranked + 1


def _around(f, words):
    """The file holds trials of the subjects whose posteriors truths are drawn from."""
    head, *_ = Path(words["file"]).read_text(encoding="utf-8").splitlines()
    assert head.split(",").count("subject") == 1


REPORT = Report(
    "calibration",
    sources=(
        "validation/calibration/calibration.py",
        "validation/calibration/calibration_page.py",
        "validation/calibration/rank_uniformity.py",
    ),
    sentences=(
        Claim(
            "Posteriors half as far off (of widths: half on the logarithmic scale) are noticed "
            "with the same chance by about {n} replicates.",
            "the replicates of the JSON; `tests/engine/test_sensitivity.py` plants such errors",
            _half,
        ),
        Claim(
            "Truths are drawn from the posteriors given {file}, and ranked given it and more data.",
            "the file",
            _around,
        ),
        Claim("The ranks are as uniform as chance allows (p = {p}, level {level}).", LAW, _uniform),
        Claim("The ranks are not uniform (p = {p}, level {level}).", LAW, _rejected),
        Claim(
            "Draws lie too {high}: the mean rank is at {mean} instead of 0.50 of the range.",
            SHAPE,
            _shifted,
        ),
        Claim(
            "Posteriors are too {narrow}: the ranks have {times} times the variance expected.",
            SHAPE,
            _wrong_width,
        ),
        Claim("Neither a shift nor a wrong width of the posteriors explains it.", SHAPE, _neither),
        Claim(
            "Usable replicates: {n}; {least} are needed to notice with a chance of {chance} a "
            "posterior that is {width} times as wide as it should be.",
            POWER,
            _few,
        ),
        Claim(
            "With {n} replicates a posterior {told}, is noticed with a chance of at least "
            "{chance}, by the ranks of this quantity alone.",
            POWER,
            _could_see,
        ),
        Claim(
            "With {n} replicates no posterior, however wrong, is noticed with that chance.",
            POWER,
            _sees_nothing,
        ),
        Explanation("{widths} times as wide as it should be"),
        Explanation("shifted by {shift} of its standard deviations"),
        Claim("{label}{value}   p = {p}, ECDF {band} {mass} band", LAW, _gamma),
        Claim(
            "{label}{mean}   (se {error}; 0.5 if uniform)",
            "NumPy on the ranks",
            _is(lambda f, w: agrees(w["mean"].split()[-1], u_of(f).mean())),
        ),
        Claim(
            "{label}{spread}   (se {error}; 1 if uniform)",
            SHAPE,
            _spread,
        ),
        Explanation("{label}{dash}   L + 1 has no small divisor to make equal bins"),
        Claim("Are the posteriors of {model} in {place} calibrated?", "the design", _named),
        Claim("calibration of {what} of {model} in {place}", "the design", _named),
        Claim(
            "{attempted} replicates: {counts} (uniform: mean .5, spread 1)",
            "a count of the statuses",
            lambda f, words: counted(f.rows, words),
        ),
        Claim(
            "{n} of {attempted} posteriors failed or did not converge, more than {share}: the "
            "ranks of the others do not speak for all.",
            "a count of the statuses",
            _unsound,
        ),
        Claim("Note: {n} of {attempted}: {message}", "a count of the messages", _note),
        Claim(
            "{n}, the truth ranked among {draws} draws",
            "a count over the rows, and the largest rank",
            _is(lambda f, w: (int(w["n"]), int(w["draws"])) == (len(f.rows), f.content["ranks"])),
        ),
        Claim(
            "of a group of {n}",
            "the design",
            _is(lambda f, w: int(w["n"]) == f.content["subjects"]),
        ),
        Claim(
            "No replicate gave ranks, so nothing is judged.",
            "the statuses",
            _is(lambda f, w: (f.rows["status"] == "failed").all()),
        ),
        Claim(
            "Share of the ranks below a value minus that value, for each quantity; shaded, where "
            "all of it lies if the posterior is right (simultaneous over ranks and quantities, "
            "{mass}). Squares lie outside.",
            "the levels of the JSON, over all quantities",
            _is(
                lambda f, w: (
                    w["mass"] == "95%"
                    and abs(sum(q["level"] for q in f.content["parameters"].values()) - 0.05) < 1e-9
                )
            ),
        ),
        Claim(
            "Standard errors in parentheses. Failed replicates have no ranks; above {share} of "
            "them the others do not speak for all.",
            "the limit that the proof of the note uses",
            _is(lambda f, w: w["share"] == "5%"),
        ),
        Explanation(
            "If the posterior is right, the truth's rank among its draws is uniform: mean 0.5, "
            "spread 1. A posterior that is too narrow has a spread above 1, one that is too wide "
            "below; a curve that rises first means draws above the truth (biased high). The p "
            "value of gamma decides, at a level shared among the quantities."
        ),
    ),
)
