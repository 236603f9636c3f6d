"""A reasoner who takes a short walk from state to state of a graph.

Its kernel is written by hand, since the number of steps in a walk depends on the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import exp, log, pi
from typing import Any, ClassVar

import numpy as np
from numba import njit
from scipy.special import ndtri

from knownminds.agents.compiled import compiled
from knownminds.agents.compiler.definition import SMALLEST
from knownminds.agents.exponential import hazard_of, log_ndtr_of, mixed_with_lapse
from knownminds.agents.model import Integers
from knownminds.agents.parameters import POSITIVE, Array, Parameter, Parameters
from knownminds.agents.sequences import Sequences
from knownminds.environments.turn import Observation

from .noisy_or import EDGE, CausalReasoner, NoisyOr
from .percentages import WHOLE, Percentage

__all__ = ["MutationSampler"]

LANES = 32  # the same as in sequences.py
ENDLESS = 4e5  # steps; longer walks count as endless, and their visits are the probabilities
SETTLED = 1e-15  # a walk whose flows are smaller than this has converged
RARE = 1e-17  # numbers of steps less probable than this are ignored
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)
N_QUESTIONS = 81  # questions about each graph
STEPS, SIGMA = 4, 5  # columns of theta, after p, b, m1, m2

# For each question, these are the states (of 8, 4 first + 2 second + third) that agree with what it
# tells, and those among them in which the queried variable is present.
_BITS = np.array(list(product((0, 1), repeat=3)))
_TOLD = np.array(list(product((-1, 0, 1), repeat=3)))
FITS = np.tile(((_TOLD[:, None] < 0) | (_TOLD[:, None] == _BITS)).all(axis=2), (3, 1))
HOLDS = FITS & np.repeat(_BITS.T == 1, 27, axis=0)


@compiled(fastmath={"contract"})
def _effect(b, m1, m2, c1, c2):  # type: ignore[no-untyped-def]
    """Return P(effect present), P(effect absent), and slopes of the first in b, m1, m2."""
    fails_1, fails_2 = 1.0 - m1 * c1, 1.0 - m2 * c2
    no = (1.0 - b) * fails_1 * fails_2
    return 1.0 - no, no, fails_1 * fails_2, (1.0 - b) * fails_2 * c1, (1.0 - b) * fails_1 * c2


@compiled(fastmath={"contract"})
def _joint(graph, theta, weight, slope):  # type: ignore[no-untyped-def]
    """Fill in the probability of each state, weight[8], with its slopes[8, 5] in p, b, m1, m2."""
    p, b = min(max(theta[0], EDGE), 1.0 - EDGE), min(max(theta[1], EDGE), 1.0 - EDGE)
    m1, m2 = min(max(theta[2], EDGE), 1.0 - EDGE), min(max(theta[3], EDGE), 1.0 - EDGE)
    for s in range(8):
        x1, x2, x3 = s >> 2, (s >> 1) & 1, s & 1
        f1, g1 = (p, 1.0) if x1 else (1.0 - p, -1.0)
        slope[s, STEPS] = 0.0
        if graph == 0:  # the graph C1 -> E <- C2
            f2, g2 = (p, 1.0) if x2 else (1.0 - p, -1.0)
            yes, no, by_b, by_1, by_2 = _effect(b, m1, m2, x1, x2)
            f3, g3 = (yes, 1.0) if x3 else (no, -1.0)
            slope[s, 0] = (g1 * f2 + f1 * g2) * f3
            slope[s, 1] = f1 * f2 * g3 * by_b
            slope[s, 2] = f1 * f2 * g3 * by_1
            slope[s, 3] = f1 * f2 * g3 * by_2
        else:  # the graphs C1 -> C2 -> C3 and C2 <- C1 -> C3
            yes, no, second_b, by_1, _ = _effect(b, m1, m2, x1, 0)
            f2, g2 = (yes, 1.0) if x2 else (no, -1.0)
            yes, no, third_b, _, by_2 = _effect(b, m1, m2, 0, x2 if graph == 1 else x1)
            f3, g3 = (yes, 1.0) if x3 else (no, -1.0)
            slope[s, 0] = g1 * f2 * f3
            slope[s, 1] = f1 * (g2 * second_b * f3 + f2 * g3 * third_b)
            slope[s, 2] = f1 * g2 * by_1 * f3
            slope[s, 3] = f1 * f2 * g3 * by_2
        weight[s] = f1 * f2 * f3


@compiled(fastmath={"contract"})
def _walk(steps, weight, slope, places, rates, now, turn, total, total_turn):  # type: ignore[no-untyped-def]
    """Replace probabilities of states by a walk's expected visits, and their slopes by those of
    visits.

    The walk begins where nothing or everything is present, and takes N ~ Poisson(steps) steps. In
    each step one of the three variables is proposed to flip, and the flip is accepted with the
    ratio of probabilities. The expected visits are the sum of P(N >= t) times the distribution
    after t steps. The transition matrix carries this distribution forward beside its derivatives.
    The slope in `steps` follows from d P(N >= t) / d steps = P(N = t - 1).
    """
    e = 0
    for bit in (4, 2, 1):
        for s in range(8):
            if s & bit:
                continue
            likely, rare = (s, s | bit) if weight[s] >= weight[s | bit] else (s | bit, s)
            places[e, 0], places[e, 1] = likely, rare
            rates[e, 4] = weight[rare] / weight[likely] / 3.0
            for k in range(4):
                rates[e, k] = rates[e, 4] * (
                    slope[rare, k] / weight[rare] - slope[likely, k] / weight[likely]
                )
            e += 1
    for s in range(8):
        now[s] = total[s] = 0.5 if s == 0 or s == 7 else 0.0
        for k in range(4):
            turn[s, k] = total_turn[s, k] = 0.0
        total_turn[s, STEPS] = 0.0
    log_steps, log_chance, survival = log(steps), -steps, 1.0
    counted, turned, t = 1.0, 0.0, 0
    while True:
        chance = exp(log_chance)  # the probability of exactly t steps
        if t > steps and chance < RARE:
            break
        t += 1
        survival = max(survival - chance, 0.0)
        log_chance += log_steps - log(t)
        # All flows of a step depend on the distribution before it.
        largest = 0.0
        for e in range(12):
            likely, rare = places[e, 0], places[e, 1]
            rates[e, 9] = now[likely] * rates[e, 4] - now[rare] / 3.0
            largest = max(largest, abs(rates[e, 9]))
            for k in range(4):
                rates[e, 5 + k] = (
                    turn[likely, k] * rates[e, 4] + now[likely] * rates[e, k] - turn[rare, k] / 3.0
                )
                largest = max(largest, abs(rates[e, 5 + k]))
        if largest < SETTLED:
            # The remaining visits are spread like the present ones; there are E N + 1 visits in
            # all.
            survival, chance = 1.0 + steps - counted, 1.0 - turned
            t = -1
        else:
            for e in range(12):
                likely, rare = places[e, 0], places[e, 1]
                now[likely] -= rates[e, 9]
                now[rare] += rates[e, 9]
                for k in range(4):
                    turn[likely, k] -= rates[e, 5 + k]
                    turn[rare, k] += rates[e, 5 + k]
        counted += survival
        turned += chance
        for s in range(8):
            total[s] += survival * now[s]
            total_turn[s, STEPS] += chance * now[s]
            for k in range(4):
                total_turn[s, k] += survival * turn[s, k]
        if t < 0:
            break
    for s in range(8):
        weight[s] = total[s]
        for k in range(5):
            slope[s, k] = total_turn[s, k]


@compiled(fastmath={"contract"})
def _score(y, answer, precise, constant):  # type: ignore[no-untyped-def]
    """Return the log density of an answer, and its slopes in the prediction and in the noise.

    `precise` is 1 / sigma; `constant` is the log density of an answer that equals the prediction.
    """
    if 0.0 < y < 100.0:
        off = (y / 100.0 - answer) * precise
        return constant - 0.5 * off * off, off * precise, (off * off - 1.0) * precise
    side, x = (-1.0, -answer * precise) if y <= 0.0 else (1.0, (answer - 1.0) * precise)
    hazard = hazard_of(x)
    return log_ndtr_of(x), side * hazard * precise, -hazard * x * precise


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _agreeing(weight, question):  # type: ignore[no-untyped-def]
    """Return the weight of all states that agree with a question, and of those with its event."""
    holds = fits = 0.0
    for s in range(8):
        fits += weight[s] if FITS[question, s] else 0.0
        holds += weight[s] if HOLDS[question, s] else 0.0
    return holds, fits


@compiled(fastmath={"contract"})
def _gather(pull, slope, push):  # type: ignore[no-untyped-def]
    """Carry slopes in the weights of the states, pull[8], on to the parameters."""
    for s in range(8):
        for k in range(5):
            push[k] += pull[s] * slope[s, k]


@compiled(fastmath={"contract"})
def _visits(graph, theta, weight, slope, buffers):  # type: ignore[no-untyped-def]
    """Fill in the weights of the states, weight[8], and their slopes[8, 5]."""
    places, rates, now, turn, total, total_turn = buffers
    _joint(graph, theta, weight, slope)
    if theta[STEPS] < ENDLESS:  # beyond, the slope in the number of steps is 0
        _walk(theta[STEPS], weight, slope, places, rates, now, turn, total, total_turn)


@compiled()
def _buffers():  # type: ignore[no-untyped-def]
    """Make the arrays that a walk fills in."""
    places, rates = np.empty((12, 2), np.int64), np.empty((12, 10))
    return places, rates, np.empty(8), np.empty((8, 4)), np.empty(8), np.empty((8, 5))


@compiled(fastmath={"contract"})
def log_likelihood(theta, lapse, n_actions, row, start, response, cell):  # type: ignore[no-untyped-def]
    """Return the log-likelihood [N] and its gradient in theta [N, P]."""
    total, p = np.zeros(len(theta)), theta.shape[1]
    gradient = np.zeros((len(theta), p if lapse is None else p + 1))
    pull, weight, slope, buffers = np.empty(8), np.empty(8), np.empty((8, 5)), _buffers()
    for block in range(len(row)):
        for i in range(LANES):
            q, known = row[block, i], -1
            precise = 1.0 / theta[q, SIGMA]
            constant = -HALF_LOG_2_PI - log(100.0 * theta[q, SIGMA])
            for t in range(start[block], start[block + 1]):
                y = response[t, i]
                if cell[t, i] < 0.0 or y < -1e300:
                    continue
                graph, question = divmod(int(cell[t, i]), N_QUESTIONS)
                if graph != known:
                    if known >= 0:
                        _gather(pull, slope, gradient[q])
                    pull[:] = 0.0  # slope of the log-likelihood in the weight of each state
                    known = graph
                    _visits(graph, theta[q], weight, slope, buffers)
                holds, fits = _agreeing(weight, question)
                answer = holds / fits
                density, by_answer, by_sigma = _score(y, answer, precise, constant)
                if lapse is not None:
                    lapses = (1.0 if 0.0 < y < 100.0 else 0.5) / WHOLE
                    density, share, by = mixed_with_lapse(density, lapses, lapse[q])
                    gradient[q, p] += by
                    by_answer *= share
                    by_sigma *= share
                total[q] += density
                gradient[q, SIGMA] += by_sigma
                each = by_answer / fits
                for s in range(8):
                    pull[s] += each if HOLDS[question, s] else 0.0
                    pull[s] -= each * answer if FITS[question, s] else 0.0
            if known >= 0:
                _gather(pull, slope, gradient[q])
    return total, gradient


@compiled(fastmath={"contract"})
def _answers(theta, lapse, row, start, uniforms, noise, cell):  # type: ignore[no-untyped-def]
    """Fill in answers; the first uniform decides on a lapse, whose answer is the second uniform."""
    response = np.full((start[-1], LANES), np.nan)
    weight, slope, buffers = np.empty(8), np.empty((8, 5)), _buffers()
    for block in range(len(row)):
        for i in range(LANES):
            q, known = row[block, i], -1
            lapses = 0.0 if lapse is None else lapse[q]
            for t in range(start[block], start[block + 1]):
                if cell[t, i] < 0.0:
                    continue
                graph, question = divmod(int(cell[t, i]), N_QUESTIONS)
                if graph != known:
                    known = graph
                    _visits(graph, theta[q], weight, slope, buffers)
                holds, fits = _agreeing(weight, question)
                answer = 100.0 * (holds / fits + theta[q, SIGMA] * noise[t, i])
                if uniforms[t, 0, i] < lapses:
                    answer = WHOLE * uniforms[t, 1, i] - 0.5
                response[t, i] = min(max(answer, 0.0), 100.0)
    return response


def simulate(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, graph, query, first, second, third
):
    """Return the answers to questions, each in one row."""
    noise = ndtri(np.maximum(uniforms[:, 1], SMALLEST))
    cell, shown = np.full(query.shape, -1.0), query >= 0.0
    cell[shown] = question_code(*(c[shown] for c in (graph, query, first, second, third)))
    return _answers(theta, lapse, row, start, uniforms, noise, cell)


def question_code(*question: Any) -> Integers:
    """Return the number of a question: 81 graph + 27 query + 9 (first + 1) + 3 (second + 1) + third
    + 1.

    Raises ValueError if a question does not exist.
    """
    graph, query, *states = (np.nan_to_num(column, nan=-2.0) for column in question)
    wrong = ~(np.isin(states, (-1.0, 0.0, 1.0)).all(axis=0) & np.isin(graph, (0.0, 1.0, 2.0)))
    for k in range(3):
        wrong |= ~np.isin(query, (0.0, 1.0, 2.0)) | ((query == k) & (states[k] != -1.0))
    if wrong.any():
        values = ", ".join(f"{column[wrong][0]:g}" for column in question)
        raise ValueError(
            "A question has a graph (0, 1, 2), a query (0, 1, 2), and first, second, third of -1 "
            f"(not shown), 0 or 1, -1 for the queried one; got {values}. Recode these columns."
        )
    cell = graph * N_QUESTIONS + query * 27 + 9 * states[0] + 3 * states[1] + states[2] + 13
    return np.asarray(cell.astype(np.int64))


class MutationSampler(CausalReasoner):
    """Judges by the states that a short walk through the graph's states visits.

    A Metropolis walk over the eight states begins where nothing or everything is present, with
    equal odds. At each of its N ~ Poisson(lambda) steps it proposes to flip a variable, and accepts
    with the ratio of the probabilities that a leaky noisy-OR gives to the states. The expected
    visits are V = sum over t of P(N >= t) d T^t. The answer is a ratio: the visits to states that
    agree with what is given and hold what is asked, over the visits to all states that agree. This
    is the ratio for pooled walks, not the mean of each walk's ratio. Short walks stay near the
    prototypes and weaken explaining away. As lambda grows the model becomes `noisy_or`; from
    400,000 steps on it is treated as that.
    """

    name = "mutation_sampler"
    summary = "samples states of a noisy-OR by a short random walk from its prototypes"
    source = "Davis and Rehder 2020"
    contains: ClassVar = {"noisy_or": {"lambda": float("inf")}}
    columns = ("response", "graph", "query", "first", "second", "third")
    design = ("graph", "query", "first", "second", "third")
    separate = ()
    order = ("cell",)  # one walk serves all questions about a graph
    given = "response"
    span = (0.0, 100.0)
    n_uniforms = 2
    remembers = False
    censored = True
    parameters = Parameters(
        *(NoisyOr.parameters[name] for name in ("p", "b", "m1", "m2")),
        Parameter(
            "lambda",
            POSITIVE,
            mean=2.0,
            sd=0.7,
            description="mean number of steps of the walk; many make a noisy-OR",
            source="Davis and Rehder 2020",
        ),
        NoisyOr.parameters["sigma"],
    )
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    @classmethod
    def reads(cls, columns: Mapping[str, Array], n_actions: int) -> dict[str, Array]:
        response, given = columns["response"], np.isfinite(columns["response"])
        cell = np.full(len(given), -1.0)
        cell[given] = question_code(*(columns[name][given] for name in cls.design))
        return {"response": response, "cell": cell}

    def predict(self, observation: Observation) -> float:
        """Return the answer to a question before any noise, on a scale from 0 to 1."""
        graph, *question = (np.array([observation[name]]) for name in self.design)
        return float(self.judgements(self.theta[None], graph, np.array(question).T)[0, 0])

    def _law(self, observation: Observation, action: int | None) -> Percentage:
        return Percentage(self.predict(observation), float(self.theta[SIGMA]))

    @classmethod
    def judgements(cls, theta: Array, graph: Array, questions: Array) -> Array:
        n, n_questions = len(theta), len(questions)
        values = np.column_stack([theta[:, :SIGMA], np.zeros(n)])
        sequences = Sequences.group(np.repeat(np.arange(n), n_questions), (), n)
        columns = [np.tile(graph, n), *np.tile(questions, (n, 1)).T]
        packed = (sequences.pack(column) for column in columns)
        uniforms = sequences.pack(np.full((n * n_questions, 2), 0.5))
        none = np.zeros(n)
        answers = cls.simulate(values, none, 0, sequences.row, sequences.start, uniforms, *packed)
        shares: Array = sequences.unpack(answers, n * n_questions).reshape(n, n_questions) / 100.0
        return shares
