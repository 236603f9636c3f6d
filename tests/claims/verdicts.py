"""Sentences that give the reasons of verdicts; they stand in the reports of all studies.

Facts: a `SimpleNamespace` with the numbers that were judged, computed by the test from the rows,
and the word. Of a recovery `r`, `r_error`, `n`, `coverage`, `coverage_error`, `failed`,
`attempted`, `word`, `more`, `size`; of a region `width`, `error`; of the size of a test `rejected`,
`n`, `failed`; of the channel what its three judges are given.
"""

from __future__ import annotations

from math import atanh, isnan, sqrt

from scipy.stats import binomtest, norm
from stated import agrees

from claims import Claim, Report

LIMITS = {"0.8": 0.8, "0.5": 0.5}
REACH = 2 + norm.ppf(0.8)  # errors from a limit at which 80% of the estimates lie beyond two


def fishers(f):
    """Return r and its error on Fisher's scale, where limits are atanh(0.8) and atanh(0.5)."""
    r = min(max(f.r, -1 + 1e-12), 1 - 1e-12)
    own = 0.0 if f.r_error is None else f.r_error / (1 - r * r)
    return atanh(r), max(own, 1 / sqrt(f.n - 3))


def failure_error(f):
    """Return Agresti and Coull's error of the share of failures."""
    shrunk = (f.failed * f.attempted + 2) / (f.attempted + 4)
    return sqrt(shrunk * (1 - shrunk) / (f.attempted + 4))


def gaps(f):
    """Return how many errors each number lies from its limit, by the words on its two sides."""
    if hasattr(f, "width"):
        gap = {limit: abs(f.width - limit) / f.error if f.error else 99 for limit in (0.6, 0.87)}
        return [("recoverable", gap[0.6]), ("not identified", gap[0.87])]
    if hasattr(f, "rejected"):
        ends = wilson(f.rejected, f.n)
        few, many = (within(f.rejected, *ends, limit) for limit in (0.025, 0.075))
        return [("too few false alarms", few), ("too many false alarms", many)]
    if hasattr(f, "bounds"):
        beyond = [(0.9 - held) / error for held, error in f.bounds.values() if held < 0.9]
        return [("confirmed", gap) for gap in beyond if gap <= 2]
    if hasattr(f, "shares"):
        return [
            (word, within(*share, limit))
            for share in f.shares
            for word, limit in (("recoverable", 0.75), ("not identified", 1 / f.rivals + 0.1))
        ]
    z, error = fishers(f)
    found = [("recoverable", abs(z - atanh(0.8)) / error)]
    found.append(("not identified", abs(z - atanh(0.5)) / error))
    beyond = max(0.85 - f.coverage, f.coverage - 0.95)
    if beyond > 0 and beyond <= 2 * f.coverage_error:
        found.append(("recoverable", beyond / f.coverage_error))
    if f.failed > 0.05 and f.failed - 0.05 <= 2 * failure_error(f):
        found.append(("recoverable", (f.failed - 0.05) / failure_error(f)))
    return found


def within(share, low, high, limit):
    """Return how many errors a share lies from a limit: the end on that side is two away."""
    end = high if limit > share else low
    return 2 * (limit - share) / (end - share) if end != share else 99


def wilson(share, n):
    interval = binomtest(round(share * n), n).proportion_ci(method="wilson")
    return interval.low, interval.high


def _doubts(f):
    """Return the errors from their limits of the numbers that leave the word open."""
    return [gap for side, gap in gaps(f) if side in f.word and gap <= 2.001]


def _decides(f, words):
    count = int(words["n"].replace(",", ""))
    assert words["unit"] == f.unit
    for gap in _doubts(f):
        assert gap * sqrt(1 + count * f.size / f.n) >= REACH - 1e-6
    fewer = 0.9 * count - 2  # the number is rounded up to two digits
    assert min(_doubts(f)) * sqrt(max(1 + fewer * f.size / f.n, 0)) <= REACH


def _one_decides(f, words):
    _decides(f, {"n": "1", "unit": words["unit"]})


