"""The one table of thresholds behind every verdict, and the sentences that give the reasons.

======================  ======================================================================
recovery of a parameter (`judge_recovery`)
----------------------------------------------------------------------------------------------
recoverable             r >= 0.8, coverage of 90% intervals within 0.85 to 0.95, at most 5% of
                        the fits failed or not converged
weak                    r >= 0.5, and not recoverable
not identified          r < 0.5, or the estimates do not vary
not judged              the truth is the same for all, r or its error cannot be computed, or fewer
                        than 10 fits are usable
----------------------  ----------------------------------------------------------------------
recovery within a region of true values (`judge_region`)
----------------------------------------------------------------------------------------------
recoverable             90% intervals on the unconstrained scale are at most 0.6 times as wide
                        as the prior's own
weak                    at most 0.87 times, and not recoverable
not identified          wider
not judged              fewer than 10 fits are usable, or the error cannot be computed
----------------------  ----------------------------------------------------------------------
recovery of a model among M rivals (`model_recovery.judge_model`)
----------------------------------------------------------------------------------------------
recoverable             both shares, p(best fit = model | simulated = model) and p(simulated =
                        model | best fit = model), are 0.75 or more
weak                    both are at least 0.1 above 1 / M, which is chance, and not recoverable
not identified          one of them is not
not judged              fewer than 20 data sets
(confused)              a pair is named if the interval of its share begins above 0.05
----------------------  ----------------------------------------------------------------------
calibration of a quantity (`rank_uniformity.judge`)
----------------------------------------------------------------------------------------------
calibrated              p-value of the gamma statistic above the level: 0.05 over all quantities
                        of a study together
biased high, low        rejected, and the mean rank is too small, too large
over-confident          rejected, and the ranks spread too far: the posterior is too narrow
under-confident         rejected, and the ranks spread too little: the posterior is too wide
miscalibrated           rejected, and neither explains it
not judged              too few replicates to notice, with a chance of 80%, a posterior that is
                        0.5 times as wide as it should be
(named)                 mean or spread is named beyond 3 standard errors, the larger one also
                        beyond 2 if neither is clear; no spread if the mean is beyond 0.1 to 0.9
----------------------  ----------------------------------------------------------------------
size of a test at 5% (`judge_size`)
----------------------------------------------------------------------------------------------
size holds              it rejects in 0.025 to 0.075 of the data sets without an effect (Bradley
                        1978)
too many false alarms   it rejects more often: its p-values overstate
too few false alarms    it rejects more rarely: it is safe, and loses power
not judged              fewer than 100 data sets, or more than 5% of them without an estimate
----------------------  ----------------------------------------------------------------------
the channel of words (`judge_trials`, `judge_outcomes`, `judge_bounds`)
----------------------------------------------------------------------------------------------
confirmed               trials: none differs from the direct path with the same answers withheld,
                        and subjects of whom all were read have the same estimates;
                        outcomes: every trial has one, and no rate differs from that of the
                        dials, tested at 0.05 over all rates of a study together;
                        bounds: those with sampling error hold the truth of every parameter in at
                        least 90%
not confirmed           otherwise
not judged              there is nothing to compare; for bounds, no answer is missing, fewer than
                        10 fits are usable, or more than 5% of them failed
======================  ======================================================================

A word is given only where the number lies beyond its threshold by more than 2 Monte-Carlo standard
errors (of r on Fisher's scale, and at least Fisher's own error; of models and sizes, where the 95%
interval of the share holds no threshold). Elsewhere the verdict is "between" the words that are
possible, such as "between weak and not identified", and says how many more replicates (subjects,
data sets) decide with a chance of 80% if the true number is the one estimated; from 100,000 more
fits on, that no feasible number does. So two runs of the same study contradict each other in one of
a thousand pairs at worst. What only bars a better word, coverage, failures and bounds, is held
against a study where it lies beyond its threshold by 2 errors, leaves the word open where by less,
and is borne where it lies within: exact intervals would otherwise need 600 fits. Two runs then
contradict each other in at most 5% of pairs.

A correlation of 0.8 leaves 36% of the variance of the estimates to noise, which is the usual
floor for reading individual differences (Wilson and Collins 2019); 0.5 leaves 75%. Within a
region correlations say little, since their range is cut; a posterior whose mean follows the truth
with correlation r has sqrt(1 - r**2) times the prior's spread, which gives the same two limits.
Posteriors are judged by `inference.convergence` (R-hat <= 1.01, bulk and tail effective sample
size >= 400, no divergent draw; Vehtari et al. 2021).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import atanh, ceil, inf, isnan, log10, sqrt
from typing import Any, Literal

import scipy
from scipy.special import ndtri

from .monte_carlo import share

RECOVERABLE_R = 0.8
WEAK_R = 0.5
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
CLEAR_ERRORS = 3.0  # standard errors by which mean or spread must deviate to be named
LEAST_ERRORS = 2.0  # the same for the larger of the two, if none is clear
FURTHEST_MEAN = 0.9  # of ranks, as a share of their range; the mirrored 0.1 at the other end
LEAST_FOR_SIZE = 100  # data sets
LEAST_SIZE, MOST_SIZE = 0.025, 0.075  # false alarms of a test at 5% whose size holds
RATES_LEVEL = 0.05  # of the test that outcome rates are those of the dials, over a whole study

Word = Literal[
    "recoverable",
    "weak",
    "not identified",
    "not judged",
    "size holds",
    "too many false alarms",
    "too few false alarms",
    "confirmed",
    "not confirmed",
    "between recoverable and weak",
    "between weak and not identified",
    "between recoverable and not identified",
    "between too few false alarms and size holds",
    "between size holds and too many false alarms",
    "between too few false alarms and too many false alarms",
    "between confirmed and not confirmed",
]  # calibrations have words that combine: see the table
RECOVERY: tuple[Word, ...] = ("recoverable", "weak", "not identified")
OPEN = ("between recoverable and weak", "between recoverable and not identified")  # may be
SIZES: tuple[Word, ...] = ("too few false alarms", "size holds", "too many false alarms")


@dataclass(frozen=True)
class More:
    """How many more would decide between the words of a verdict, with a chance of 80%.

    Parameters
    ----------
    count
        None where no feasible number would.
    unit
        Of what: "subject", "replicate", "data set".
    """

    count: int | None
    unit: str

    def __str__(self) -> str:
        """Say it in a sentence."""
        if self.count is None:
            return f"So near the limit, no feasible number of {self.unit}s decides."
        if self.count == 1:
            return (
                f"One more {self.unit} decides (with a chance of 80% if the true number is the "
                "estimated one)."
            )
        return (
            f"About {self.count:,} more {self.unit}s decide (with a chance of 80% if the true "
            "number is the estimated one)."
        )


@dataclass(frozen=True)
class Verdict:
    """A word from the table above and the reasons for it, each a sentence.

    Parameters
    ----------
    more
        What would decide where the word is "between" others; None elsewhere.
    """

    word: Word
    reasons: tuple[str, ...]
    more: More | None = None

    def __str__(self) -> str:
        """Word and reasons in one line."""
        return f"{self.word}: {' '.join(self.reasons)}"

    def to_dict(self) -> dict[str, Any]:
        """Word as "verdict", reasons, and as "more" what would decide: count and unit, or None."""
        more = None if self.more is None else {"count": self.more.count, "unit": self.more.unit}
        return {"verdict": self.word, "reasons": list(self.reasons), "more": more}


@dataclass(frozen=True)
class Reading:
    """Which of several ordered words a number allows.

    Parameters
    ----------
    first, last
        Positions of the words between which it lies; equal where it is clear.
    needed
        For each threshold that it is too near to, by the position of the word before it: how many
        times as many fits decide.
    """

    first: int
    last: int
    needed: Mapping[int, float]

    @property
    def is_open(self) -> bool:
        """Whether more than one word is possible."""
        return self.first < self.last


def read_against(value: float, low: float, high: float, limits: Sequence[float]) -> Reading:
    """Hold a number against ascending thresholds; up to a threshold the word before it holds.

    Parameters
    ----------
    low, high
        Ends of what it may be: two standard errors to either side, or a 95% interval.
    """
    first = bisect_left(limits, low)
    last = max(first, bisect_left(limits, high))

    def needed(limit: float) -> float:
        end = high if limit > value else low
        return _times(limit - value, (end - value) / CLEAR)

    return Reading(first, last, {k: needed(limits[k]) for k in range(first, last)})


def read_bar(beyond: float, error: float) -> Reading:
    """Read a number that bars the first word where it lies beyond a threshold, given by how far."""
    if beyond <= 0:
        return Reading(0, 0, {})
    if beyond > CLEAR * error:
        return Reading(1, 1, {})
    return Reading(0, 1, {0: _times(beyond, error)})


def combined(
    words: Sequence[Word], readings: Sequence[Reading], n: float, *, unit: str, size: float = 1
) -> tuple[Word, More | None]:
    """Return the word of several readings, the worst of which counts, and what would decide.

    Parameters
    ----------
    n
        Fits that the readings rest on.
    unit, size
        What more is asked for, and how many fits one of it brings on average.
    """
    first = max(reading.first for reading in readings)
    last = max(reading.last for reading in readings)
    if first == last:
        return words[first], None
    times = max(
        needed for reading in readings for k, needed in reading.needed.items() if first <= k < last
    )
    word: Any = f"between {words[first]} and {words[last]}"
    fits = n * (times - 1)
    return word, More(None if fits > MOST_MORE else _rounded_up(fits / size), unit)


def _times(distance: float, error: float) -> float:
    """How many times as many fits bring a number clear of a threshold that is so far away."""
    reach = CLEAR + float(ndtri(NOTICED))
    return (reach * error / distance) ** 2 if distance else inf


def _rounded_up(count: float) -> int:
    """Round a number up to a whole one of two digits: more is not known."""
    digits = max(0, int(log10(max(count, 1))) - 1)
    step = int(10**digits)
    return max(1, ceil(count / step) * step)


def judge_recovery(
    r: float,
    coverage: float,
    coverage_error: float,
    *,
    n: int,
    r_error: float | None = None,
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
    r, r_error
        Correlation of estimate and truth, NaN where the estimates do not vary; its Monte-Carlo
        standard error. Fisher's own, 1 / sqrt(n - 3) for atanh r, is used where it is larger.
    coverage, coverage_error
        Share of the 90% intervals that hold the truth, and its Monte-Carlo standard error.
    n
        Usable fits.
    failed, attempted
        Share of the attempted fits that failed or did not converge, and their number (n if None).
    varies
        Whether the truth differs between subjects.
    finite
        Whether the estimates are small enough that r can be computed.
    unit, size
        What more can be asked for, and how many fits one of it brings.
    """
    if n < LEAST_FITS:
        return _too_few(n)
    if not varies:
        return Verdict("not judged", ("The truth is the same for all, so nothing can correlate.",))
    if not finite:
        return Verdict("not judged", ("Some estimates are too large for r to be computed.",))
    if isnan(r):
        return Verdict("not identified", ("The estimates do not vary with the subject.",))
    if r_error is not None and isnan(r_error):
        return _no_error()

    followed = _read_r(r, r_error, n)
    low = read_bar(LOWEST_COVERAGE - coverage, coverage_error)
    high = read_bar(coverage - HIGHEST_COVERAGE, coverage_error)
    held = low if coverage <= HIGHEST_COVERAGE else high
    if isnan(coverage):
        held = Reading(1, 1, {})
    tried = n if attempted is None else attempted
    failed_error = share(failed * tried, tried).error
    sound = read_bar(failed - MOST_FAILURES, failed_error)
    word, more = combined(RECOVERY, (followed, held, sound), n, unit=unit, size=size)
    reasons = [_about_r(r, followed), _about_coverage(coverage, coverage_error, held)]
    if failed > MOST_FAILURES:
        reasons.append(_about_failures(failed, failed_error, sound))
    return Verdict(word, (*reasons, *([] if more is None else [str(more)])), more)


