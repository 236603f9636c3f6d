"""Reasoners over causal networks of up to four variables whose strengths they are told.

Their kernel is written by hand: answers to the same question are merged, and the states of a
network are gone through in loops, so that it is no recursion over trials. How answers are scored is
as in `causal_reasoner.py`, written once more, since a cached kernel calls kernels of its own file
only.
"""

from __future__ import annotations

from math import exp, log, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.agents.agent import Integers, merging
from knownminds.agents.compiled import compiled
from knownminds.agents.exponential import log_share_below, mixed_with_lapse
from knownminds.agents.parameters import POSITIVE, UNIT, Array, Parameter, Parameters
from knownminds.environments.causes.network_questions import (
    BASES,
    NETWORK,
    QUESTION,
    STRENGTHS,
    TOLD,
    checked,
)
from knownminds.environments.environment import Observation

from .percentages import TINY, WHOLE, PercentJudge

LANES = 32  # as in sequences.py
LEAST = 1e-9  # what a cause that always works leaves undone is taken to be this much
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)
N = 4  # variables
STATES = 1 << N

# The parameters that the kernel knows of, by position, and what they are where a model lacks one.
# A model's `places` say in which column of theta each stands; -1 for none, -2 if it is 1.
NEGLECT, STRENGTH, BASE, K, SIGMA = range(5)
N_FULL = 5
ONE = -2
ABSENT = np.array([0.0, 1.0, 1.0, 0.0, 0.0])
DESIGN = (*NETWORK, *QUESTION)
FIRST_TOLD = len(NETWORK) + 1  # columns: 4 base rates, 6 strengths, query, 4 told, then answers
FIRST_ANSWER = len(DESIGN)
# Where the strength of i -> j stands, behind the base rates.
PLACE = np.zeros((N, N), dtype=np.int64)
for _place, _edge in enumerate(STRENGTHS):
    PLACE[int(_edge[1]) - 1, int(_edge[2]) - 1] = len(BASES) + _place


@compiled(fastmath={"contract"})
def _left(chance):  # type: ignore[no-untyped-def]
    """Logarithm of how often nothing comes of it."""
    return log(min(max(1.0 - chance, LEAST), 1.0))


@compiled(fastmath={"contract"})
def _chances(columns, t, i, full, chance):  # type: ignore[no-untyped-def]
    """Fill in how likely each variable is present by the states of those before it.

    chance[variable, state, 3]: the probability and its slopes in the scales of strengths and bases.
    """
    s, r = full[STRENGTH], full[BASE]
    for effect in range(N):
        base = _left(columns[effect][t, i])
        for state in range(1 << effect):
            produced = prevented = 0.0
            for cause in range(effect):
                if (state >> (effect - 1 - cause)) & 1:
                    strength = columns[PLACE[cause, effect]][t, i]
                    produced += _left(strength)
                    prevented += _left(-strength)
            absent, kept = exp(r * base + s * produced), exp(s * prevented)
            chance[effect, state, 0] = (1.0 - absent) * kept
            chance[effect, state, 1] = kept * (prevented - absent * (prevented + produced))
            chance[effect, state, 2] = -kept * absent * base


@compiled(fastmath={"contract"})
def _joint(cut, chance, weights):  # type: ignore[no-untyped-def]
    """Fill in weights[state, 3] of a network in which the variables of a set hang on nothing.

    The set is told by its bits, the first variable's the highest, as are states. What was brought
    about has no factor: of its two values a question takes one.
    """
    for state in range(STATES):
        weight, by_s, by_r = 1.0, 0.0, 0.0
        for j in range(N):
            if (cut >> (N - 1 - j)) & 1:
                continue
            p, p_s, p_r = chance[j, state >> (N - j)]
            if not (state >> (N - 1 - j)) & 1:
                p, p_s, p_r = 1.0 - p, -p_s, -p_r
            by_s = by_s * p + weight * p_s
            by_r = by_r * p + weight * p_r
            weight *= p
        weights[state, 0], weights[state, 1], weights[state, 2] = weight, by_s, by_r