def _none_decides(f, words):
    assert words["unit"] == f.unit
    assert min(_doubts(f)) * sqrt(1 + 100_000 / f.n) <= REACH


def _closely(f, words):
    z, error = fishers(f)
    assert agrees(words["r"], f.r)
    assert z - 2 * error >= atanh(0.8)
    assert float(words["r"]) >= 0.8


def _loosely(f, words):
    z, error = fishers(f)
    assert agrees(words["r"], f.r)
    assert atanh(0.5) <= z - 2 * error
    assert z + 2 * error < atanh(LIMITS[words["limit"]])
    assert float(words["r"]) < 0.8


def _hardly(f, words):
    z, error = fishers(f)
    assert agrees(words["r"], f.r)
    assert z + 2 * error < atanh(LIMITS[words["limit"]])
    assert words["limit"] == "0.5"
    assert f.word == "not identified"


def _near(f, words):
    z, error = fishers(f)
    assert agrees(words["r"], f.r)
    for text, limit in LIMITS.items():
        assert (abs(z - atanh(limit)) <= 2 * error) == (text == words["limit"])


def _anywhere(f, words):
    z, error = fishers(f)
    assert agrees(words["r"], f.r)
    assert z + 2 * error > atanh(LIMITS[words["high"]])
    assert z - 2 * error < atanh(LIMITS[words["low"]])


def _held(f, words):
    assert agrees(words["share"], f.coverage)
    assert 0.85 <= f.coverage <= 0.95
    assert 85 <= float(words["share"].rstrip("%")) <= 95


def _held_wrongly(f, words):
    assert agrees(words["share"], f.coverage)
    if words["rarely"] == "rarely":
        assert f.coverage + 2 * f.coverage_error < 0.85
    else:
        assert words["rarely"] == "often"
        assert f.coverage - 2 * f.coverage_error > 0.95
    assert "recoverable" not in f.word


def _held_perhaps(f, words):
    assert agrees(words["share"], f.coverage)
    assert agrees(words["error"], f.coverage_error)
    low = words["rarely"] == "rarely"
    beyond = 0.85 - f.coverage if low else f.coverage - 0.95
    assert 0 < beyond <= 2 * f.coverage_error
    assert f.word != "recoverable"


def _failed(f, words):
    assert agrees(words["share"], f.failed)
    assert f.failed - 2 * failure_error(f) > 0.05
    assert "recoverable" not in f.word


def _failed_perhaps(f, words):
    assert agrees(words["share"], f.failed)
    assert agrees(words["error"], failure_error(f))
    assert 0.05 < f.failed <= 0.05 + 2 * failure_error(f)
    assert f.word != "recoverable"


def _few(f, words):
    assert int(words["n"]) == f.n < int(words["least"]) == 10
    assert f.word == "not judged"


def _width(f, words):
    assert agrees(words["share"], f.width)
    told, limits = float(words["share"].rstrip("%")) / 100, (0.6, 0.87)
    assert [told <= limit for limit in limits] == [f.width <= limit for limit in limits]


def _open_width(f, words):
    assert agrees(words["error"], f.error)
    assert f.word.startswith("between")
    assert min(gap for _, gap in gaps(f)) <= 2


def _size(f, words):
    assert agrees(words["share"], f.rejected)
    assert int(words["n"]) == f.n
    low, high = wilson(f.rejected, f.n)
    assert agrees(words["low"], low)
    assert agrees(words["high"], high)
    if f.word == "size holds":
        assert 0.025 < low <= high <= 0.075
    elif f.word == "too many false alarms":
        assert low > 0.075
    elif f.word == "too few false alarms":
        assert high <= 0.025
    elif f.word.startswith("between"):
        assert low <= 0.025 < high or low <= 0.075 < high
    else:
        assert f.failed > 0.05


def _few_sets(f, words):
    assert int(words["n"]) == f.n < int(words["least"]) == (20 if hasattr(f, "shares") else 100)


def _is(condition):
    def proof(f, words):
        assert condition(f)

    return proof


