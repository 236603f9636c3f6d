"""The one table of thresholds behind every verdict, and the sentences that give the reasons.

======================  ======================================================================
recovery of a parameter (`judge_recovery`)
----------------------------------------------------------------------------------------------
recoverable             r >= 0.8, coverage of 90% intervals within 0.85 to 0.95 up to 2
                        Monte-Carlo standard errors, at most 5% of the fits failed or not
                        converged
weak                    r >= 0.5, and not recoverable
not identified          r < 0.5, or the estimates do not vary
not judged              the truth is the same for all, or fewer than 10 fits are usable
----------------------  ----------------------------------------------------------------------
recovery within a region of true values (`judge_region`)
----------------------------------------------------------------------------------------------
recoverable             90% intervals on the unconstrained scale are at most 0.6 times as wide
                        as the prior's own
weak                    at most 0.87 times, and not recoverable
not identified          wider
not judged              fewer than 10 fits are usable
----------------------  ----------------------------------------------------------------------
recovery of a model among M rivals (`model_recovery.judge_model`)
----------------------------------------------------------------------------------------------
recoverable             both shares, p(best fit = model | simulated = model) and p(simulated =
                        model | best fit = model), have 95% intervals that begin at 0.75 or
                        above
weak                    both intervals begin above 1 / M, which is chance, and not recoverable
not identified          one of them does not
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
not judged              fewer than 20 replicates
(named)                 mean or spread is named beyond 3 standard errors, the larger one also
                        beyond 2 if neither is clear; no spread if the mean is beyond 0.1 to 0.9
----------------------  ----------------------------------------------------------------------
size of a test at 5% (`judge_size`)
----------------------------------------------------------------------------------------------
size holds              it rejects in 5% of the data sets without an effect, up to 1.96
                        Monte-Carlo standard errors
too many false alarms   it rejects more often: its p-values overstate
too few false alarms    it rejects more rarely: it is safe, and loses power
not judged              fewer than 100 data sets, or more than 5% of them without an estimate
----------------------  ----------------------------------------------------------------------
the channel of words (`judge_trials`, `judge_outcomes`, `judge_bounds`)
----------------------------------------------------------------------------------------------
confirmed               trials: none differs from the direct path with the same answers withheld,
                        and subjects of whom all were read have the same estimates;
                        outcomes: every trial has one, and all of their rates are those of the
                        dials, tested at 0.05 over all rates of a study together;
                        bounds: those with sampling error hold the truth of every parameter in at
                        least 90%, up to 2 Monte-Carlo standard errors
not confirmed           otherwise
not judged              there is nothing to compare; for bounds, no answer is missing, fewer than
                        10 fits are usable, or more than 5% of them failed
======================  ======================================================================

A correlation of 0.8 leaves 36% of the variance of the estimates to noise, which is the usual
floor for reading individual differences (Wilson and Collins 2019); 0.5 leaves 75%. Within a
region correlations say little, since their range is cut; a posterior whose mean follows the truth
with correlation r has sqrt(1 - r**2) times the prior's spread, which gives the same two limits.
Posteriors are judged by `inference.convergence` (R-hat <= 1.01, bulk and tail effective sample
size >= 400, no divergent draw; Vehtari et al. 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Literal

from scipy.stats import binomtest

RECOVERABLE_R = 0.8
WEAK_R = 0.5
RECOVERABLE_WIDTH, WEAK_WIDTH = 0.6, 0.87  # sqrt(1 - r**2) of the above
LOWEST_COVERAGE, HIGHEST_COVERAGE = 0.85, 0.95
COVERAGE_ERRORS = 2.0  # Monte-Carlo standard errors by which coverage may miss the band
MOST_FAILURES = 0.05
LEAST_FITS = 10

RECOVERABLE_SHARE, CONFUSED_SHARE = 0.75, 0.05
LEAST_DATA_SETS = 20  # of a confusion matrix
LEAST_REPLICATES = 20  # of a calibration
CLEAR_ERRORS = 3.0  # standard errors by which mean or spread must deviate to be named
LEAST_ERRORS = 2.0  # the same for the larger of the two, if none is clear
FURTHEST_MEAN = 0.9  # of ranks, as a share of their range; the mirrored 0.1 at the other end
LEAST_FOR_SIZE = 100  # data sets
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
]  # calibrations have words that combine: see the table


@dataclass(frozen=True)
class Verdict:
    """A word from the table above and the reasons for it, each a sentence."""

    word: Word
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        """Word and reasons in one line."""
        return f"{self.word}: {' '.join(self.reasons)}"


def judge_recovery(
    r: float,
    coverage: float,
    coverage_error: float,
    *,
    n: int,
    failed: float = 0.0,
    varies: bool = True,
) -> Verdict:
    """Judge a parameter's recovery.

    Parameters
    ----------
    r
        Correlation of estimate and truth; NaN where the estimates do not vary.
    coverage, coverage_error
        Share of the 90% intervals that hold the truth, and its Monte-Carlo standard error.
    n
        Usable fits.
    failed
        Share of the attempted fits that failed or did not converge.
    varies
        Whether the truth differs between subjects.
    """
    if n < LEAST_FITS:
        return Verdict("not judged", (f"Only {n} fits are usable; {LEAST_FITS} are needed.",))
    if not varies:
        return Verdict("not judged", ("The truth is the same for all, so nothing can correlate.",))
    if isnan(r):
        return Verdict("not identified", ("The estimates do not vary with the subject.",))

    low = coverage + COVERAGE_ERRORS * coverage_error < LOWEST_COVERAGE
    high = coverage - COVERAGE_ERRORS * coverage_error > HIGHEST_COVERAGE
    reasons = [_about_r(r)]
    if low or isnan(coverage):
        reasons.append(f"90% intervals hold the truth in only {coverage:.0%}: too narrow.")
    elif high:
        reasons.append(f"90% intervals hold the truth in {coverage:.0%}: too wide.")
    else:
        reasons.append(f"90% intervals hold the truth in {coverage:.0%}.")
    if failed > MOST_FAILURES:
        reasons.append(f"{failed:.0%} of the fits failed or did not converge.")
    sound = not (low or high or isnan(coverage) or failed > MOST_FAILURES)
    if r >= RECOVERABLE_R and sound:
        return Verdict("recoverable", tuple(reasons))
    return Verdict("weak" if r >= WEAK_R else "not identified", tuple(reasons))


def judge_region(width: float, *, n: int) -> Verdict:
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
    """
    if n < LEAST_FITS:
        return Verdict("not judged", (f"Only {n} fits are usable; {LEAST_FITS} are needed.",))
    reason = f"Intervals are {width:.0%} as wide as the prior's."
    if width <= RECOVERABLE_WIDTH:
        return Verdict("recoverable", (reason,))
    return Verdict("weak" if width <= WEAK_WIDTH else "not identified", (reason,))


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
        return Verdict("not judged", (f"Only {n} data sets; {LEAST_FOR_SIZE} are needed.",))
    told = f"The test rejects in {rejected:.1%} of {n} data sets without an effect, 5% promised."
    reasons = [told]
    if failed > MOST_FAILURES:
        reasons.append(f"{failed:.0%} of the data sets gave no estimate.")
        return Verdict("not judged", tuple(reasons))
    error = 1.96 * (0.05 * 0.95 / n) ** 0.5
    if rejected > 0.05 + error:
        return Verdict("too many false alarms", tuple(reasons))
    if rejected < 0.05 - error:
        return Verdict("too few false alarms", tuple(reasons))
    return Verdict("size holds", tuple(reasons))


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
        if told and binomtest(count, told, expected[name]).pvalue < level:
            strange.append(f"{name} {count / told:.1%} instead of {expected[name]:.1%}")
    if strange:
        reasons.append(f"Rates are not those of the dials: {', '.join(strange)}.")
    else:
        reasons.append("No rate is beyond chance from that of the dials.")
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
        return Verdict("not judged", (f"Only {n} fits are usable; {LEAST_FITS} are needed.",))
    if failed > MOST_FAILURES:
        return Verdict("not judged", (f"{failed:.0%} of the fits failed.",))
    lowest = min(coverage, key=lambda name: coverage[name][0])
    worst = min(plain, key=lambda name: plain[name])
    reasons = (
        f"Bounds at 90% hold the truth in {coverage[lowest][0]:.0%} ({lowest}) or more; intervals "
        f"that take answers to be missing at random in {plain[worst]:.0%} ({worst}) or more.",
    )
    short = [
        name for name, (share, error) in coverage.items() if share + COVERAGE_ERRORS * error < 0.9
    ]
    return Verdict("not confirmed" if short else "confirmed", reasons)


def _about_r(r: float) -> str:
    if r >= RECOVERABLE_R:
        return f"Estimates follow the truth closely (r = {r:.2f})."
    if r >= WEAK_R:
        return f"Estimates follow the truth loosely (r = {r:.2f}, below {RECOVERABLE_R})."
    return f"Estimates hardly follow the truth (r = {r:.2f}, below {WEAK_R})."


def about_reliability(reliability: float) -> str:
    """Say in words what a reliability (true variance over observed variance) permits."""
    if isnan(reliability):
        return "cannot be computed"
    if reliability >= 0.8:
        return "fit to compare individuals"
    if reliability >= 0.5:
        return "fit to compare groups, not individuals"
    return "mostly noise: not fit for individual differences"