@compiled(fastmath={"contract"})
def _share(query, told, values, weights):  # type: ignore[no-untyped-def]
    """Share of the states with the query in those that agree with what is told, and two slopes."""
    holds = holds_s = holds_r = fits = fits_s = fits_r = 0.0
    asked = 1 << (N - 1 - query)
    for state in range(STATES):
        if state & told == values:
            weight, by_s, by_r = weights[state]
            fits, fits_s, fits_r = fits + weight, fits_s + by_s, fits_r + by_r
            if state & asked:
                holds, holds_s, holds_r = holds + weight, holds_s + by_s, holds_r + by_r
    share = holds / fits
    return share, (holds_s - share * fits_s) / fits, (holds_r - share * fits_r) / fits


@compiled(fastmath={"contract"})
def _same_network(columns, t, other, i):  # type: ignore[no-untyped-def]
    """Say whether two places of a lane have the same base rates and strengths."""
    differ = 0
    for c in range(FIRST_TOLD - 1):
        differ += columns[c][t, i] != columns[c][other, i]
    return differ == 0


@compiled(fastmath={"contract"})
def _judged(columns, t, i, full, chance, weights, ready, slope):  # type: ignore[no-untyped-def]
    """What is answered before noise; fills in its slopes[4] in all parameters but the noise.

    `weights` are those of the network by the set that is cut off, as far as they are `ready`.
    """
    told = values = made = 0
    for j in range(N):
        code, bit = int(columns[FIRST_TOLD + j][t, i]), 1 << (N - 1 - j)
        if code >= 0:
            told |= bit
            values |= bit if code % 2 else 0
            made |= bit if code >= 2 else 0
    for cut in (0, made):
        if not ready[cut]:
            _joint(cut, chance, weights[cut])
            ready[cut] = True
    query = int(columns[FIRST_TOLD - 1][t, i])
    n, k = full[NEGLECT], full[K]
    done, done_s, done_r = _share(query, told, values, weights[made])
    seen, seen_s, seen_r = done, done_s, done_r
    if made:
        seen, seen_s, seen_r = _share(query, told, values, weights[0])
    answer = (1.0 - n) * done + n * seen
    shown, present = 0, 0
    for j in range(N):
        shown += (told >> j) & 1
        present += (values >> j) & 1
    associated = present / shown if shown else 0.5
    slope[NEGLECT] = (1.0 - k) * (seen - done)
    slope[STRENGTH] = (1.0 - k) * ((1.0 - n) * done_s + n * seen_s)
    slope[BASE] = (1.0 - k) * ((1.0 - n) * done_r + n * seen_r)
    slope[K] = associated - answer
    return (1.0 - k) * answer + k * associated


@compiled(fastmath={"contract"})
def _score(answer, precise, constant, count, mean, spread, at_0, at_100):  # type: ignore[no-untyped-def]
    """Log density of the answers to one question; slopes in what is predicted and in the noise.

    `precise` is 1 / sigma, `constant` the log density of an answer that is as predicted.
    """
    total = by_answer = by_sigma = 0.0
    if count > 0.0:
        off = (mean - answer) * precise
        squares = count * off * off + spread * precise * precise
        total += count * constant - 0.5 * squares
        by_answer += count * off * precise
        by_sigma += (squares - count) * precise
    if at_0 > 0.0:
        x = -answer * precise
        below, hazard = log_share_below(x)
        total += at_0 * below
        by_answer -= at_0 * hazard * precise
        by_sigma -= at_0 * hazard * x * precise
    if at_100 > 0.0:
        x = (answer - 1.0) * precise
        above, hazard = log_share_below(x)
        total += at_100 * above
        by_answer += at_100 * hazard * precise
        by_sigma -= at_100 * hazard * x * precise
    return total, by_answer, by_sigma


@compiled(fastmath={"contract"})
def _read(theta, places, full):  # type: ignore[no-untyped-def]
    """Fill in the parameters, full[5], from a row of theta."""
    for j in range(N_FULL):
        if places[j] >= 0:
            full[j] = theta[places[j]]
        else:
            full[j] = 1.0 if places[j] == ONE else ABSENT[j]


