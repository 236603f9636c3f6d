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
calibration of a quantity (`judge_ranks`)
----------------------------------------------------------------------------------------------
calibrated              p-value of the gamma statistic above the level: 0.05 over all quantities
                        of a study together
biased high, low        rejected, and the mean rank is too small, too large
over-confident          rejected, and the ranks spread too far: the posterior is too narrow
under-confident         rejected, and the ranks spread too little: the posterior is too wide
miscalibrated           rejected, and neither explains it
not judged              too few replicates to notice, with a chance of 80%, a posterior that is
                        0.5 times as wide as it should be; or not rejected, but more than 5% of the
                        posteriors failed or did not converge
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
----------------------  ----------------------------------------------------------------------
a run (`costs.run_page`)
----------------------------------------------------------------------------------------------
complete                all sessions were lived to their end, each with a readable answer
readable                less than 5% of the trials have no readable answer; partly readable below
                        20%, hardly readable from there on
----------------------  ----------------------------------------------------------------------
a fit (`data.group_fit`, `data.fit`, `data.rivals`)
----------------------------------------------------------------------------------------------
(not) converged         see `inference.posteriors.sampling`
differs, no difference  the 90% interval of a contrast lies outside of the region that counts as
                        no difference, or within it; open otherwise
not reproduced          the predictive p of a panel is 0.05 or less
(no) clear difference   the best model's elpd is higher by 4 and by 2 standard errors
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
from math import atanh, ceil, inf, isfinite, isnan, log10, nan, sqrt
from typing import Any

import scipy
from scipy.special import ndtri

from .scores import Score, share

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

RECOVERY: tuple[str, ...] = ("recoverable", "weak", "not identified")
OPEN = ("between recoverable and weak", "between recoverable and not identified")  # may be
SIZES: tuple[str, ...] = ("too few false alarms", "size holds", "too many false alarms")


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
            return f"no feasible number of {self.unit}s decides"
        return f"about {self.count:,} more {self.unit}{'s' * (self.count > 1)} decide"


@dataclass(frozen=True)
class Verdict:
    """A word from the table above, and the numbers that it rests on.

    Parameters
    ----------
    reasons
        Each a number with its error and its limits, or why nothing is judged.
    more
        What would decide where the word is "between" others; None elsewhere.
    """

    word: str
    reasons: tuple[str, ...] = ()
    more: More | None = None

    def __str__(self) -> str:
        """Word, reasons and what would decide, in one line."""
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
    "good": (
        "recoverable",
        "calibrated",
        "size holds",
        "confirmed",
        "reached",
        "complete",
        "readable",
        "converged",
        "differs",
        "no difference",
        "a clear difference",
    ),
    "fair": ("weak", "too few false alarms", "open", "no clear difference", "partly readable"),
    "bad": (
        "has no value",
        "not converged",
        "not identified",
        "too many false alarms",
        "not confirmed",
        "not reached",
        "not reproduced",
        "not finished",
        "not complete",
        "hardly readable",
        "biased high",
        "biased low",
        "over-confident",
        "under-confident",
        "miscalibrated",
    ),
}


def reason(name: str, value: float, error: float, *limits: float) -> str:
    """Write down a number, its standard error and the limits that it is held against."""
    text = f"{name} {beside(value, *limits)}"
    text += f" ({error:.3f})" if isfinite(error) else ""
    return (
        f"{text}, {'limit' if len(limits) == 1 else 'limits'} {', '.join(f'{x:g}' for x in limits)}"
    )


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
    words: Sequence[str], readings: Sequence[Reading], n: float, *, unit: str, size: float = 1
) -> tuple[str, More | None]:
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
    word = f"between {words[first]} and {words[last]}"
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


