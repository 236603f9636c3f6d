"""Sentences of `recover` with one design.

Facts: a `SimpleNamespace` with `content` (what the JSON holds), `rows` (a row for each subject:
true values, estimates, interval ends, status and message), `model` (the agent) and `designs`, how
many designs the study has. Reasons of verdicts are those of `claims.verdicts`, to whose facts
`judged` and `judged_region` turn a parameter's rows; what a session cannot tell is proved in
`claims.identifiability`.
"""

from __future__ import annotations

import re
from collections import Counter
from math import atanh, isnan, sqrt
from types import SimpleNamespace

import numpy as np
from scipy.stats import norm

from claims import Claim, Explanation, Report
from claims.verdicts import failure_error, fishers

WORDS = ("recoverable", "weak", "not identified")
REACH = norm.ppf(0.975) + norm.ppf(0.8)  # standard errors of a difference that is found


def close(told, own, slack):
    assert abs(float(told) - own) <= slack * abs(own) + 1e-12, (told, own)


def _missed(f, words):
    """Plant the errors into the rows by formulas of their own."""
    name, rows = words["name"], usable(f)
    n, alone = len(rows), unit_of(f)[0] == "subject"
    assert words["unit"] == unit_of(f)[0]
    fits = n if alone else round(n / f.content["subjects"])
    assert 4 * fits <= int(words["half"].replace(",", "")) <= 4.4 * fits + 1
    x, y = (rows[f"z_{kind}{name}"].to_numpy() for kind in ("true_", ""))
    error = rows[name] - rows[f"true_{name}"]
    if alone and f.content["method"] != "hierarchical":  # subjects err independently
        close(words["bias"], REACH * error.std(ddof=1) / sqrt(n), 0.01)
        slope, level = np.polyfit(x, y, 1)
        left = (y - level - slope * x) * (x - x.mean())
        close(words["shrinkage"], REACH * sqrt((left**2).sum()) / ((x - x.mean()) ** 2).sum(), 0.05)
    assert words["chance"] == "80%"
    if "factor" in words and alone:
        factor = float(words["factor"])
        low, high = rows[f"low_90_{name}"], rows[f"high_90_{name}"]
        middle, half = (low + high) / 2, (high - low) / 2 * factor
        held = float((abs(rows[f"true_{name}"] - middle) <= half).mean())
        # with so many independent intervals a share so low is told from 90%, and not one well above
        share, err = (f.content["parameters"][name][k] for k in ("coverage", "monte_carlo_error"))
        worth = min(n, round(0.09 / err["coverage"]["90"] ** 2))
        assert share["90"] >= held
        z = norm.ppf(0.975)
        chance = norm.cdf((0.9 - held - z * sqrt(0.09 / worth)) / sqrt(held * (1 - held) / worth))
        assert 0.5 < chance <= 1.0


def usable(f):
    return f.rows[f.rows["status"] != "failed"]


def share_error(share, n):
    """Return Agresti and Coull's error of a share."""
    shrunk = (share * n + 2) / (n + 4)
    return sqrt(shrunk * (1 - shrunk) / (n + 4))


def unit_of(f):
    """Return what more is asked for, and how many fits one brings."""
    alone = f.content["method"] != "hierarchical" and f.content["replicates"] == f.designs == 1
    return ("subject", 1) if alone else ("replicate", f.content["subjects"])


def judged(f, name):
    """Return the facts behind a parameter's verdict, from the rows; errors are the JSON's own.

    Those are checked against what independent subjects give, by the jackknife.
    """
    told, rows = f.content["parameters"][name], usable(f)
    true, estimate = rows[f"true_{name}"].to_numpy(), rows[name].to_numpy()
    with np.errstate(over="ignore"):
        finite = bool(np.isfinite(np.square(estimate)).all())
    r = nan = float("nan")
    error, n = told["monte_carlo_error"]["r"], len(rows)
    if n > 2 and finite and np.ptp(true) > 0 and np.ptp(estimate) > 0:
        r = np.corrcoef(true, estimate)[0, 1]
        assert abs(r - told["r"]) < 1e-8
        if n >= 30 and f.content["method"] != "hierarchical":
            kept = ~np.eye(n, dtype=bool)
            each = [np.corrcoef(true[k], estimate[k])[0, 1] for k in kept]
            jackknife = sqrt((n - 1) ** 2 / n * np.var(each, ddof=1))
            assert abs(jackknife - error) < 0.4 * jackknife  # both are of order 1 / sqrt(n)
    low, high = rows[f"low_90_{name}"].to_numpy(), rows[f"high_90_{name}"].to_numpy()
    coverage = ((low <= true) & (true <= high)).mean() if n else nan
    unit, size = unit_of(f)
    unsound = f.rows["status"].isin(["failed", "not converged"])
    return SimpleNamespace(
        r=float(r),
        r_error=nan if error is None else error,
        n=n,
        coverage=float(coverage),
        coverage_error=max(share_error(coverage, n), told["monte_carlo_error"]["coverage"]["90"])
        if n
        else nan,
        failed=float(unsound.mean()),
        attempted=len(f.rows),
        varies=n > 1 and bool(np.ptp(true) > 0),
        finite=finite,
        word=told["verdict"],
        unit=unit,
        size=size,
    )