@compiled(fastmath={"contract"})
def _of_answers(theta, lapse, places, row, start, columns):  # type: ignore[no-untyped-def]
    """Log-likelihood [N] and gradient of theta [N, P]; a lapse is mixed in for single answers."""
    total, p = np.zeros(len(theta)), theta.shape[1]
    gradient = np.zeros((len(theta), p if lapse is None else p + 1))
    full, slope = np.empty(N_FULL), np.empty(N_FULL)
    chance, weights = np.empty((N, 1 << (N - 1), 3)), np.empty((STATES, STATES, 3))
    ready = np.zeros(STATES, dtype=np.bool_)
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            _read(theta[q], places, full)
            precise = 1.0 / full[SIGMA]
            constant = -HALF_LOG_2_PI - log(100.0 * full[SIGMA])
            known = -1
            for t in range(start[block], start[block + 1]):
                count, mean, spread, at_0, at_100 = (
                    columns[FIRST_ANSWER][t, i],
                    columns[FIRST_ANSWER + 1][t, i],
                    columns[FIRST_ANSWER + 2][t, i],
                    columns[FIRST_ANSWER + 3][t, i],
                    columns[FIRST_ANSWER + 4][t, i],
                )
                if not count + at_0 + at_100 > 0.0:
                    continue
                if known < 0 or not _same_network(columns, t, known, i):
                    _chances(columns, t, i, full, chance)
                    ready[:] = False
                    known = t
                answer = _judged(columns, t, i, full, chance, weights, ready, slope)
                own, by_answer, by_sigma = _score(
                    answer, precise, constant, count, mean, spread, at_0, at_100
                )
                if lapse is not None:
                    lapses = (1.0 if count > 0.0 else 0.5) / WHOLE
                    own, held, by = mixed_with_lapse(own, lapses, lapse[q])
                    gradient[q, p] += by
                    by_answer *= held
                    by_sigma *= held
                total[q] += own
                for j in range(SIGMA):
                    if places[j] >= 0:
                        gradient[q, places[j]] += by_answer * slope[j]
                gradient[q, places[SIGMA]] += by_sigma
    return total, gradient


@compiled(fastmath={"contract"})
def _answers(theta, lapse, places, row, start, uniforms, noise, columns):  # type: ignore[no-untyped-def]
    """Answer; the first uniform decides on a lapse, which gives the second as the answer."""
    response = np.full((start[-1], LANES), np.nan)
    full, slope = np.empty(N_FULL), np.empty(N_FULL)
    chance, weights = np.empty((N, 1 << (N - 1), 3)), np.empty((STATES, STATES, 3))
    ready = np.zeros(STATES, dtype=np.bool_)
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            lapses = 0.0 if lapse is None else lapse[q]
            _read(theta[q], places, full)
            known = -1
            for t in range(start[block], start[block + 1]):
                if not columns[FIRST_TOLD - 1][t, i] >= 0.0:
                    continue
                if known < 0 or not _same_network(columns, t, known, i):
                    _chances(columns, t, i, full, chance)
                    ready[:] = False
                    known = t
                answer = _judged(columns, t, i, full, chance, weights, ready, slope)
                answer = 100.0 * (answer + full[SIGMA] * noise[t, i])
                if uniforms[t, 0, i] < lapses:
                    answer = WHOLE * uniforms[t, 1, i] - 0.5
                response[t, i] = min(max(answer, 0.0), 100.0)
    return response


def likelihood(places: tuple[int, ...]) -> Any:
    """Make the kernel of a model whose parameters stand in theta at `places`."""

    @compiled(fastmath={"contract"})
    def log_likelihood(theta, lapse, n_actions, row, start, *columns):  # type: ignore[no-untyped-def]
        return _of_answers(theta, lapse, places, row, start, columns)

    return log_likelihood


def simulation(places: tuple[int, ...]) -> Any:
    """Make the simulating function of a model; see `likelihood`."""

    def simulate(theta, lapse, n_actions, row, start, uniforms, *columns):  # type: ignore[no-untyped-def]
        noise = ndtri(np.maximum(uniforms[:, 1], TINY))
        columns = tuple(np.ascontiguousarray(column, dtype=float) for column in columns)
        return _answers(theta, lapse, places, row, start, uniforms, noise, columns)

    return simulate