def _no_error(f, words):
    assert isnan(f.error if hasattr(f, "width") else f.r_error)
    assert f.word == "not judged"


def _differing(f, words):
    assert int(words["n"].replace(",", "")) == f.differing
    assert int(words["trials"].replace(",", "")) == f.trials
    assert f.word != "confirmed" or f.differing == 0


def _apart(f, words):
    assert float(words["gap"]) == float(f"{f.apart:.2g}") > 0
    assert f.word == "not confirmed"


def _told(f, words):
    assert int(words["n"].replace(",", "")) == sum(f.counts.values())
    assert int(words["trials"].replace(",", "")) == f.trials
    assert f.word != "confirmed" or sum(f.counts.values()) == f.trials


def strange(f):
    n = sum(f.counts.values())
    return [k for k, v in f.counts.items() if n and binomtest(v, n, f.dials[k]).pvalue < f.level]


def _rates(f, words):
    each = dict(one.split(" ", 1) for one in words["rates"].split(", "))
    assert list(each) == strange(f)
    n = sum(f.counts.values())
    for name, told in each.items():
        found, dial = told.split(" instead of ")
        assert agrees(found, f.counts[name] / n)
        assert agrees(dial, f.dials[name])
    assert f.word == "not confirmed"


def _bounds(f, words):
    lowest = min(f.bounds.values())[0]
    assert agrees(words["share"], lowest)
    assert f.bounds[words["name"]][0] == lowest
    assert agrees(words["plain"], min(f.plain.values()))
    assert f.plain[words["other"]] == min(f.plain.values())