def judge(
    words: Sequence[str],
    readings: Sequence[Reading],
    reasons: Sequence[str],
    n: float,
    *,
    unit: str = "subject",
    size: float = 1,
) -> Verdict:
    """Return the verdict of several readings, the worst of which counts; see `combined`."""
    word, more = combined(words, readings, n, unit=unit, size=size)
    return Verdict(word, tuple(reasons), more)


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
    r
        Correlation of estimate and truth, NaN where the estimates do not vary. Fisher's own error,
        1 / sqrt(n - 3) for atanh r, is used where it is larger.
    coverage
        Share of the 90% intervals that hold the truth.
    n
        Usable fits.
    failed, attempted
        Share of the attempted fits that failed or did not converge, and their number (n if None).
    varies, finite
        Whether the truth differs between subjects; whether the estimates are small enough for r.
    unit, size
        What more can be asked for, and how many fits one of it brings.
    """
    if n < LEAST_FITS:
        return _too_few(n)
    if not varies:
        return Verdict("not judged", ("the truth is the same for all",))
    if not finite:
        return Verdict("not judged", ("some estimates are too large for r to be computed",))
    if isnan(r.value):
        return Verdict("not identified", ("the estimates do not vary",))
    if isnan(r.error):
        return _NO_ERROR
    error = share(failed * (attempted or n), attempted or n).error
    readings = (_read_r(r, n), _read_coverage(coverage), read_bar(failed - MOST_FAILURES, error))
    reasons = [
        reason("r", r.value, r.error, WEAK_R, RECOVERABLE_R),
        "no 90% intervals"
        if isnan(coverage.value)
        else reason(
            "90% intervals cover", coverage.value, coverage.error, LOWEST_COVERAGE, HIGHEST_COVERAGE
        ),
    ]
    if failed > MOST_FAILURES:
        reasons.append(reason("failed or not converged", failed, error, MOST_FAILURES))
    return judge(RECOVERY, readings, reasons, n, unit=unit, size=size)


def _too_few(n: int) -> Verdict:
    return Verdict("not judged", (f"{n} usable fits, {LEAST_FITS} are needed",))


_NO_ERROR = Verdict("not judged", ("a single replicate gives no standard error",))


def _read_r(r: Score, n: int) -> Reading:
    """Hold r against its thresholds on Fisher's scale, falling: the best word comes first."""
    most = 1 - 1e-12  # Fisher's z of a perfect correlation is infinite
    within = min(max(r.value, -most), most)
    error = max(r.error / (1 - within**2), 1 / sqrt(n - 3))
    z = -atanh(within)
    limits = [-atanh(RECOVERABLE_R), -atanh(WEAK_R)]
    return read_against(z, z - CLEAR * error, z + CLEAR * error, limits)


def _read_coverage(coverage: Score) -> Reading:
    if isnan(coverage.value):
        return Reading(1, 1, {})
    beyond = max(LOWEST_COVERAGE - coverage.value, coverage.value - HIGHEST_COVERAGE)
    return read_bar(beyond, coverage.error)


def beside(value: float, *limits: float) -> str:
    """Write a number down with so many digits that it does not seem to reach a limit."""
    for digits in range(3, 9):
        text = f"{value:.{digits}f}"
        seen = float(text)
        if all(((seen < x) == (value < x)) and ((seen > x) == (value > x)) for x in limits):
            return text
    return text


def judge_region(width: Score, *, n: int, unit: str = "subject", size: float = 1) -> Verdict:
    """Judge what sessions say about a parameter within a region of true values.

    Errors and coverage are no guide there: an estimate that ignores the data is close to all
    truths in the middle of the prior, and right intervals cover the middle more often than the
    ends.

    Parameters
    ----------
    width
        Mean width of the 90% intervals on the unconstrained scale over that of the prior's own.
    n
        Usable fits.
    unit, size
        As in `judge_recovery`.
    """
    if n < LEAST_FITS:
        return _too_few(n)
    if isnan(width.error):
        return _NO_ERROR
    limits = (RECOVERABLE_WIDTH, WEAK_WIDTH)
    span = CLEAR * width.error
    reading = read_against(width.value, width.value - span, width.value + span, limits)
    told = reason("relative width", width.value, width.error, *limits)
    return judge(RECOVERY, (reading,), (told,), n, unit=unit, size=size)


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
        return Verdict("not judged", (f"{n} data sets, {LEAST_FOR_SIZE} are needed",))
    interval = scipy.stats.binomtest(round(rejected * n), n).proportion_ci(method="wilson")
    limits = (LEAST_SIZE, MOST_SIZE)
    text = (
        f"rejects {beside(rejected, *limits)} of {n:,}, 95% interval {interval.low:.3f} to "
        f"{interval.high:.3f}, limits {LEAST_SIZE}, {MOST_SIZE}"
    )
    if failed > MOST_FAILURES:
        return Verdict("not judged", (text, reason("no estimate", failed, nan, MOST_FAILURES)))
    reading = read_against(rejected, float(interval.low), float(interval.high), limits)
    return judge(SIZES, (reading,), (text,), n, unit="data set")