def _too_few(n: int) -> Verdict:
    return Verdict("not judged", (f"Usable fits: {n}; {LEAST_FITS} are needed.",))


def _no_error() -> Verdict:
    reason = "How much chance is in it cannot be computed from the fits of a single replicate."
    return Verdict("not judged", (reason,))


def _read_r(r: float, r_error: float | None, n: int) -> Reading:
    """Hold r against its thresholds on Fisher's scale, falling: the best word comes first."""
    most = 1 - 1e-12  # Fisher's z of a perfect correlation is infinite
    within = min(max(r, -most), most)
    own = 0.0 if r_error is None else r_error / (1 - within**2)
    error = max(own, 1 / sqrt(n - 3))
    z = -atanh(within)
    limits = [-atanh(RECOVERABLE_R), -atanh(WEAK_R)]
    return read_against(z, z - CLEAR * error, z + CLEAR * error, limits)


def _about_r(r: float, followed: Reading) -> str:
    told = beside(r, RECOVERABLE_R, WEAK_R)
    if not followed.is_open:
        return (
            f"Estimates follow the truth closely (r = {told}).",
            f"Estimates follow the truth loosely (r = {told}, below {RECOVERABLE_R}).",
            f"Estimates hardly follow the truth (r = {told}, below {WEAK_R}).",
        )[followed.first]
    if len(followed.needed) == 1:
        near = RECOVERABLE_R if 0 in followed.needed else WEAK_R
        return f"How closely estimates follow the truth is open: r = {told} is near {near}."
    return (
        f"How closely estimates follow the truth is open: r = {told} may be above {RECOVERABLE_R} "
        f"or below {WEAK_R}."
    )


