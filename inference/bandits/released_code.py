"""What CogBench's released scripts compute of its tasks, and where their numbers must differ.

Coda-Forno, Binz, Wang and Schulz 2024. Each measure of the benchmark says what of the released
arithmetic is followed, and what cannot be, since an answer that was replaced or thrown together
with another run's cannot be told from the trials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import ANSWERED, Environment, Trials, correctness
from knownminds.environments.bandits.horizon import POINTS
from knownminds.environments.bandits.probabilistic_reasoning import posterior
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Estimate, Values, with_columns
from knownminds.inference.performance import Performance

LEAST = 1e-5  # stated probabilities are held between this and 1 minus this
ALONE = "choice_alone"  # of a trial whose confidence is missing, in imported files
TOLD_NUMBER = "a number beyond 0 to 1, held at the end of the scale"


@dataclass(frozen=True)
class Departure:
    """What is followed of a released script, and what must differ.

    Parameters
    ----------
    environment, measure
        Where it is read off, and as what.
    followed
        Of the script, where it departs from the definition; "" if it does not.
    differs
        Why a published number may still be another one; "" if it is the same.
    rows
        How many rows of trials that concerns.
    """

    environment: str
    measure: str
    followed: str
    differs: str
    rows: Callable[[Trials], int] = lambda trials: 0


def trimmed(trials: Trials) -> tuple[Array, NDArray[np.bool_]]:
    """Return stated probabilities as the script holds them, and which lay beyond 0 to 1, [rows].

    It takes any number: one above 1 for .99999, one below 0 for .00001. Of an answer that is
    malformed here the number stands in `raw_text`.
    """
    response = trials.numbers("response")
    if "raw_text" not in trials.frame:
        return np.clip(response, LEAST, 1.0 - LEAST), np.zeros(len(response), dtype=bool)
    told = pd.to_numeric(trials.frame["raw_text"], errors="coerce").to_numpy(float, na_value=np.nan)
    beyond = np.isnan(response) & np.isfinite(told) & ((told < 0.0) | (told > 1.0))
    return np.clip(np.where(beyond, told, response), LEAST, 1.0 - LEAST), beyond


class ReleasedPerformance(Performance):
    """Performance as the released scripts compute it, in the experiments in which they differ.

    Probabilistic reasoning: 1 - |answer - posterior|, with the answers that `trimmed` holds.
    Horizon: the mean points of all plays, forced ones included. Restless bandit: accuracy judged
    after the machines have changed places, also of choices without a confidence.
    """

    name = "performance_released"
    summary = "mean score of the trials, as the released code computes it"
    source = "Coda-Forno, Binz, Wang and Schulz 2024"

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean."""
        subject, names = pd.factorize(trials.frame["subject"])
        rows, score = _SCORED[self.environment.name](trials)
        return Values.means(subject[rows], score, len(names), "no trial with a score")

    def missing(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials have no score, [rows]; an answer that is held at the end has one."""
        return np.isnan(_SCORED[self.environment.name](trials)[1][: len(trials)])

    def of_each(self, trials: Trials) -> list[Estimate]:
        """Return the mean of each subject; answers that were held at the end are counted."""
        estimates = super().of_each(trials)
        if self.environment.name != "probabilistic_reasoning":
            return estimates
        beyond = np.bincount(pd.factorize(trials.frame["subject"])[0], trimmed(trials)[1])
        return [
            replace(one, note=held_note(one.note, int(n)))
            for one, n in zip(estimates, beyond, strict=True)
        ]

    def estimate(self, trials: Trials) -> Estimate:
        """Return the mean over subjects; answers that were held at the end are counted."""
        several = trials.frame["subject"].nunique() > 1
        estimate = super().estimate(trials)
        if not several or self.environment.name != "probabilistic_reasoning":
            return estimate
        return replace(estimate, note=held_note(estimate.note, int(trimmed(trials)[1].sum())))


def held_note(note: str, n: int) -> str:
    """Return a note that tells how many answers were held at the end of the scale."""
    return "; ".join([*([note] if note else []), *([f"{n} x {TOLD_NUMBER}"] if n else [])])


def _urns(trials: Trials) -> tuple[NDArray[np.intp], Array]:
    frame = with_columns(trials, ReleasedPerformance.name, ("prior", "likelihood", "ball"))
    prior, likelihood, ball = (frame[n].to_numpy(float) for n in ("prior", "likelihood", "ball"))
    score = 1.0 - np.abs(trimmed(trials)[0] - posterior(prior, likelihood, ball))
    return np.arange(len(frame)), score


def _games(trials: Trials) -> tuple[NDArray[np.intp], Array]:
    frame = with_columns(trials, ReleasedPerformance.name, ("game", "play", *POINTS))
    first = np.flatnonzero(~frame.duplicated(["subject", "session", "game"]).to_numpy())
    forced = np.stack([trials.numbers(name)[first] for name in POINTS], axis=1)
    free = trials.numbers("reward")
    rows = np.concatenate([np.arange(len(frame)), np.repeat(first, len(POINTS))])
    return rows, np.concatenate([free, forced.ravel()])


def _restless(trials: Trials) -> tuple[NDArray[np.intp], Array]:
    frame = trials.frame
    if ALONE in frame:
        chosen = trials.numbers("action")
        whole = np.where(np.isnan(chosen), trials.numbers(ALONE), chosen)
        trials = Trials(frame.assign(action=whole))
    return np.arange(len(frame)), correctness(trials, after=True)


_SCORED: Mapping[str, Callable[[Trials], tuple[NDArray[np.intp], Array]]] = {
    "probabilistic_reasoning": _urns,
    "horizon": _games,
    "restless_bandit": _restless,
}


def released_performance(environment: Environment) -> ReleasedPerformance | None:
    """Return the released performance of an experiment; None where it is the usual one."""
    return ReleasedPerformance(environment) if environment.name in _SCORED else None


def _unread(trials: Trials) -> int:
    return int((~trials.frame["outcome"].isin(ANSWERED)).sum())


def _unflown(trials: Trials) -> int:
    flights = trials.frame["stage"] == 0
    return int((flights & ~trials.frame["outcome"].isin(ANSWERED)).sum())


def _unstated(trials: Trials) -> int:
    return int(np.isnan(trimmed(trials)[0]).sum())


def _all(trials: Trials) -> int:
    return len(trials)


_URNS: dict[str, Any] = {
    "followed": "no intercept; a number above 1 is taken for .99999, one below 0 for .00001",
    "differs": "answers that are no number: left out here, replaced by others in the file",
    "rows": _unstated,
}
_GAMES: dict[str, Any] = {
    "followed": "differences of the true means, and the horizon as -1 and 1",
    "differs": "none unless choices are separated: no value here, 0 in the script",
}
_DAYS = "days without a readable shuttle: left out here, counted as a flight there; two runs "
_FITTED: dict[str, Any] = {
    "followed": "",
    "differs": "not offered: the script's fit bounds the inverse temperature by 100,000 only and "
    "is no maximum likelihood; the value here is that of the shipped priors",
    "rows": _all,
}
DEPARTURES: tuple[Departure, ...] = (
    *(Departure("probabilistic_reasoning", f"{name}_weighting_released", **_URNS)
      for name in ("prior", "likelihood")),
    Departure("probabilistic_reasoning", ReleasedPerformance.name,
              "answers held between .00001 and .99999, numbers above 1 among them",
              _URNS["differs"], _unstated),
    *(Departure("horizon", f"{name}_exploration_released", **_GAMES)
      for name in ("directed", "random")),
    Departure("horizon", ReleasedPerformance.name, "forced plays count in the mean reward", ""),
    Departure("restless_bandit", "meta_cognition_released",
              "a choice is judged after the machines changed places: the last of a block is wrong",
              "confidences beyond 0 to 1 or no number: left out here", _unread),
    Departure("restless_bandit", ReleasedPerformance.name,
              "a choice is judged after the machines changed places, without a confidence too", ""),
    Departure("two_step", "model_basedness_released",
              "least squares over all pairs of days, reward and transition as -1 and 1, days "
              "without a readable alien included; the interval takes days for independent",
              _DAYS + "under one id: apart here, joined there; where every shuttle is that of the "
              "day before: no value here, 0 there", _unflown),
    Departure("two_step", "performance", "",
              "days without a readable choice: no reward here, the stored one there; the mean of "
              "runs here, of rows there", _unread),
    Departure("instrumental_learning", "learning_rate", **_FITTED),
    Departure("instrumental_learning", "optimism_bias", **_FITTED),
    Departure("instrumental_learning", "performance", "", ""),
    Departure("balloon_risk", "risk", "", ""),
    Departure("balloon_risk", "performance", "", ""),
    Departure("temporal_discounting", "temporal_discounting_released",
              "the four further items are skipped after a baseline of 5; the last is reversed",
              ""),
)  # fmt: skip


def departures_of(environment: str, measure: str, trials: Trials) -> dict[str, Any] | None:
    """Return what is followed and what differs in a measure, with the rows; None if untold."""
    for one in DEPARTURES:
        if (one.environment, one.measure) == (environment, measure):
            return {
                "environment": environment, "measure": measure,
                "followed": one.followed or "the definition", "differs": one.differs or "nothing",
                "rows": one.rows(trials) if one.differs else 0,
            }  # fmt: skip
    return None
