"""The Kalman observer: an estimate that follows the stimuli from trial to trial."""

from __future__ import annotations

from typing import Any

from knownminds.agents.compiler.definition import positive

from .observers import MagnitudeObserver, centre, spread_of_answers, variants

__all__ = [
    "KalmanObserver",
    "KalmanObserverLog",
    "KalmanObserverGain",
    "KalmanObserverGainLog",
    "KalmanObserverAffine",
    "KalmanObserverAffineLog",
    "KalmanObserverShared",
    "KalmanObserverSharedLog",
]

PETZSCHNER = "Petzschner and Glasauer 2011"


class KalmanObserver(MagnitudeObserver):
    """Follows the stimuli with a Kalman filter, which begins anew in each window.

    P <- P + q; K = P / (P + r); m <- m + K (x - m); P <- (1 - K) P; y ~ N(m, sigma), in fractions
    of the unit. It begins with m = mu of the window and P = P0. Answers depend only on the ratios q
    / r and P0 / r; noise of the measurements is part of sigma. With a gain g and an offset d the
    mean is g m + d. The observer learns nothing from a trial without an answer.
    """

    name = "kalman_observer"
    nested_in = "kalman_observer_gain"
    summary = "follows the stimuli with a Kalman filter that begins anew in each window"
    source = PETZSCHNER
    separate = ("window", "modality")
    centres = "belief at the beginning"
    # Slow and fast, certain and uncertain; searches from the prior alone have ended far below
    # these.
    starts = tuple(
        {"q_over_r": q_over_r, "p0_over_r": p0_over_r}
        for q_over_r in (0.0025, 1.0)
        for p0_over_r in (0.05, 20.0)
    )

    q_over_r = positive(
        "variance by which the magnitude is taken to move between trials, over that of "
        "measurements",
        source=PETZSCHNER,
    )
    p0_over_r = positive(
        "variance of the belief at the beginning of a window, over that of measurements",
        source=PETZSCHNER,
    )
    mu_short = centre("short", False, "belief at the beginning")
    mu_medium = centre("medium", False, "belief at the beginning")
    mu_long = centre("long", False, "belief at the beginning")
    sigma = spread_of_answers(log_scale=False)

    def begin(self, trial: Any) -> None:  # type: ignore[override]
        self.mean = self.centre(trial)
        self.variance = self.p0_over_r

    def follow(self, trial: Any) -> tuple[Any, Any]:
        """Return estimate and variance after this trial's stimulus."""
        before = self.variance + self.q_over_r
        gain = before / (before + 1.0)  # with r = 1 this is the remaining variance, too
        return self.mean + gain * (self.scaled(trial) - self.mean), gain

    def belief(self, trial: Any) -> Any:
        return self.follow(trial)[0]

    def update(self, trial: Any) -> None:
        self.mean, self.variance = self.follow(trial)


(
    KalmanObserverLog,
    KalmanObserverGain,
    KalmanObserverGainLog,
    KalmanObserverAffine,
    KalmanObserverAffineLog,
    KalmanObserverShared,
    KalmanObserverSharedLog,
) = variants(KalmanObserver)