def judge_ranks(
    p_value: float, level: float, mean: Score, spread: Score, *, failed: float = 0.0
) -> Verdict:
    """Judge whether the ranks of true values among draws of the posterior are uniform.

    Parameters
    ----------
    p_value, level
        Of the test of uniformity; up to the level it rejects.
    mean
        Mean rank as a share of the range; 0.5 if uniform.
    spread
        Variance of the ranks over that of a posterior of the right width; 1 if uniform.
    failed
        Share of the posteriors that failed or did not converge.
    """
    test = reason("p", p_value, nan, level)
    if p_value > level:
        if failed > MOST_FAILURES:
            unsound = reason("failed or not converged", failed, nan, MOST_FAILURES)
            return Verdict("not judged", (test, unsound))
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


def judge_trials(differing: int, trials: int, apart: float) -> Verdict:
    """Judge whether an agent that answers in words has the sessions that it has directly.

    Parameters
    ----------
    differing, trials
        Trials that differ between the paths, the same answers being withheld, and all of them.
    apart
        Largest difference between the estimates of both paths on the unconstrained scale, over
        subjects of whom all answers were read; NaN if there are none.
    """
    if trials == 0:
        return Verdict("not judged", ("no trial took place",))
    estimates = "no subject to compare" if isnan(apart) else f"estimates differ by {apart:.2g}"
    reasons = (f"{differing:,} of {trials:,} trials differ", estimates)
    sound = differing == 0 and not apart > 0
    return Verdict("confirmed" if sound else "not confirmed", reasons)


def judge_outcomes(
    counts: Mapping[str, int], expected: Mapping[str, float], trials: int, level: float
) -> Verdict:
    """Judge whether each trial has an outcome, and each outcome its rate.

    Parameters
    ----------
    counts
        Trials by outcome.
    expected
        Probability of each outcome.
    trials
        How many took place.
    level
        Of the exact binomial test of each rate.
    """
    n = sum(counts.values())
    if trials == 0:
        return Verdict("not judged", ("no trial took place",))
    differ = [
        f"{name} {count / n:.3f} instead of {expected[name]:.3f}"
        for name, count in counts.items()
        if n and scipy.stats.binomtest(count, n, expected[name]).pvalue < level
    ]
    sound = n == trials and not differ
    reasons = (f"{n:,} of {trials:,} trials have an outcome", *differ)
    return Verdict("confirmed" if sound else "not confirmed", reasons)


def judge_bounds(
    coverage: Mapping[str, Score], *, n: int, missing: int, failed: float = 0.0
) -> Verdict:
    """Judge whether bounds on estimates that lack answers hold the truth.

    Parameters
    ----------
    coverage
        By parameter, the share of 90% bounds that hold the truth.
    n
        Usable fits.
    missing
        Answers that are missing.
    failed
        Share of the attempted fits that failed.
    """
    if missing == 0:
        return Verdict("not judged", ("no answer is missing",))
    if n < LEAST_FITS:
        return _too_few(n)
    if failed > MOST_FAILURES:
        return Verdict("not judged", (reason("failed", failed, nan, MOST_FAILURES),))
    lowest = min(coverage, key=lambda name: coverage[name].value)
    readings = [read_bar(0.9 - score.value, score.error) for score in coverage.values()]
    worst = coverage[lowest]
    told = reason(f"bounds of {lowest} cover", worst.value, worst.error, 0.9)
    return judge(("confirmed", "not confirmed"), readings, (told,), n)


def about_reliability(reliability: float) -> str:
    """Say in words what a reliability (true variance over observed variance) permits."""
    if isnan(reliability):
        return "cannot be computed"
    if reliability >= 0.8:
        return "fit to compare individuals"
    if reliability >= 0.5:
        return "fit to compare groups, not individuals"
    return "mostly noise: not fit for individual differences"
