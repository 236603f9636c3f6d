"""The one table of thresholds behind every verdict, and how a number is held against them.

======================  ======================================================================
recoverable             of a parameter: r >= 0.8, 90% intervals cover 0.85 to 0.95, at most 5% of
                        the fits failed; in a region of true values: intervals on the unconstrained
                        scale at most 0.6 times as wide as the prior's; of a model among M: both
                        shares, p(best | simulated) and p(simulated | best), 0.75 or more
weak                    r >= 0.5; at most 0.87 times as wide; both shares 0.1 above 1 / M
not identified          less, also where estimates do not vary
calibrated              p of two tests of uniformity above 0.05, shared among a study's quantities
biased high, low        rejected: the mean rank is too small, too large (by 3 standard errors, the
                        larger deviation by 2 if neither is clear)
over-, under-confident  rejected: ranks spread too far, too little; no spread is named if the mean
                        is beyond 0.1 to 0.9
miscalibrated           rejected, and neither explains it
size holds              a test at 5% rejects in 0.025 to 0.075 of the data sets without an effect
                        (Bradley 1978); too many, too few false alarms beyond
confirmed               of the channel of words: no trial differs, rates are those of the dials, 90%
                        bounds hold the truth in 0.9; of a search: the fresh run bears it out
passed, failed          of a control of a player: an instruction is heeded in 0.8 of the trials;
                        shuffled and reversed payoffs take 0.05 and 0.1 standard deviations of a
                        payoff; other names or wordings change at most 0.1 of the answers
not judged              fewer than 10 fits, 20 data sets of a model, 100 of a test or 6 sessions of
                        a control; ranks that would not notice, with a chance of 80%, a posterior
                        half as wide as it should be; no error; more than 5% failed where that
                        enters no word
======================  ======================================================================

A word is given only where the number lies beyond its threshold by more than 2 Monte-Carlo standard
errors (of r on Fisher's scale, and at least Fisher's error; of shares, where the 95% interval
holds no threshold). Elsewhere the verdict is "between" the words that are possible, and says how
many more replicates decide with a chance of 80% if the true number is the one estimated. What only
bars a better word, coverage, failures and bounds, counts against a study where it lies beyond its
threshold by 2 errors, and leaves the word open where by less.

A correlation of 0.8 leaves 36% of the variance of the estimates to noise, which is the usual floor
for reading individual differences (Wilson and Collins 2019); 0.5 leaves 75%. A posterior whose mean
follows the truth with correlation r has sqrt(1 - r**2) times the prior's spread, which gives the
limits of regions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import atanh, ceil, inf, isfinite, isnan, log10, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from knownminds.environments.record.outcome_rates import wilson

from .scores import Score, mean, share

RECOVERABLE_R, WEAK_R = 0.8, 0.5
RECOVERABLE_WIDTH, WEAK_WIDTH = 0.6, 0.87  # sqrt(1 - r**2) of the above
LOWEST_COVERAGE, HIGHEST_COVERAGE = 0.85, 0.95
MOST_FAILURES = 0.05
LEAST_FITS = 10

CLEAR = 2.0  # Monte-Carlo standard errors from a threshold beyond which a word is given
NOTICED = 0.8  # chance with which something is said to be noticed or decided
MOST_MORE = 100_000  # fits; what needs more is not decided by any feasible number

RECOVERABLE_SHARE, CONFUSED_SHARE = 0.75, 0.05
ABOVE_CHANCE = 0.1  # by which a model's shares must exceed chance
LEAST_DATA_SETS = 20  # of a confusion matrix
HALF_WIDTH = 0.5  # a calibration is judged if it could see posteriors of this relative width
CLEAR_ERRORS, LEAST_ERRORS = 3.0, 2.0  # by which mean or spread of ranks must deviate
FURTHEST_MEAN = 0.9  # of ranks, as a share of their range; the mirrored 0.1 at the other end
LEAST_FOR_SIZE = 100  # data sets
LEAST_SIZE, MOST_SIZE = 0.025, 0.075  # false alarms of a test at 5% whose size holds

RECOVERY: tuple[str, ...] = ("recoverable", "weak", "not identified")
OPEN = ("between recoverable and weak", "between recoverable and not identified")  # may be
SIZES: tuple[str, ...] = ("too few false alarms", "size holds", "too many false alarms")
CONFIRMED: tuple[str, ...] = ("confirmed", "not confirmed")

# Of a control of a player: what its number is, and from where on it is passed.
CONTROLS: Mapping[str, tuple[str, float]] = {
    "instruction": ("share that heeds it", 0.8),
    "shuffled": ("gain lost", 0.05),
    "reversed": ("gain lost", 0.1),
    "relabelled": ("more that differ", 0.1),
    "paraphrase": ("more that differ", 0.1),
}
PASSED_BELOW = ("relabelled", "paraphrase")  # the others are passed above their limit
LEAST_SESSIONS = 6  # of a control


@dataclass(frozen=True)
class More:
    """How many more would decide between the words of a verdict, with a chance of 80%.

    Parameters
    ----------
    count : None where no feasible number would.
    unit : Of what: "subject", "replicate", "data set".
    """

    count: int | None
    unit: str

    def __str__(self) -> str:
        if self.count is None:
            return f"no feasible number of {self.unit}s decides"
        return f"not judged yet: about {self.count:,} more {self.unit}{'s' * (self.count > 1)}"


@dataclass(frozen=True)
class Verdict:
    """A word from the table above, and the numbers that it rests on.

    Parameters
    ----------
    reasons : Each a number with its error and its limits, or why nothing is judged.
    more : What would decide where the word is "between" others; None elsewhere.
    """

    word: str
    reasons: tuple[str, ...] = ()
    more: More | None = None

    def __str__(self) -> str:
        parts = [*self.reasons, *([] if self.more is None else [str(self.more)])]
        return f"{self.word} ({'; '.join(parts)})" if parts else self.word

    @property
    def tone(self) -> str:
        """Return "good", "fair" or "bad"; "" of any other word."""
        if self.word.startswith("between "):
            return "fair"
        first = self.word.partition(", ")[0]
        return next((tone for tone, words in TONES.items() if first in words), "")

    def to_dict(self) -> dict[str, Any]:
        """Word as "verdict", reasons, and as "more" what would decide: count and unit, or None."""
        more = None if self.more is None else {"count": self.more.count, "unit": self.more.unit}
        return {"verdict": self.word, "reasons": list(self.reasons), "more": more}


TONES: Mapping[str, tuple[str, ...]] = {
    "good": ("recoverable", "calibrated", "size holds", "confirmed", "reached", "complete",
             "readable", "converged", "kept", "passed", "none", "not told", "differs",
             "no difference", "a clear difference"),
    "fair": ("weak", "predicts the same", "too few false alarms", "open", "no clear difference",
             "partly readable"),
    "bad": ("broken", "failed", "has no value", "not converged", "not identified",
            "too many false alarms", "not confirmed", "not reached", "not reproduced",
            "not finished", "not complete", "hardly readable", "biased high", "biased low",
            "over-confident", "under-confident", "miscalibrated", "peeks", "leaks"),
}  # fmt: skip


def reason(name: str, value: float, error: float, *limits: float) -> str:
    """Write down a number, its standard error and the limits that it is held against."""
    text = f"{name} {value:.3f}" + (f" ({error:.3f})" if isfinite(error) else "")
    return (
        f"{text}, {'limit' if len(limits) == 1 else 'limits'} {', '.join(f'{x:g}' for x in limits)}"
    )


@dataclass(frozen=True)
class JudgedNumber:
    """A number that is held against ascending thresholds; up to one the word before it holds.

    Parameters
    ----------
    limits : The thresholds, one less than there are words.
    value, low, high : The number, and what it may be: two standard errors to either side, or a 95%
        interval.
    reason : The number with its error and limits; "" if it needs none.
    """

    limits: Sequence[float]
    value: float
    low: float
    high: float
    reason: str = ""

    @classmethod
    def around(cls, limits: Sequence[float], score: Score, text: str = "") -> JudgedNumber:
        """Hold a score with two standard errors to either side."""
        half = CLEAR * score.error
        return cls(limits, score.value, score.value - half, score.value + half, text)

    @classmethod
    def bar(cls, beyond: float, error: float, text: str = "") -> JudgedNumber:
        """Hold a number that bars the first word where it lies beyond a threshold, by how far."""
        return cls((0.0,), beyond, beyond - CLEAR * error, beyond, text)

    @property
    def words(self) -> tuple[int, int]:
        """Positions of the words between which it lies; equal where it is clear."""
        first = bisect_left(self.limits, self.low)
        return first, max(first, bisect_left(self.limits, self.high))

    def times(self, word: int) -> float:
        """How many times as many fits bring it clear of the threshold behind a word."""
        distance = self.limits[word] - self.value
        end = self.low if self.limits[word] < self.value else self.high
        error = abs(end - self.value) / CLEAR
        reach = CLEAR + float(ndtri(NOTICED))
        return (reach * error / distance) ** 2 if distance else inf


def judge(
    words: Sequence[str],
    held: Sequence[JudgedNumber],
    n: float,
    *,
    unit: str = "subject",
    size: float = 1,
) -> Verdict:
    """Return the verdict of several numbers, the worst of which counts.

    Parameters
    ----------
    words : From the word of the lowest numbers to that of the highest.
    n : Fits that the numbers rest on.
    unit, size : What more is needed, and how many fits one of it brings on average.
    """
    reasons = tuple(one.reason for one in held if one.reason)
    first, last = (max(one.words[k] for one in held) for k in (0, 1))
    if first == last:
        return Verdict(words[first], reasons)
    times = max(
        one.times(word) for one in held for word in range(*one.words) if first <= word < last
    )
    fits = n * (times - 1)
    more = More(None if fits > MOST_MORE else _rounded_up(fits / size), unit)
    return Verdict(f"between {words[first]} and {words[last]}", reasons, more)


def _rounded_up(count: float) -> int:
    """Round a number up to a whole one of two digits: more is not known."""
    step = int(10 ** max(0, int(log10(max(count, 1))) - 1))
    return max(1, ceil(count / step) * step)


def not_judged(*reasons: str) -> Verdict:
    """Return that nothing is judged, and why."""
    return Verdict("not judged", reasons)


def too_few(n: int, least: int, what: str = "usable fits") -> Verdict:
    """Return that there is too little to judge."""
    return not_judged(f"{n} {what}, {least} are needed")


_NO_ERROR = not_judged("a single replicate gives no standard error")


def judge_recovery(
    r: Score,
    coverage: Score,
    *,
    n: int,
    failed: float = 0.0,
    attempted: int | None = None,
    varies: bool = True,
    finite: bool = True,
    unit: str = "subject",
    size: int = 1,
) -> Verdict:
    """Judge a parameter's recovery.

    Parameters
    ----------
    r : Correlation of estimate and truth, NaN where the estimates do not vary. Fisher's error, 1 /
        sqrt(n - 3) for atanh r, is used where it is larger.
    coverage : Share of the 90% intervals that hold the truth.
    n : Usable fits.
    failed, attempted : Share of the attempted fits that failed or did not converge, and their
        number (n if None).
    varies, finite : Whether the truth differs between subjects; whether the estimates are small
        enough for r.
    unit, size : The unit in which more data can be had, and how many fits one unit adds.
    """
    if n < LEAST_FITS:
        return too_few(n, LEAST_FITS)
    if not varies:
        return not_judged("the truth is the same for all")
    if not finite:
        return not_judged("some estimates are too large for r to be computed")
    if isnan(r.value):
        return Verdict("not identified", ("the estimates do not vary",))
    if isnan(r.error):
        return _NO_ERROR
    within = min(max(r.value, -1 + 1e-12), 1 - 1e-12)  # Fisher's z of a perfect r is infinite
    z = Score(-atanh(within), max(r.error / (1 - within**2), 1 / sqrt(n - 3)))
    limits = (WEAK_R, RECOVERABLE_R)
    held = [
        JudgedNumber.around(
            (-atanh(RECOVERABLE_R), -atanh(WEAK_R)), z, reason("r", r.value, r.error, *limits)
        )
    ]
    if isnan(coverage.value):
        held.append(JudgedNumber.bar(1.0, 0.0, "no 90% intervals"))
    else:
        ends = (LOWEST_COVERAGE, HIGHEST_COVERAGE)
        text = reason("90% intervals cover", coverage.value, coverage.error, *ends)
        beyond = max(ends[0] - coverage.value, coverage.value - ends[1])
        held.append(JudgedNumber.bar(beyond, coverage.error, text))
    if failed > MOST_FAILURES:
        error = share(failed * (attempted or n), attempted or n).error
        text = reason("failed or not converged", failed, error, MOST_FAILURES)
        held.append(JudgedNumber.bar(failed - MOST_FAILURES, error, text))
    return judge(RECOVERY, held, n, unit=unit, size=size)


def judge_region(width: Score, *, n: int, unit: str = "subject", size: float = 1) -> Verdict:
    """Judge what sessions say about a parameter within a region of true values.

    Errors and coverage are no guide there: an estimate that ignores the data is close to all
    truths in the middle of the prior, and right intervals cover the middle more often than the
    ends.

    Parameters
    ----------
    width : Mean width of the 90% intervals on the unconstrained scale over that of the prior.
    n : Usable fits.
    unit, size : As in `judge_recovery`.
    """
    if n < LEAST_FITS:
        return too_few(n, LEAST_FITS)
    if isnan(width.error):
        return _NO_ERROR
    limits = (RECOVERABLE_WIDTH, WEAK_WIDTH)
    text = reason("relative width", width.value, width.error, *limits)
    return judge(RECOVERY, [JudgedNumber.around(limits, width, text)], n, unit=unit, size=size)


def judge_size(
    rejected: float, n: int, *, failed: float = 0.0, level: float = 0.05, at_most: bool = False
) -> Verdict:
    """Judge how often a test rejects a true null hypothesis.

    Parameters
    ----------
    rejected : Share of n data sets in which it rejects.
    failed : Share of the data sets without an estimate.
    level : The share that is promised; limits are half of it and one and a half times it.
    at_most : The promise is that share or less.
    """
    if n < LEAST_FOR_SIZE:
        return too_few(n, LEAST_FOR_SIZE, "data sets")
    low, high = wilson(round(rejected * n), n)
    limits = (-1.0 if at_most else LEAST_SIZE * level / 0.05, MOST_SIZE * level / 0.05)
    text = reason("rejects", rejected, nan, *limits[at_most:])
    if failed > MOST_FAILURES:
        return not_judged(text, reason("no estimate", failed, nan, MOST_FAILURES))
    held = JudgedNumber(limits, rejected, float(low), float(high), text)
    return judge(SIZES, [held], n, unit="data set")


@dataclass(frozen=True)
class ControlTest:
    """How a player is judged by a control, as `Analysis` says how a measure is tested.

    Parameters
    ----------
    control : One of `CONTROLS`.
    """

    control: str

    def judge(self, values: ArrayLike) -> tuple[Score, Verdict]:
        """Return the mean over sessions [n], and whether the control is passed."""
        number, n = mean(values), np.size(values)
        if n < LEAST_SESSIONS:
            return number, too_few(n, LEAST_SESSIONS, "sessions")
        what, limit = CONTROLS[self.control]
        words = ("passed", "failed") if self.control in PASSED_BELOW else ("failed", "passed")
        held = JudgedNumber.around(
            (limit,), number, reason(what, number.value, number.error, limit)
        )
        return number, judge(words, [held], n, unit="session")

    def __str__(self) -> str:
        what, limit = CONTROLS[self.control]
        side = "below" if self.control in PASSED_BELOW else "above"
        return (
            f"control {self.control}: mean over sessions ({what}), passed if it lies {side} "
            f"{limit:g} by {CLEAR:g} standard errors"
        )


def judge_ranks(
    p_value: float, level: float, mean: Score, spread: Score, *, failed: float = 0.0
) -> Verdict:
    """Judge whether the ranks of true values among draws of the posterior are uniform.

    Parameters
    ----------
    p_value, level : Of the test of uniformity; up to the level it rejects.
    mean : Mean rank as a share of the range; 0.5 if uniform.
    spread : Variance of the ranks over that of a posterior of the right width; 1 if uniform.
    failed : Share of the posteriors that failed or did not converge.
    """
    test = reason("p", p_value, nan, level)
    if p_value > level:
        if failed > MOST_FAILURES:
            return not_judged(test, reason("failed or not converged", failed, nan, MOST_FAILURES))
        return Verdict("calibrated", (test,))
    bias = _errors_off(mean.value - 0.5, mean.error)
    width = _errors_off(spread.value - 1, spread.error)
    if not 1 - FURTHEST_MEAN <= mean.value <= FURTHEST_MEAN:
        width = 0.0  # nearly all ranks sit at one end
    threshold = CLEAR_ERRORS
    if max(bias, width) <= CLEAR_ERRORS:
        threshold = max(LEAST_ERRORS, min(bias, width))  # only the larger of the two is named
    words = []
    if bias > threshold:
        words.append("biased high" if mean.value < 0.5 else "biased low")
    if width > threshold:
        words.append("over-confident" if spread.value > 1 else "under-confident")
    shape = (f"mean rank {mean}, uniform 0.5", f"spread {spread}, uniform 1")
    return Verdict(", ".join(words) or "miscalibrated", (test, *shape))


def _errors_off(deviation: float, error: float) -> float:
    """Size of a deviation in standard errors; ranks that do not vary have an error of 0."""
    if error > 0:
        return abs(deviation) / error
    return inf if deviation else 0.0