def judged_region(f, name, k):
    """Return the facts behind the verdict on a third of the prior."""
    told, rows, own = (
        f.content["parameters"][name]["regions"][k],
        usable(f),
        f.model.parameters[name],
    )
    third = np.floor(3 * norm.cdf((rows[f"z_true_{name}"] - own.mean) / own.sd))
    rows = rows[np.clip(third, 0, 2) == k]
    with np.errstate(all="ignore"):
        ends = [own.support.unconstrain(rows[f"{e}_90_{name}"].to_numpy()) for e in ("low", "high")]
        width = (ends[1] - ends[0]) / (2 * 1.6448536 * own.sd)
    width = np.where(width < 1, width, 1.0)
    unit, size = unit_of(f)
    n = len(rows)
    error = told["relative_width_error"]
    if n > 1 and f.content["method"] != "hierarchical":
        assert abs(width.std(ddof=1) / sqrt(n) - error) < 1e-6
        assert abs(width.mean() - told["relative_width"]) < 1e-6
    return SimpleNamespace(
        width=float(width.mean()) if n else float("nan"),
        error=float("nan") if error is None else error,
        n=n,
        word=told["verdict"],
        unit=unit,
        size=size / 3,
    )


def word_of(j):
    """Return the word that a parameter's or a region's numbers deserve."""
    if j.n < 10:
        return "not judged"
    if hasattr(j, "width"):
        ends = [j.width - 2 * j.error, j.width + 2 * j.error]
        if isnan(ends[0]):
            return "not judged"
        places = [sum(end > limit for limit in (0.6, 0.87)) for end in ends]
        return between(places)
    if not j.varies or not j.finite:
        return "not judged"
    if isnan(j.r):
        return "not identified"
    if isnan(j.r_error):
        return "not judged"
    z, error = fishers(j)
    places = [
        sum(end < atanh(limit) for limit in (0.8, 0.5)) for end in (z + 2 * error, z - 2 * error)
    ]
    beyond = max(0.85 - j.coverage, j.coverage - 0.95)
    for gap, own in ((beyond, j.coverage_error), (j.failed - 0.05, failure_error(j))):
        if gap > 2 * own:
            places = [max(place, 1) for place in places]
        elif gap > 0:
            places[1] = max(places[1], 1)
    return between(places)


def between(places):
    first, last = min(places), max(places)
    return WORDS[first] if first == last else f"between {WORDS[first]} and {WORDS[last]}"


def _verdict(f, words):
    assert words["word"] == f.content["parameters"][words["parameter"]]["verdict"]
    assert words["word"] == word_of(judged(f, words["parameter"]))


def _region(f, words):
    k = int(words["third"]) - 1
    told = f.content["parameters"][words["parameter"]]["regions"][k]
    assert words["word"] == told["verdict"] == word_of(judged_region(f, words["parameter"], k))


def _named(f, words):
    assert words["model"] == f.model.name == f.content["model"]
    assert words["place"] == f.content["environment"]


def _headed(f, words):
    _named(f, words)
    assert words["method"] == f.content["method"]
    assert int(words["n"]) * int(words.get("replicates", 1)) == len(f.rows)
    assert int(words.get("replicates", 1)) == f.rows["replicate"].nunique()


def _several(f, words):
    assert int(words["n"]) == f.content["subjects"]
    assert int(words["replicates"]) == f.rows["replicate"].nunique()


def counted(rows, words):
    """Assert that "3 ok, 1 failed" are the statuses of rows, and their number the one told."""
    assert int(words["attempted"]) == len(rows)
    told = dict(reversed(each.split(" ", 1)) for each in words["counts"].split(", "))
    assert {k: int(v) for k, v in told.items()} == dict(Counter(rows["status"]))


def _note(f, words):
    unsound = f.rows["status"].isin(["failed", "not converged"])
    counts = Counter(f.rows.loc[unsound, "message"])
    assert counts[words["message"]] == int(words["n"])
    assert int(words["attempted"]) == len(f.rows)
    assert sum(n > int(words["n"]) for n in counts.values()) < 3  # the three most frequent


def _session(f, words):
    assert words["sentence"] in f.content["identifiability"]


def within(told, values):
    """Return a parameter's name and which values lie in the stretch that words name."""
    name, _, rest = told.partition(" ")
    ends = [float(n) for n in re.findall(r"-?[\d.]+(?:e[-+]?\d+)?", rest)]
    if rest.startswith("above"):
        return name, values >= ends[0]
    if rest.startswith("below"):
        return name, values <= ends[0]
    if rest.startswith("from"):
        return name, (values >= ends[0]) & (values <= ends[1])
    return name, np.ones(len(values), dtype=bool)


