"""Whether the same belief is stated however it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.resampling import Ends, percentile_ends

from .belief_decisions import ELICITATIONS, BeliefDecisions

PLAIN = ELICITATIONS[0]
AT_A_TIME = 1_000_000  # answers that are exchanged at a time, which take 8 MB


@dataclass(frozen=True)
class ElicitationDistance:
    """How far the beliefs stated under another elicitation are from the plain ones.

    Parameters
    ----------
    elicitation : Its name.
    contexts : With an answer to both.
    rmse_means : Root mean square over contexts of the difference between the means over
        repetitions, as in the published table.
    rmse_answers : Of single answers against the mean of the plain ones, as in the published
        formula.
    shift : Mean difference, elicitation minus plain.
    means_low, means_high, answers_low, answers_high, shift_low, shift_high : Ends of 95% intervals,
        contexts being resampled.
    null_means, null_answers : Mean of the two distances if elicitations are exchanged within
        contexts: what repeats that differ among themselves bring about alone.
    p_value : Share of such exchanges with an `rmse_means` as large or larger.
    excess : Mean square difference of means less its mean over all such exchanges: about 0 where
        nothing but repetitions differs.
    """

    elicitation: str
    contexts: int
    rmse_means: float
    means_low: float
    means_high: float
    rmse_answers: float
    answers_low: float
    answers_high: float
    shift: float
    shift_low: float
    shift_high: float
    null_means: float
    null_answers: float
    p_value: float
    excess: float


@dataclass(frozen=True)
class ElicitationConsistencyTest(Result):
    """Spread of the plain answers, and the distance of the other elicitations from them.

    Parameters
    ----------
    spread
        Standard deviation between repetitions of the plain question in a context, pooled over
        contexts; NaN without repetitions.
    spread_low, spread_high
        Its 95% interval, contexts being resampled.
    contexts
        With two plain answers or more.
    distances
        Of the elicitations that were asked.
    excess, means
        Means over elicitations of their `excess` and `rmse_means`: value, ends of the 95%
        interval and standard error, contexts being resampled.
    missing
        Answers that are not there, by elicitation.
    """

    spread: float
    spread_low: float
    spread_high: float
    contexts: int
    distances: tuple[ElicitationDistance, ...]
    excess: tuple[float, float, float, float]
    means: tuple[float, float, float, float]
    missing: Mapping[str, int]

    def to_frame(self) -> pd.DataFrame:
        """One row per elicitation."""
        return pd.DataFrame([asdict(distance) for distance in self.distances])


def elicitation_consistency(
    data: BeliefDecisions, *, replicates: int = 1000, bootstraps: int = 500, seed: int = 0
) -> ElicitationConsistencyTest:
    """Compare the beliefs stated under each elicitation with the plain ones.

    Distances between noisy answers are above zero although the belief is the same. So the test
    exchanges the answers to the two questions within contexts, which changes nothing if they are
    answered alike.

    Raises
    ------
    ValueError
        If the plain question, or every other, was not asked or never answered.
    """
    beliefs = {name: data.frame[name].to_numpy() for name in ELICITATIONS if name in data.frame}
    answers = _answered(data.context, beliefs)
    plain = answers.pop(PLAIN)
    n = len(plain)
    weight = np.ones((1 + bootstraps, n))
    rng = session_stream(seed, 34)
    weight[1:] = rng.multinomial(n, np.full(n, 1 / n), size=bootstraps)
    count = np.isfinite(plain).sum(axis=1)
    repeated = count > 1
    residual = np.where(np.isfinite(plain), plain - _mean(plain)[:, None], 0.0)
    squares = np.where(repeated, (residual**2).sum(axis=1), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(weight @ squares / (weight @ np.where(repeated, count - 1, 0)))
    found = [
        _distance(name, plain, other, weight, replicates, session_stream(seed, 35, i))
        for i, (name, other) in enumerate(answers.items())
    ]
    return ElicitationConsistencyTest(
        spread=float(spread[0]),
        spread_low=_ends(spread).low,
        spread_high=_ends(spread).high,
        contexts=int(repeated.sum()),
        distances=tuple(distance for distance, _, _ in found),
        excess=_summary(np.mean([excess for _, excess, _ in found], axis=0)),
        means=_summary(np.mean([means for _, _, means in found], axis=0)),
        missing={name: data.missing[name] for name in ELICITATIONS if name in data.missing},
    )


@dataclass(frozen=True)
class BareDistance:
    """`rmse_means` and `excess` of an `ElicitationDistance`, without intervals."""

    elicitation: str
    rmse_means: float
    excess: float


def distances(context: NDArray[np.int64], beliefs: Mapping[str, Array]) -> tuple[BareDistance, ...]:
    """Return how far each elicitation's answers[n] are from the plain ones.

    Raises
    ------
    ValueError
        If the plain question, or every other, was not asked or never answered.
    """
    answers = _answered(context, beliefs)
    plain = answers.pop(PLAIN)
    found = []
    for name, other in answers.items():
        both = np.isfinite(plain).any(axis=1) & np.isfinite(other).any(axis=1)
        difference, *_ = _differences(plain[both], other[both])
        means = float(np.sqrt((difference**2).mean())) if both.any() else float("nan")
        excess = float(_excess(plain[both], other[both]).mean()) if both.any() else float("nan")
        found.append(BareDistance(name, means, excess))
    return tuple(found)


def _answered(context: NDArray[np.int64], beliefs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the answers to each elicitation that has some, side by side for each context."""
    found = {name: _by_context(context, said) for name, said in beliefs.items()}
    found = {name: said for name, said in found.items() if np.isfinite(said).any()}
    if PLAIN not in found or len(found) < 2:
        raise ValueError(
            f"Consistency is between the plain question and others ({', '.join(ELICITATIONS[1:])});"
            f" there are answers to {', '.join(found) or 'none'}. Ask for more elicitations."
        )
    return found