REPORT = Report(
    "verdicts",
    sources=("validation/engine/verdicts.py",),
    sentences=(
        Claim(
            "Estimates follow the truth closely (r = {r}).",
            "NumPy's correlation over the rows, on Fisher's scale two errors above .8",
            _closely,
        ),
        Claim(
            "Estimates follow the truth loosely (r = {r}, below {limit}).",
            "the same, two errors below .8 and above .5",
            _loosely,
        ),
        Claim(
            "Estimates hardly follow the truth (r = {r}, below {limit}).",
            "the same, two errors below .5",
            _hardly,
        ),
        Claim(
            "How closely estimates follow the truth is open: r = {r} is near {limit}.",
            "the same, within two errors of this limit alone",
            _near,
        ),
        Claim(
            "How closely estimates follow the truth is open: r = {r} may be above {high} or below "
            "{low}.",
            "the same, within two errors of both limits",
            _anywhere,
        ),
        Claim(
            "90% intervals hold the truth in {share}.",
            "a count over the rows, within 85% to 95%",
            _held,
        ),
        Claim(
            "90% intervals hold the truth too {rarely}: in {share}.",
            "a count over the rows, two errors beyond 85% or 95%",
            _held_wrongly,
        ),
        Claim(
            "Whether 90% intervals hold the truth too {rarely} is open: in {share}, with a "
            "standard error of {error}.",
            "a count over the rows, beyond 85% or 95% by less than two errors",
            _held_perhaps,
        ),
        Claim("There are no 90% intervals.", "none was given", _is(lambda f: isnan(f.coverage))),
        Claim(
            "{share} of the fits failed or did not converge: too many.",
            "a count of the statuses, two errors above 5%",
            _failed,
        ),
        Claim(
            "{share} of the fits failed or did not converge, with a standard error of {error}: "
            "whether too many is open.",
            "a count of the statuses, above 5% by less than two errors",
            _failed_perhaps,
        ),
        Claim(
            "About {n} more {unit}s decide (with a chance of 80% if the true number is the "
            "estimated one).",
            "two errors and the 80% quantile of the normal distribution fit between number and "
            "limit with so many more, and not with a tenth fewer",
            _decides,
        ),
        Claim(
            "One more {unit} decides (with a chance of 80% if the true number is the estimated "
            "one).",
            "the same",
            _one_decides,
        ),
        Claim(
            "So near the limit, no feasible number of {unit}s decides.",
            "the same, and not with 100,000 more fits",
            _none_decides,
        ),
        Claim("Usable fits: {n}; {least} are needed.", "a count over the rows", _few),
        Claim(
            "The truth is the same for all, so nothing can correlate.",
            "the true values of the rows",
            _is(lambda f: not f.varies and f.word == "not judged"),
        ),
        Claim(
            "Some estimates are too large for r to be computed.",
            "the estimates of the rows: a square is infinite",
            _is(lambda f: not f.finite and f.word == "not judged"),
        ),
        Claim(
            "The estimates do not vary with the subject.",
            "the estimates of the rows",
            _is(lambda f: isnan(f.r) and f.word == "not identified"),
        ),
        Claim(
            "How much chance is in it cannot be computed from the fits of a single replicate.",
            "the error is no number",
            _is(
                lambda f: (
                    isnan(f.error if hasattr(f, "width") else f.r_error) and f.word == "not judged"
                )
            ),
        ),
        Claim(
            "Intervals are {share} as wide as the prior's.",
            "widths over the rows, on the unconstrained scale",
            _width,
        ),
        Claim(
            "The standard error of that, {error}, leaves the word open.",
            "the standard deviation of the widths over the root of their number",
            _open_width,
        ),
        Claim("Data sets: {n}; {least} are needed.", "a count", _few_sets),
        Claim(
            "The test rejects in {share} of {n} data sets without an effect (95% interval {low} to "
            "{high}), 5% promised.",
            "SciPy's Wilson interval, against 2.5% and 7.5%",
            _size,
        ),
        Claim(
            "That is more often than promised.",
            "SciPy's Wilson interval begins above 5%",
            _is(lambda f: wilson(f.rejected, f.n)[0] > 0.05),
        ),
        Claim(
            "That is more rarely than promised.",
            "SciPy's Wilson interval ends below 5%",
            _is(lambda f: wilson(f.rejected, f.n)[1] < 0.05),
        ),
        Claim(
            "{share} of the data sets gave no estimate: too many.",
            "a count, above 5%",
            _is(lambda f: f.failed > 0.05 and f.word == "not judged"),
        ),
        Claim(
            "It holds its size from {low} to {high}.",
            "the limits 2.5% and 7.5%",
            lambda f, words: _is(lambda _: tuple(words.values()) == ("2.5%", "7.5%"))(f, words),
        ),
        Claim(
            "{n} of {trials} trials differ from those of the direct path.",
            "what was compared",
            _differing,
        ),
        Claim(
            "No subject has all answers and both estimates, so none are compared.",
            "what was compared",
            _is(lambda f: isnan(f.apart)),
        ),
        Claim(
            "Where every answer was read, the estimates are identical.",
            "what was compared",
            _is(lambda f: f.apart == 0),
        ),
        Claim(
            "Where every answer was read, estimates differ by up to {gap}.",
            "what was compared",
            _apart,
        ),
        Claim("No trial was lived.", "what was compared", _is(lambda f: f.trials == 0)),
        Claim("{n} of {trials} trials have an outcome.", "a count", _told),
        Claim("Rates are not those of the dials: {rates}.", "SciPy's exact binomial test", _rates),
        Claim(
            "No rate differs from that of the dials by more than chance.",
            "SciPy's exact binomial test",
            _is(lambda f: not strange(f)),
        ),
        Claim("No answer is missing.", "a count", _is(lambda f: f.missing == 0)),
        Claim(
            "{share} of the fits failed.",
            "a count",
            lambda f, words: _is(lambda _: agrees(words["share"], f.failed))(f, words),
        ),
        Claim(
            "Bounds at 90% hold the truth in {share} ({name}) or more; intervals that take answers "
            "to be missing at random in {plain} ({other}) or more.",
            "the smallest of each",
            _bounds,
        ),
        Claim(
            "Whether that is less than the 90% promised is open.",
            "the smallest is below 90% by less than two errors",
            _is(lambda f: f.word == "between confirmed and not confirmed" and gaps(f)),
        ),
    ),
)