def widths_there(told, parameters, true, low, high):
    """Return the widths of 90% intervals in a stretch over the prior's, 1 at most."""
    name, there = within(told, true)
    parameter = parameters[name]
    z = [parameter.support.unconstrain(end[there]) for end in (low, high)]
    width = (z[1] - z[0]) / (2 * norm.ppf(0.95) * parameter.sd)
    return np.where(width < 1, width, 1.0)


def _unreadable(f, words):
    name, rows = words["told"].partition(" ")[0], usable(f)
    columns = [rows[f"{part}{name}"].to_numpy() for part in ("true_", "low_90_", "high_90_")]
    width = widths_there(words["told"], f.model.parameters, *columns)
    told = float(words["width"].removesuffix("%")) / 100
    # Ends are told with 3 digits: a few rows beside them may count here and not there.
    assert abs(told - width.mean()) < 0.006 + 2 / len(width)
    assert width.mean() > 0.87


def rules(f, words):
    """Assert that the limits are those of the table."""
    assert (words["r"], words["least"], words["most"]) == ("0.8", "85%", "95%")
    assert (words["failures"], words["weak"]) == ("5%", "0.5")
    assert (words["width"], words["weak_width"], words["errors"]) == ("0.6", "0.87", "2")


MISSED = (
    Claim(
        "With a chance of {chance} the study would have found of {name} a bias of {bias} and a "
        "further shrinkage of {shrinkage}; errors half as large take about {half} {unit}s.",
        "the rows, by the error of a mean and the sandwich error of a slope",
        _missed,
    ),
    Claim(
        "With a chance of {chance} the study would have found of {name} a bias of {bias}, a "
        "further shrinkage of {shrinkage} or 90% intervals {factor} times as wide as they are; "
        "errors half as large take about {half} {unit}s.",
        "the rows, by the error of a mean, the sandwich error of a slope, and a normal test of the "
        "coverage of narrower intervals",
        _missed,
    ),
)
REPORT = Report(
    "recovery",
    sources=(
        "validation/recovery/parameter_recovery.py",
        "validation/recovery/readable_range.py",
        "validation/recovery/recovery_page.py",
        "validation/engine/sensitivity.py",
    ),
    sentences=(
        *MISSED,
        Claim(
            "Verdict on {parameter}: {word}.", "the table's limits on scores of the rows", _verdict
        ),
        Claim(
            "In third {third} of the prior {parameter} is {word}.",
            "the table's limits on the widths of the rows",
            _region,
        ),
        Claim("Can {model} be recovered from {place}?", "the design", _named),
        Claim(
            "recovery of {model} in {place}, {method}, {n} subjects",
            "the design, and the number of rows",
            _headed,
        ),
        Claim(
            "recovery of {model} in {place}, {method}, {n} subjects x {replicates} replicates",
            "the design, and the number of rows",
            _headed,
        ),
        Claim("{n}, in each of {replicates} replicates", "a count over the rows", _several),
        Claim(
            "{attempted} attempted: {counts} (Monte-Carlo errors in parentheses)",
            "a count of the statuses",
            lambda f, words: counted(f.rows, words),
        ),
        Claim("Note: {n} of {attempted}: {message}", "a count of the messages", _note),
        Claim(
            "{told} cannot be read in this design: 90% intervals are {width} as wide there as the "
            "prior's.",
            "widths of the intervals of the rows with such true values",
            _unreadable,
        ),
        Explanation("{name} at any value"),
        Claim("One session: {sentence}.", "see identifiability", _session),
        Claim("one session: {sentence}", "see identifiability", _session),
        Claim(
            "Recoverable: r at least {r}, 90% intervals that cover {least} to {most}, and at most "
            "{failures} of the fits failed or not converged; weak: r at least {weak}. In a region "
            "of true values: 90% intervals on the unconstrained scale at most {width} times as "
            "wide as the prior's own (relative width); weak: at most {weak_width}. Errors and "
            "coverage are no guide there: an estimate that ignores the data is near all truths in "
            "the middle. Where chance leaves the word open, a limit being within {errors} "
            "Monte-Carlo standard errors, the verdict is between two words.",
            "the limits that the proofs of verdicts use",
            rules,
        ),
        Explanation(
            "{errors} Failed fits are left out of the scores and counted above; flat and boundary "
            "estimates are kept."
        ),
        Explanation(
            "Statuses: flat, the trials say next to nothing about a parameter; boundary, the data "
            "ask for an infinite value; failed, no trustworthy estimate."
        ),
        Explanation("Estimate against truth, with 90% intervals."),
        Explanation("cor({pair}) in {n} replicates: {told}"),
        Explanation("bias {bias}, RMSE {rmse}, r {r}, 90% cov. {coverage}"),
        Explanation("; correlations over subjects: {each}"),
        Explanation("Error against truth."),
        Explanation("Coverage of the intervals minus their nominal mass, with 2 standard errors."),
    ),
)