def merge(subject: Integers, columns: tuple[Array, ...]) -> tuple[Integers, tuple[Array, ...]]:
    """Merge the answers of a subject to the same question.

    Returns the subject of each place, and per place: the network and the question, how many
    answers lie between the ends, their mean and their sum of squared deviations from it (on a
    scale from 0 to 1), how many are 0 and how many are 100.
    """
    response, *design = columns
    given = np.isfinite(response)
    told = np.where(given, np.stack(design), -1.0)
    checked(told[:, given])
    place, where = np.unique(np.vstack([subject, told]), axis=1, return_inverse=True)
    where = where.ravel()
    y = np.where(given, response, 0.0) / 100.0
    low, high = given & (y <= 0.0), given & (y >= 1.0)
    inside = given & ~low & ~high

    def added(values: NDArray[Any]) -> Array:
        return np.bincount(where, values, minlength=place.shape[1]).astype(float)

    count = added(inside)
    mean = added(np.where(inside, y, 0.0)) / np.maximum(count, 1.0)
    spread = added(np.where(inside, (y - mean[where]) ** 2, 0.0))
    answers = (count, mean, spread, added(low), added(high))
    return place[0].astype(np.int64), (*place[1:], *answers)


NEGLECTED = Parameter(
    "neglect",
    UNIT,
    mean=-0.5,
    sd=1.3,
    description="share by which what was brought about counts as merely observed",
    source="Waldmann and Hagmayer 2005",
)
SCALES = (
    Parameter(
        "strength_scale",
        POSITIVE,
        mean=0.0,
        sd=0.5,
        description="a cause of strength w is taken to work like so many of them",
    ),
    Parameter(
        "base_scale",
        POSITIVE,
        mean=0.0,
        sd=0.5,
        description="a base rate is taken to come from so many such backgrounds",
    ),
)
ASSOCIATION = Parameter(
    "k", UNIT, mean=-1.0, sd=1.2, description="share of association in an answer"
)
NOISE = Parameter(
    "sigma",
    POSITIVE,
    mean=-2.2,
    sd=0.6,
    description="standard deviation of answers on a scale from 0 to 1",
)


class NetworkReasoner(PercentJudge):
    """Sums over the states of a causal network, with four ways to depart from exact answers.

    With the base rates b_j and the strengths w_ij that are told, variable j is present, given the
    states x_i of its causes, with probability

        [1 - (1 - b_j)^r prod over w_ij > 0 (1 - w_ij)^(s x_i)]
            times prod over w_ij < 0 (1 - |w_ij|)^(s x_i)

    and P(query | told) is a ratio of sums over the states. An intervention cuts a variable off
    from its causes. With P_do the answer by that rule, P_see the one as if all that is told had
    merely been observed, and A the share of the variables told of that are present, the answer is

        (1 - k) [(1 - n) P_do + n P_see] + k A + sigma N(0, 1),

    cut off at 0 and 1: n is `neglect`, s `strength_scale`, r `base_scale`. With n = k = 0 and
    s = r = 1 it is exact. What would be certain is taken to fail once in 1e9.
    """

    name = "network_reasoner"
    summary = "neglects interventions, misjudges strengths and associates, each by a parameter"
    source = "Cheng 1997; Novick and Cheng 2004; Pearl 2000; Waldmann and Hagmayer 2005"
    columns = ("response", *DESIGN)
    design = DESIGN
    places: tuple[int, ...] = (0, 1, 2, 3, 4)
    parameters = Parameters(NEGLECTED, *SCALES, ASSOCIATION, NOISE)
    prepare = staticmethod(merging(merge))
    log_likelihood = staticmethod(likelihood((0, 1, 2, 3, 4)))
    simulate = staticmethod(simulation((0, 1, 2, 3, 4)))

    def predict(self, observation: Observation) -> float:
        """Return the answer before any noise, by a sum over the states in plain Python."""
        told = tuple(observation[name] for name in self.design)
        if told not in self._known:
            n, s, r, k = (
                float(self.theta[at]) if at >= 0 else 1.0 if at == ONE else float(absent)
                for at, absent in zip(self.places[:SIGMA], ABSENT[:SIGMA], strict=True)
            )
            done, seen = (_plain_share(observation, s, r, cut) for cut in (True, False))
            shown = [observation[name] for name in TOLD if observation[name] >= 0]
            share = sum(x % 2 for x in shown) / len(shown) if shown else 0.5
            self._known[told] = (1.0 - k) * ((1.0 - n) * done + n * seen) + k * share
        return self._known[told]

    def reset(self) -> None:
        """Forget nothing but what need not be computed again."""
        self._known: dict[tuple[float, ...], float] = {}