def _about_coverage(coverage: float, error: float, held: Reading) -> str:
    if isnan(coverage):
        return "There are no 90% intervals."
    told = beside(coverage, LOWEST_COVERAGE, HIGHEST_COVERAGE, percent=True)
    rarely = "rarely" if coverage < LOWEST_COVERAGE else "often"
    if held.is_open:
        return (
            f"Whether 90% intervals hold the truth too {rarely} is open: in {told}, with a "
            f"standard error of {error:.1%}."
        )
    if held.first:
        return f"90% intervals hold the truth too {rarely}: in {told}."
    return f"90% intervals hold the truth in {told}."


def _about_failures(failed: float, error: float, sound: Reading) -> str:
    told = beside(failed, MOST_FAILURES, percent=True)
    if sound.is_open:
        return (
            f"{told} of the fits failed or did not converge, with a standard error of {error:.1%}: "
            "whether too many is open."
        )
    return f"{told} of the fits failed or did not converge: too many."


def beside(value: float, *limits: float, percent: bool = False) -> str:
    """Write a number down with so many digits that it does not seem to reach a threshold."""
    scale, digits = (100, 0) if percent else (1, 2)
    for more in range(digits, digits + 6):
        told = f"{value:.{more}%}" if percent else f"{value:.{more}f}"
        seen = float(told.rstrip("%")) / scale
        if all((seen < limit) == (value < limit) for limit in limits) and all(
            (seen > limit) == (value > limit) for limit in limits
        ):
            return told
    return told


