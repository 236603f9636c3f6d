"""Whether the same belief is stated in every elicitation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.environments.later import pandas as pd
from knownminds.inference.resampling import resampled, times_drawn

from .belief_decisions import ELICITATIONS, BeliefDecisions
from .coherence_test import NONE, CoherenceTest, reading

PLAIN = ELICITATIONS[0]
SPREAD = "sd of plain"  # names the row of the spread
AT_A_TIME = 1_000_000  # so many answers are exchanged at a time, which takes 8 MB


def elicitation_consistency(
    data: BeliefDecisions, *, replicates: int = 1000, bootstraps: int = 500, seed: int = 0
) -> CoherenceTest:
    """Compare the beliefs stated under each elicitation with the plain ones.

    Distances between noisy answers are above zero even if the belief is the same. So the test
    exchanges the answers to the two questions within contexts, which changes nothing if both are
    answered alike. p is the share of exchanges with a distance as large or larger; null is the mean
    distance of exchanges.

    The first row is the spread of plain answers: their standard deviation between repetitions of a
    context, pooled over contexts. Each other elicitation has a row. Its value is the root mean
    square, over contexts, of the difference between means over repetitions, as in the published
    table. The column published has single answers against the mean of the plain ones, as in the
    published formula. `mean_shift` is the mean difference, elicitation minus plain. `excess` is the
    mean square difference of means less its mean over all exchanges. The frame "summary" has the
    means over elicitations of excess and value.

    Raises
    ------
    ValueError : If the plain question, or every other one, is absent from the trials or has no
        answer.
    """
    answers = _answered(data)
    plain = answers.pop(PLAIN)
    n = len(plain)
    weight = np.concatenate([np.ones((1, n)), times_drawn(n, bootstraps, seed, 34)])
    count = np.isfinite(plain).sum(axis=1)
    residual = np.where(np.isfinite(plain), plain - _mean(plain)[:, None], 0.0)
    squares = np.where(count > 1, (residual**2).sum(axis=1), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(weight @ squares / (weight @ np.where(count > 1, count - 1, 0)))
    repeated = int((count > 1).sum())
    status = "ok" if np.isfinite(spread[0]) else "no context came twice"
    rows = [reading(SPREAD, resampled(spread), n=repeated, unit="context", status=status)]
    missing, rounds = data.total("missing"), []
    for i, (name, other) in enumerate(answers.items()):
        row, some = _distance(name, plain, other, weight, replicates, session_stream(seed, 35, i))
        row["excluded"] = {f"no {e}": missing.get(e, 0) for e in (PLAIN, name)}
        rows.append(row)
        rounds.append(some)
    means = np.mean(rounds, axis=0)
    names = ("excess", "value")
    summary = [
        {"of": of} | resampled(some)._asdict() for of, some in zip(names, means, strict=True)
    ]
    contexts = min(row["n"] for row in rows[1:])
    return CoherenceTest.of(rows, contexts, summary=pd.DataFrame(summary))


class _Terms(NamedTuple):
    """Contributions of the C contexts with answers to both elicitations.

    Parameters
    ----------
    both : which contexts have both
    difference : difference of the means, elicitation minus plain, [C]
    squares, counted : sum of squares of single answers from the plain mean, and their number, [C]
    excess : squared difference of means less its mean over exchanges, [C]; the latter is the
        variance of all answers times 1 / n + 1 / m, as in any random partition
    """

    both: NDArray[np.bool_]
    difference: Array
    squares: Array
    counted: NDArray[np.int64]
    excess: Array

    @classmethod
    def of(cls, plain: Array, other: Array) -> _Terms:
        """Compute them from answers side by side, [contexts, repetitions]."""
        first, second = (np.asarray(np.isfinite(side).any(axis=1)) for side in (plain, other))
        both: NDArray[np.bool_] = np.asarray(first & second)
        plain, other = plain[both], other[both]
        centre, given = _mean(plain), np.isfinite(other)
        difference = _mean(other) - centre
        squares = np.where(given, (other - centre[:, None]) ** 2, 0.0).sum(axis=1)
        together = np.concatenate([plain, other], axis=1)
        answered = np.isfinite(together)
        n = answered.sum(axis=1)
        residual = np.where(answered, together - _mean(together)[:, None], 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.where(n > 1, (residual**2).sum(axis=1) / (n - 1), 0.0)
        parts = sum(1.0 / np.isfinite(side).sum(axis=1) for side in (plain, other))
        return cls(both, difference, squares, given.sum(axis=1), difference**2 - variance * parts)


def _answered(data: BeliefDecisions) -> dict[str, Array]:
    """Return the answers to each elicitation that has some, side by side for each context."""
    context = pd.Series(data.context)
    repetition = context.groupby(context).cumcount()
    answers = {}
    for name in ELICITATIONS:
        values = np.full((context.max() + 1, repetition.max() + 1), np.nan)
        values[context, repetition] = data.numbers(name)
        if np.isfinite(values).any():
            answers[name] = values
    if PLAIN not in answers or len(answers) < 2:
        raise ValueError(
            f"Consistency is between the plain question and others ({', '.join(ELICITATIONS[1:])});"
            f" there are answers to {', '.join(answers) or 'none'}. Ask for more elicitations."
        )
    return answers


def _mean(answers: Array) -> Array:
    """Return means over the last axis; NaN where all numbers are missing."""
    given = np.isfinite(answers)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(given, answers, 0.0).sum(axis=-1) / given.sum(axis=-1)
    return mean


def _distance(
    name: str, plain: Array, other: Array, weight: Array, replicates: int, rng: np.random.Generator
) -> tuple[dict[str, Any], Array]:
    """Return the row of an elicitation, and its excess and value in each round, [2, 1 + B]."""
    terms = _Terms.of(plain, other)
    n = int(terms.both.sum())
    if not n:
        return reading(name, NONE, n=0, unit="context"), np.full((2, len(weight)), np.nan)
    plain, other, weight = plain[terms.both], other[terms.both], weight[:, terms.both]
    with np.errstate(invalid="ignore", divide="ignore"):
        contexts = weight.sum(axis=1)
        means = np.sqrt(weight @ terms.difference**2 / contexts)
        single = np.sqrt(weight @ terms.squares / (weight @ terms.counted))
        excess = weight @ terms.excess / contexts
    exchanged = np.empty((2, replicates))
    together, n_plain = np.concatenate([plain, other], axis=1), np.isfinite(plain).sum(axis=1)
    step = max(1, AT_A_TIME // together.size)
    for begin in range(0, replicates, step):
        some = slice(begin, min(begin + step, replicates))
        key = rng.random((some.stop - some.start, *together.shape))
        exchanged[:, some] = _exchanged(together, n_plain, key)
    row = reading(
        name,
        resampled(means),
        null=float(exchanged[0].mean()),
        p_value=(1 + int((exchanged[0] >= means[0] - 1e-12).sum())) / (replicates + 1),
        n=n,
        unit="context",
        published=resampled(single),
        mean_shift=float(terms.difference.mean()),
        excess=float(excess[0]),
    )
    return row, np.stack([excess, means])


def _exchanged(answers: Array, n_plain: NDArray[np.int64], key: Array) -> Array:
    """Return both distances with the answers[C, R] to two questions exchanged, [2, B].

    In each of B rounds, the plain question gets the answers of a context with the lowest keys[B, C,
    R].
    """
    answered = np.isfinite(answers)
    rank = np.argsort(np.argsort(np.where(answered, key, np.inf), axis=2), axis=2)
    plain = rank < n_plain[:, None]
    value = np.where(answered, answers, 0.0)
    first = (plain * value).sum(axis=2) / n_plain
    other = ~plain & answered
    count = other.sum(axis=2)
    difference = (other * value).sum(axis=2) / count - first
    squares = (other * (value - first[:, :, None]) ** 2).sum(axis=(1, 2))
    means = (difference**2).mean(axis=1)
    distances: Array = np.sqrt(np.stack([means, squares / count.sum(axis=1)]))
    return distances