def _plain_share(seen: Observation, s: float, r: float, cut: bool) -> float:
    """Return P(query | told) of a network whose strengths and bases are scaled."""
    weights = [0.0, 0.0]
    for state in np.ndindex((2,) * N):
        weight = 1.0
        for j, name in enumerate(TOLD):
            if seen[name] >= 0 and seen[name] % 2 != state[j]:
                weight = 0.0
            if cut and seen[name] >= 2:
                continue
            absent, kept = _fails(seen[f"b{j + 1}"]) ** r, 1.0
            for i in range(j):
                if state[i]:
                    strength = seen[f"w{i + 1}{j + 1}"]
                    absent *= _fails(strength) ** s
                    kept *= _fails(-strength) ** s
            present = (1.0 - absent) * kept
            weight *= present if state[j] else 1.0 - present
        weights[state[int(seen["query"])]] += weight
    return weights[1] / (weights[0] + weights[1])


def _fails(chance: float) -> float:
    return min(max(1.0 - chance, LEAST), 1.0)


class NetworkReasonerExact(NetworkReasoner):
    """Answers exactly, but for noise: n = k = 0 and s = r = 1."""

    name = "network_reasoner_exact"
    summary = "answers exactly by the network, interventions included"
    places = (-1, -1, -1, -1, 0)
    parameters = Parameters(NOISE)
    log_likelihood = staticmethod(likelihood((-1, -1, -1, -1, 0)))
    simulate = staticmethod(simulation((-1, -1, -1, -1, 0)))


class NetworkReasonerSeeing(NetworkReasoner):
    """Takes whatever was brought about as merely observed, n = 1, and is exact otherwise.

    It reasons backwards from every intervention, to what would have caused it.
    """

    name = "network_reasoner_seeing"
    summary = "takes interventions for observations, and is exact otherwise"
    places = (ONE, -1, -1, -1, 0)
    parameters = Parameters(NOISE)
    log_likelihood = staticmethod(likelihood((ONE, -1, -1, -1, 0)))
    simulate = staticmethod(simulation((ONE, -1, -1, -1, 0)))


class NetworkReasonerNeglect(NetworkReasoner):
    """Takes what was brought about in part as merely observed, by the share n, else exact."""

    name = "network_reasoner_neglect"
    summary = "takes interventions in part for observations, and is exact otherwise"
    places = (0, -1, -1, -1, 1)
    parameters = Parameters(NEGLECTED, NOISE)
    log_likelihood = staticmethod(likelihood((0, -1, -1, -1, 1)))
    simulate = staticmethod(simulation((0, -1, -1, -1, 1)))


class NetworkReasonerBiased(NetworkReasoner):
    """Takes causes and backgrounds to be stronger or weaker than they are told to be."""

    name = "network_reasoner_biased"
    summary = "takes strengths and base rates for other than told, and is exact otherwise"
    places = (-1, 0, 1, -1, 2)
    parameters = Parameters(*SCALES, NOISE)
    log_likelihood = staticmethod(likelihood((-1, 0, 1, -1, 2)))
    simulate = staticmethod(simulation((-1, 0, 1, -1, 2)))


class NetworkReasonerAssociative(NetworkReasoner):
    """Mixes the exact answer with the share of the variables told of that are present.

    Whatever is present then speaks for whatever is asked, also where the network screens it off:
    a violation of the Markov condition of the size k.
    """

    name = "network_reasoner_associative"
    summary = "mixes exact answers with the share of told variables that are present"
    places = (-1, -1, -1, 0, 1)
    parameters = Parameters(ASSOCIATION, NOISE)
    log_likelihood = staticmethod(likelihood((-1, -1, -1, 0, 1)))
    simulate = staticmethod(simulation((-1, -1, -1, 0, 1)))