def _excess(plain: Array, other: Array) -> Array:
    """Return per context the squared difference of means less its mean over exchanges.

    The latter is the variance of all answers times 1 / n + 1 / m, as in any random partition.
    """
    together = np.concatenate([plain, other], axis=1)
    held = np.isfinite(together)
    n = held.sum(axis=1)
    residual = np.where(held, together - _mean(together)[:, None], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(n > 1, (residual**2).sum(axis=1) / (n - 1), 0.0)
    parts = sum(1.0 / np.isfinite(side).sum(axis=1) for side in (plain, other))
    difference: Array = (_mean(other) - _mean(plain)) ** 2 - variance * parts
    return difference


def _summary(rounds: Array) -> tuple[float, float, float, float]:
    """Return the value, its 95% interval and its standard error, of [1 + B]."""
    return float(rounds[0]), *_ends(rounds)


def _by_context(context: NDArray[np.int64], said: Array) -> Array:
    """Return the answers[n] about each context side by side, [C, R]; NaN where there is none."""
    order = np.argsort(context, kind="stable")
    count = np.bincount(context)
    number = np.empty(len(context), dtype=np.int64)
    number[order] = np.arange(len(context)) - np.repeat(np.cumsum(count) - count, count)
    values = np.full((len(count), int(count.max())), np.nan)
    values[context, number] = said
    return values


def _mean(answers: Array) -> Array:
    """Return means over the last axis; NaN where all is missing."""
    held = np.isfinite(answers)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(held, answers, 0.0).sum(axis=-1) / held.sum(axis=-1)
    return mean


def _distance(
    name: str, plain: Array, other: Array, weight: Array, replicates: int, rng: np.random.Generator
) -> tuple[ElicitationDistance, Array, Array]:
    """Return the distance, and its excess and `rmse_means` in the data and each bootstrap."""
    both = np.isfinite(plain).any(axis=1) & np.isfinite(other).any(axis=1)
    if not both.any():
        rounds = np.full(len(weight), np.nan)
        return ElicitationDistance(name, 0, *(float("nan"),) * 13), rounds, rounds
    plain, other, weight = plain[both], other[both], weight[:, both]
    difference, squares, count = _differences(plain, other)
    with np.errstate(invalid="ignore", divide="ignore"):
        contexts = weight.sum(axis=1)
        means = np.sqrt(weight @ difference**2 / contexts)
        single = np.sqrt(weight @ squares / (weight @ count))
        shift = weight @ difference / contexts
        excess = weight @ _excess(plain, other) / contexts
    exchanged = np.empty((2, replicates))
    together = np.concatenate([plain, other], axis=1)
    n_plain, held = np.isfinite(plain).sum(axis=1), np.isfinite(together)
    step = max(1, AT_A_TIME // together.size)
    for begin in range(0, replicates, step):
        some = slice(begin, min(begin + step, replicates))
        key = rng.random((some.stop - some.start, *together.shape))
        exchanged[:, some] = _exchanged(together, held, n_plain, key)
    elicitation_distance = ElicitationDistance(
        elicitation=name,
        contexts=int(both.sum()),
        rmse_means=float(means[0]),
        means_low=_ends(means).low,
        means_high=_ends(means).high,
        rmse_answers=float(single[0]),
        answers_low=_ends(single).low,
        answers_high=_ends(single).high,
        shift=float(shift[0]),
        shift_low=_ends(shift).low,
        shift_high=_ends(shift).high,
        null_means=float(exchanged[0].mean()),
        null_answers=float(exchanged[1].mean()),
        p_value=(1 + int((exchanged[0] >= means[0] - 1e-12).sum())) / (replicates + 1),
        excess=float(excess[0]),
    )
    return elicitation_distance, excess, means


@compiled()
def _exchanged(answers, held, n_plain, key):  # type: ignore[no-untyped-def]
    """Return both distances with the answers[C, R] to two questions exchanged, [2, B].

    In each of B rounds, plain takes those answers of a context whose keys[B, C, R] are the lowest.
    """
    rounds, contexts, most = key.shape
    found = np.empty((2, rounds))
    said, keys, others = np.empty(most), np.empty(most), np.empty(most)
    for b in range(rounds):
        means, squares, count = 0.0, 0.0, 0
        for c in range(contexts):
            n = 0
            for r in range(most):
                if held[c, r]:
                    said[n], keys[n] = answers[c, r], key[b, c, r]
                    n += 1
            first, rest, left = 0.0, 0.0, 0
            for r in range(n):
                lower = 0
                for k in range(n):
                    lower += keys[k] < keys[r]
                if lower < n_plain[c]:
                    first += said[r]
                else:
                    others[left] = said[r]
                    rest += said[r]
                    left += 1
            first /= n_plain[c]
            means += (rest / left - first) ** 2
            for k in range(left):
                squares += (others[k] - first) ** 2
            count += left
        found[0, b] = np.sqrt(means / contexts)
        found[1, b] = np.sqrt(squares / count)
    return found


def _differences(plain: Array, other: Array) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return per context the difference of means, the squares of single answers, their number."""
    centre = _mean(plain)
    held = np.isfinite(other)
    squares = np.where(held, (other - centre[..., None]) ** 2, 0.0).sum(axis=-1)
    return _mean(other) - centre, squares, held.sum(axis=-1)


def _ends(values: Array) -> Ends:
    """Return the interval over values[1:], if the data, values[0], have one."""
    return percentile_ends(values[1:] if np.isfinite(values[0]) else values[:0])