def judge_region(
    width: float, *, n: int, error: float = 0.0, unit: str = "subject", size: float = 1
) -> Verdict:
    """Judge what sessions say about a parameter within a region of true values.

    Errors and coverage are no guide there: an estimate that ignores the data is close to all
    truths in the middle of the prior, and right intervals cover the middle more often than the
    ends.

    Parameters
    ----------
    width, error
        Mean width of the 90% intervals on the unconstrained scale over that of the prior's own,
        and its Monte-Carlo standard error.
    n
        Usable fits.
    unit, size
        As in `judge_recovery`.
    """
    if n < LEAST_FITS:
        return _too_few(n)
    if isnan(error):
        return _no_error()
    limits = (RECOVERABLE_WIDTH, WEAK_WIDTH)
    reading = read_against(width, width - CLEAR * error, width + CLEAR * error, limits)
    word, more = combined(RECOVERY, (reading,), n, unit=unit, size=size)
    told = beside(width, *limits, percent=True)
    reasons = [f"Intervals are {told} as wide as the prior's."]
    if more is not None:
        reasons.append(f"The standard error of that, {error:.1%}, leaves the word open.")
        reasons.append(str(more))
    return Verdict(word, tuple(reasons), more)


def judge_size(rejected: float, n: int, *, failed: float = 0.0) -> Verdict:
    """Judge how often a 5% test rejects a true null hypothesis.

    Parameters
    ----------
    rejected
        Share of n data sets in which it rejects.
    failed
        Share of the data sets without an estimate.
    """
    if n < LEAST_FOR_SIZE:
        return Verdict("not judged", (f"Data sets: {n}; {LEAST_FOR_SIZE} are needed.",))
    interval = scipy.stats.binomtest(round(rejected * n), n).proportion_ci(method="wilson")
    low, high = float(interval.low), float(interval.high)
    told = (
        f"The test rejects in {rejected:.1%} of {n} data sets without an effect (95% interval "
        f"{low:.1%} to {high:.1%}), 5% promised."
    )
    reasons = [told]
    if failed > MOST_FAILURES:
        told = beside(failed, MOST_FAILURES, percent=True)
        reasons.append(f"{told} of the data sets gave no estimate: too many.")
        return Verdict("not judged", tuple(reasons))
    if low > 0.05:
        reasons.append("That is more often than promised.")
    if high < 0.05:
        reasons.append("That is more rarely than promised.")
    reading = read_against(rejected, low, high, (LEAST_SIZE, MOST_SIZE))
    word, more = combined(SIZES, (reading,), n, unit="data set")
    if more is not None:
        reasons.append(f"It holds its size from {LEAST_SIZE:.1%} to {MOST_SIZE:.1%}.")
        reasons.append(str(more))
    return Verdict(word, tuple(reasons), more)


