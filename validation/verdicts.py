"""The one table of thresholds behind every verdict, and the sentences that give the reasons.

==================  ==========================================================================
verdict             rule
==================  ==========================================================================
recoverable         r >= 0.8, coverage of 90% intervals within 0.85 to 0.95 up to 2 Monte-Carlo
                    standard errors, at most 5% of the fits failed or not converged
weak                r >= 0.5, and not recoverable
not identified      r < 0.5, or the estimates do not vary
not judged          the truth is the same for all subjects, or fewer than 10 fits are usable
==================  ==========================================================================

A correlation of 0.8 leaves 36% of the variance of the estimates to noise, which is the usual
floor for reading individual differences (Wilson and Collins 2019); 0.5 leaves 75%.
Posteriors are judged by `inference.convergence` (R-hat <= 1.01, bulk and tail effective sample
size >= 400, no divergent draw; Vehtari et al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Literal

RECOVERABLE_R = 0.8
WEAK_R = 0.5
LOWEST_COVERAGE, HIGHEST_COVERAGE = 0.85, 0.95
COVERAGE_ERRORS = 2.0  # Monte-Carlo standard errors by which coverage may miss the band
MOST_FAILURES = 0.05
LEAST_FITS = 10

Word = Literal["recoverable", "weak", "not identified", "not judged"]


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
