"""What CogBench's released scripts compute from its tasks, and where our numbers must differ.

The source is Coda-Forno, Binz, Wang and Schulz 2024. Each measure of the benchmark says which parts
of the released arithmetic it follows. Other parts cannot be followed: trials do not show that an
answer was replaced, or mixed with that of another run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials, correctness
from knownminds.environments.bandits.horizon import POINTS
from knownminds.environments.bandits.probabilistic_reasoning import posterior
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Values, with_columns
from knownminds.inference.performance import UNSCORED, performance_of
from knownminds.inference.session_measure import DeclaredMeasure

LEAST = 1e-5  # stated probabilities are held between this and 1 minus this
ALONE = "choice_alone"  # column of a trial whose confidence is missing, in imported files
TOLD_NUMBER = "a number beyond 0 to 1, held at the end of the scale"


def trimmed(trials: Trials) -> tuple[Array, NDArray[np.bool_]]:
    """Return stated probabilities as the script uses them, and which lay beyond 0 to 1, [rows].

    The script accepts any number: one above 1 becomes .99999, one below 0 becomes .00001. Here such
    an answer is malformed, and its number is in `raw_text`.
    """
    response = trials.numbers("response")
    if "raw_text" not in trials.frame:
        return np.clip(response, LEAST, 1.0 - LEAST), np.zeros(len(response), dtype=bool)
    numbers = pd.to_numeric(trials.frame["raw_text"], errors="coerce").to_numpy(
        float, na_value=np.nan
    )
    beyond = np.isnan(response) & np.isfinite(numbers) & ((numbers < 0.0) | (numbers > 1.0))
    return np.clip(np.where(beyond, numbers, response), LEAST, 1.0 - LEAST), beyond


def answers_beyond(trials: Trials) -> str:
    """Count the answers that the script moves to an end of the scale; "" if there are none."""
    n = int(trimmed(trials)[1].sum())
    return f"{n} x {TOLD_NUMBER}" if n else ""


def _urns(trials: Trials) -> tuple[NDArray[np.intp], Array]:
    frame = with_columns(trials, "performance_released", ("prior", "likelihood", "ball"))
    prior, likelihood, ball = (frame[n].to_numpy(float) for n in ("prior", "likelihood", "ball"))
    score = 1.0 - np.abs(trimmed(trials)[0] - posterior(prior, likelihood, ball))
    return np.arange(len(frame)), score


def _games(trials: Trials) -> tuple[NDArray[np.intp], Array]:
    frame = with_columns(trials, "performance_released", ("game", "play", *POINTS))
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


def released_performance(environment: Environment) -> DeclaredMeasure | None:
    """Return performance as the released scripts compute it; None where that is the usual one.

    Probabilistic reasoning: 1 - |answer - posterior|, with the answers as in `trimmed`. Horizon:
    the mean points of all plays, forced ones included. Restless bandit: accuracy judged after the
    machines have changed places, including choices without a confidence.
    """
    scored = _SCORED.get(environment.name)
    if scored is None:
        return None

    def read(measure: DeclaredMeasure, trials: Trials) -> Values:
        subject, names = pd.factorize(trials.frame["subject"])
        rows, score = scored(trials)
        return Values.means(subject[rows], score, len(names), UNSCORED)

    def unscored(measure: DeclaredMeasure, trials: Trials) -> NDArray[np.bool_]:
        # An answer that was moved to an end has a score.
        return np.isnan(scored(trials)[1][: len(trials)])

    return replace(
        performance_of(environment),
        name="performance_released",
        summary="mean score of the trials, as the released code computes it",
        source="Coda-Forno, Binz, Wang and Schulz 2024",
        read=read,
        lacks=unscored,
        remark=answers_beyond if environment.name == "probabilistic_reasoning" else None,
    )