def judge_trials(differing: int, trials: int, apart: float) -> Verdict:
    """Judge whether a mind lives in words the sessions that it lives directly.

    Parameters
    ----------
    differing, trials
        Trials that differ between the paths, the same answers being withheld, and all of them.
    apart
        Largest difference between the estimates of both paths on the unconstrained scale, over
        subjects of whom every answer was read; NaN if there are none.
    """
    if trials == 0:
        return Verdict("not judged", ("No trial was lived.",))
    reasons = [f"{differing:,} of {trials:,} trials differ from those of the direct path."]
    if isnan(apart):
        reasons.append("No subject has all answers and both estimates, so none are compared.")
    elif apart == 0:
        reasons.append("Where every answer was read, the estimates are identical.")
    else:
        reasons.append(f"Where every answer was read, estimates differ by up to {apart:.2g}.")
    sound = differing == 0 and not apart > 0
    return Verdict("confirmed" if sound else "not confirmed", tuple(reasons))


def judge_outcomes(
    counts: Mapping[str, int], expected: Mapping[str, float], trials: int, level: float
) -> Verdict:
    """Judge whether every trial has an outcome, and each as often as the dials say.

    Parameters
    ----------
    counts
        Trials by outcome.
    expected
        Probability of each outcome.
    trials
        How many were lived.
    level
        Of the exact binomial test of each rate.
    """
    told = sum(counts.values())
    if trials == 0:
        return Verdict("not judged", ("No trial was lived.",))
    reasons = [f"{told:,} of {trials:,} trials have an outcome."]
    strange = []
    for name, count in counts.items():
        if told and scipy.stats.binomtest(count, told, expected[name]).pvalue < level:
            strange.append(f"{name} {count / told:.1%} instead of {expected[name]:.1%}")
    if strange:
        reasons.append(f"Rates are not those of the dials: {', '.join(strange)}.")
    else:
        reasons.append("No rate differs from that of the dials by more than chance.")
    sound = told == trials and not strange
    return Verdict("confirmed" if sound else "not confirmed", tuple(reasons))


def judge_bounds(
    coverage: Mapping[str, tuple[float, float]],
    plain: Mapping[str, float],
    *,
    n: int,
    missing: int,
    failed: float = 0.0,
) -> Verdict:
    """Judge whether bounds on estimates that lack answers hold the truth.

    Parameters
    ----------
    coverage
        By parameter, the share of 90% bounds that hold the truth and its Monte-Carlo error.
    plain
        The same share of 90% intervals that take answers to be missing at random.
    n
        Usable fits.
    missing
        Answers that are missing.
    failed
        Share of the attempted fits that failed.
    """
    if missing == 0:
        return Verdict("not judged", ("No answer is missing.",))
    if n < LEAST_FITS:
        return _too_few(n)
    if failed > MOST_FAILURES:
        told = beside(failed, MOST_FAILURES, percent=True)
        return Verdict("not judged", (f"{told} of the fits failed.",))
    lowest = min(coverage, key=lambda name: coverage[name][0])
    worst = min(plain, key=lambda name: plain[name])
    reasons: tuple[str, ...] = (
        f"Bounds at 90% hold the truth in {coverage[lowest][0]:.0%} ({lowest}) or more; intervals "
        f"that take answers to be missing at random in {plain[worst]:.0%} ({worst}) or more.",
    )
    readings = [read_bar(0.9 - held, error) for held, error in coverage.values()]
    word, more = combined(("confirmed", "not confirmed"), readings, n, unit="subject")
    if more is not None:
        reasons += ("Whether that is less than the 90% promised is open.", str(more))
    return Verdict(word, reasons, more)


def about_reliability(reliability: float) -> str:
    """Say in words what a reliability (true variance over observed variance) permits."""
    if isnan(reliability):
        return "cannot be computed"
    if reliability >= 0.8:
        return "fit to compare individuals"
    if reliability >= 0.5:
        return "fit to compare groups, not individuals"
    return "mostly noise: not fit for individual differences"
