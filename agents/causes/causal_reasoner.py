"""Reasoners over causal graphs of three binary variables: their kernels, and what they share.

The kernels of all of them are in this file, since a cached kernel calls kernels of its own file
only. A reasoner turns its parameters into weights of the eight states of a graph, and answers a
question by the share that states in which the queried variable is present have in the weight of
all states that agree with what is told. The places of a kernel are questions with the sufficient
statistics of all answers to them, so that its time does not grow with the number of answers: no
recursion over trials, which is why they are written by hand.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import product
from math import exp, log, pi
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.agents.agent import Integers, merging
from knownminds.agents.compiled import compiled
from knownminds.agents.exponential import log_share_below, mixed_with_lapse
from knownminds.agents.parameters import POSITIVE, UNIT, Array, Parameter
from knownminds.environments.causes.causal_graph import GRAPHS, Graph, conditional, direction_of
from knownminds.environments.environment import Environment, Observation

from .percentages import TINY, WHOLE, PercentJudge

LANES = 32  # as in sequences.py
EDGE = 1e-9  # probabilities are held this far from 0 and 1, where every state is possible
STEEPEST = 300.0  # log odds beyond which a logistic function is as good as 0 or 1
ENDLESS = 4e5  # steps: longer walks count as endless, whose visits are the probabilities
SETTLED = 1e-15  # a walk whose flows are smaller than this has arrived
RARE = 1e-17  # of a walk's number of steps: no longer followed
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)

# What the weights of the states are.
NOISY_OR, LOGISTIC, WALK, MIXTURE = 0, 1, 2, 3

# The parameters that kernels know of, by position: prior of C1, prior of C2, leak, strengths of
# the two edges, that of the fourth model of each rule (steps of a walk, share of association), and
# the noise. A model's `places` say in which column of theta each stands, -1 for none.
N_FULL, EXTRA, SIGMA = 7, 5, 6
N_QUESTIONS = 81  # for each graph

# Which of the 8 states (4 first + 2 second + third) agree with what a question tells, in which of
# them the queried variable is present, and the share of present ones among the variables told of.
_BITS = np.array(list(product((0, 1), repeat=3)))
_TOLD = np.array(list(product((-1, 0, 1), repeat=3)))
FITS = np.tile(((_TOLD[:, None] < 0) | (_TOLD[:, None] == _BITS)).all(axis=2), (3, 1))
HOLDS = FITS & np.repeat(_BITS.T == 1, 27, axis=0)
SHARE = np.tile(
    np.where(
        (_TOLD >= 0).any(axis=1),
        (_TOLD == 1).sum(axis=1) / np.maximum((_TOLD >= 0).sum(axis=1), 1),
        0.5,
    ),
    3,
)


@compiled(fastmath={"contract"})
def _effect(rule, b, m1, m2, c1, c2):  # type: ignore[no-untyped-def]
    """Probabilities that an effect is present and absent; slopes of the former in b, m1, m2."""
    if rule == LOGISTIC:
        x = min(max(b + m1 * c1 + m2 * c2, -STEEPEST), STEEPEST)
        yes, no = 1.0 / (1.0 + exp(-x)), 1.0 / (1.0 + exp(x))
        slope = yes * no
        return yes, no, slope, slope * c1, slope * c2
    fails_1, fails_2 = 1.0 - m1 * c1, 1.0 - m2 * c2
    no = (1.0 - b) * fails_1 * fails_2
    return 1.0 - no, no, fails_1 * fails_2, (1.0 - b) * fails_2 * c1, (1.0 - b) * fails_1 * c2


@compiled(fastmath={"contract"})
def _joint(rule, graph, full, weight, slope):  # type: ignore[no-untyped-def]
    """Fill in the probability of each state, weight[8], with its slopes[8, 6]."""
    p1, p2, b, m1, m2 = full[0], full[1], full[2], full[3], full[4]
    for s in range(8):
        x1, x2, x3 = s >> 2, (s >> 1) & 1, s & 1
        f1, g1 = (p1, 1.0) if x1 else (1.0 - p1, -1.0)
        slope[s, EXTRA] = 0.0
        if graph == 0:  # C1 -> E <- C2
            f2, g2 = (p2, 1.0) if x2 else (1.0 - p2, -1.0)
            yes, no, by_b, by_1, by_2 = _effect(rule, b, m1, m2, x1, x2)
            f3, g3 = (yes, 1.0) if x3 else (no, -1.0)
            slope[s, 1] = f1 * g2 * f3
            slope[s, 2] = f1 * f2 * g3 * by_b
            slope[s, 3] = f1 * f2 * g3 * by_1
            slope[s, 4] = f1 * f2 * g3 * by_2
        else:  # C1 -> C2 -> C3, or C2 <- C1 -> C3
            yes, no, second_b, by_1, _ = _effect(rule, b, m1, m2, x1, 0)
            f2, g2 = (yes, 1.0) if x2 else (no, -1.0)
            yes, no, third_b, _, by_2 = _effect(rule, b, m1, m2, 0, x2 if graph == 1 else x1)
            f3, g3 = (yes, 1.0) if x3 else (no, -1.0)
            slope[s, 1] = 0.0
            slope[s, 2] = f1 * (g2 * second_b * f3 + f2 * g3 * third_b)
            slope[s, 3] = f1 * g2 * by_1 * f3
            slope[s, 4] = f1 * f2 * g3 * by_2
        weight[s] = f1 * f2 * f3
        slope[s, 0] = g1 * f2 * f3


@compiled(fastmath={"contract"})
def _walk(steps, weight, slope, places, rates, now, turn, total, total_turn):  # type: ignore[no-untyped-def]
    """Replace probabilities of states by the expected visits of a walk, and slopes by theirs.

    The walk begins where nothing or everything is present and takes N ~ Poisson(steps) steps: one
    of the three variables is proposed to flip, and accepted with the ratio of probabilities. The
    expected visits are the sum of P(N >= t) times the distribution after t steps, which the
    transition matrix carries forward beside its derivatives; d P(N >= t) / d steps = P(N = t - 1).
    """
    e = 0
    for bit in (4, 2, 1):
        for s in range(8):
            if s & bit:
                continue
            likely, rare = (s, s | bit) if weight[s] >= weight[s | bit] else (s | bit, s)
            places[e, 0], places[e, 1] = likely, rare
            rates[e, 5] = weight[rare] / weight[likely] / 3.0
            for k in range(5):
                rates[e, k] = rates[e, 5] * (
                    slope[rare, k] / weight[rare] - slope[likely, k] / weight[likely]
                )
            e += 1
    for s in range(8):
        now[s] = total[s] = 0.5 if s == 0 or s == 7 else 0.0
        for k in range(5):
            turn[s, k] = total_turn[s, k] = 0.0
        total_turn[s, EXTRA] = 0.0
    log_steps, log_chance, survival = log(steps), -steps, 1.0
    counted, turned, t = 1.0, 0.0, 0
    while True:
        chance = exp(log_chance)  # of t steps exactly
        if t > steps and chance < RARE:
            break
        t += 1
        survival = max(survival - chance, 0.0)
        log_chance += log_steps - log(t)
        # All flows of a step go by the distribution before it.
        largest = 0.0
        for e in range(12):
            likely, rare = places[e, 0], places[e, 1]
            rates[e, 11] = now[likely] * rates[e, 5] - now[rare] / 3.0
            largest = max(largest, abs(rates[e, 11]))
            for k in range(5):
                rates[e, 6 + k] = (
                    turn[likely, k] * rates[e, 5] + now[likely] * rates[e, k] - turn[rare, k] / 3.0
                )
                largest = max(largest, abs(rates[e, 6 + k]))
        if largest < SETTLED:
            # The rest of the visits are spread as these: E N + 1 of them in all.
            survival, chance = 1.0 + steps - counted, 1.0 - turned
            t = -1
        else:
            for e in range(12):
                likely, rare = places[e, 0], places[e, 1]
                now[likely] -= rates[e, 11]
                now[rare] += rates[e, 11]
                for k in range(5):
                    turn[likely, k] -= rates[e, 6 + k]
                    turn[rare, k] += rates[e, 6 + k]
        counted += survival
        turned += chance
        for s in range(8):
            total[s] += survival * now[s]
            total_turn[s, EXTRA] += chance * now[s]
            for k in range(5):
                total_turn[s, k] += survival * turn[s, k]
        if t < 0:
            break
    for s in range(8):
        weight[s] = total[s]
        for k in range(6):
            slope[s, k] = total_turn[s, k]


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
def _weigh(rule, graph, full, weight, slope, places, rates, now, turn, total, total_turn):  # type: ignore[no-untyped-def]
    """Fill in the weights of the states, weight[8], and their slopes[8, 6]."""
    _joint(rule, graph, full, weight, slope)
    if rule == WALK and full[EXTRA] < ENDLESS:  # the slope in the number of steps is 0 beyond
        _walk(full[EXTRA], weight, slope, places, rates, now, turn, total, total_turn)


@compiled(fastmath={"contract"})
def _read(theta, places, rule, full):  # type: ignore[no-untyped-def]
    """Fill in the parameters, full[7], from a row of theta."""
    for j in range(N_FULL):
        value = theta[places[j]] if places[j] >= 0 else 0.0
        if j < 2 or (j < EXTRA and rule != LOGISTIC):
            value = min(max(value, EDGE), 1.0 - EDGE)
        full[j] = value


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _agreeing(weight, asked):  # type: ignore[no-untyped-def]
    """Weight of the states that agree with a question and hold what it asks, and of all that do."""
    holds = fits = 0.0
    for s in range(8):
        fits += weight[s] if FITS[asked, s] else 0.0
        holds += weight[s] if HOLDS[asked, s] else 0.0
    return holds, fits


@compiled(fastmath={"contract"})
def _gather(pull, slope, push):  # type: ignore[no-untyped-def]
    """Carry slopes in the weights of the states, pull[8], on to the parameters."""
    for s in range(8):
        for k in range(6):
            push[k] += pull[s] * slope[s, k]


@compiled(fastmath={"contract"})
def _of_answers(theta, lapse, places, rule, row, start, cell, count, mean, spread, at_0, at_100):  # type: ignore[no-untyped-def]
    """Log-likelihood [N] and gradient of theta [N, P]; a lapse is mixed in for single answers."""
    total, p = np.zeros(len(theta)), theta.shape[1]
    gradient = np.zeros((len(theta), p if lapse is None else p + 1))
    full, push, pull = np.empty(N_FULL), np.empty(N_FULL), np.empty(8)
    weight, slope = np.empty(8), np.empty((8, 6))
    ends, rates = np.empty((12, 2), np.int64), np.empty((12, 12))
    now, turn, visits, visits_turn = np.empty(8), np.empty((8, 5)), np.empty(8), np.empty((8, 6))
    for block in range(len(row)):
        for i in range(LANES):
            q, known = row[block, i], -1
            precise = constant = 0.0
            for t in range(start[block], start[block + 1]):
                if cell[t, i] < 0.0 or count[t, i] + at_0[t, i] + at_100[t, i] == 0.0:
                    continue
                graph, asked = divmod(int(cell[t, i]), N_QUESTIONS)
                if graph != known:
                    if known < 0:
                        _read(theta[q], places, rule, full)
                        precise = 1.0 / full[SIGMA]
                        constant = -HALF_LOG_2_PI - log(100.0 * full[SIGMA])
                        push[:] = 0.0
                    else:
                        _gather(pull, slope, push)
                    pull[:] = 0.0  # slope of the log-likelihood in the weight of each state
                    known = graph
                    _weigh(
                        rule, graph, full, weight, slope,
                        ends, rates, now, turn, visits, visits_turn,
                    )  # fmt: skip
                holds, fits = _agreeing(weight, asked)
                causal = answer = holds / fits
                if rule == MIXTURE:
                    answer += full[EXTRA] * (SHARE[asked] - causal)
                own, by_answer, by_sigma = _score(
                    answer, precise, constant,
                    count[t, i], mean[t, i], spread[t, i], at_0[t, i], at_100[t, i],
                )  # fmt: skip
                if lapse is not None:
                    lapses = (1.0 if count[t, i] > 0.0 else 0.5) / WHOLE
                    own, held, by = mixed_with_lapse(own, lapses, lapse[q])
                    gradient[q, p] += by
                    by_answer *= held
                    by_sigma *= held
                total[q] += own
                push[SIGMA] += by_sigma
                if rule == MIXTURE:
                    push[EXTRA] += by_answer * (SHARE[asked] - causal)
                    by_answer *= 1.0 - full[EXTRA]
                each = by_answer / fits
                for s in range(8):
                    pull[s] += each if HOLDS[asked, s] else 0.0
                    pull[s] -= each * causal if FITS[asked, s] else 0.0
            if known >= 0:
                _gather(pull, slope, push)
                for j in range(N_FULL):
                    if places[j] >= 0:
                        gradient[q, places[j]] += push[j]
    return total, gradient


@compiled(fastmath={"contract"})
def _answers(theta, lapse, places, rule, row, start, uniforms, noise, cell):  # type: ignore[no-untyped-def]
    """Answer; the first uniform decides on a lapse, which gives the second as the answer."""
    response = np.full((start[-1], LANES), np.nan)
    full, weight, slope = np.empty(N_FULL), np.empty(8), np.empty((8, 6))
    ends, rates = np.empty((12, 2), np.int64), np.empty((12, 12))
    now, turn, visits, visits_turn = np.empty(8), np.empty((8, 5)), np.empty(8), np.empty((8, 6))
    for block in range(len(row)):
        for i in range(LANES):
            q, known = row[block, i], -1
            lapses = 0.0 if lapse is None else lapse[q]
            _read(theta[q], places, rule, full)
            for t in range(start[block], start[block + 1]):
                if cell[t, i] < 0.0:
                    continue
                graph, asked = divmod(int(cell[t, i]), N_QUESTIONS)
                if graph != known:
                    known = graph
                    _weigh(
                        rule, graph, full, weight, slope,
                        ends, rates, now, turn, visits, visits_turn,
                    )  # fmt: skip
                holds, fits = _agreeing(weight, asked)
                answer = holds / fits
                if rule == MIXTURE:
                    answer += full[EXTRA] * (SHARE[asked] - answer)
                answer = 100.0 * (answer + full[SIGMA] * noise[t, i])
                if uniforms[t, 0, i] < lapses:
                    answer = WHOLE * uniforms[t, 1, i] - 0.5
                response[t, i] = min(max(answer, 0.0), 100.0)
    return response


def likelihood(places: tuple[int, ...], rule: int) -> Any:
    """Make the kernel of a model whose parameters stand in theta at `places`."""

    @compiled(fastmath={"contract"})
    def log_likelihood(  # type: ignore[no-untyped-def]
        theta, lapse, n_actions, row, start, cell, count, mean, spread, at_0, at_100
    ):
        return _of_answers(
            theta, lapse, places, rule, row, start, cell, count, mean, spread, at_0, at_100
        )

    return log_likelihood


def simulation(places: tuple[int, ...], rule: int, pooled: bool = False) -> Any:
    """Make the simulating function of a model; see `likelihood`."""

    def simulate(  # type: ignore[no-untyped-def]
        theta, lapse, n_actions, row, start, uniforms, graph, query, first, second, third
    ):
        noise = ndtri(np.maximum(uniforms[:, 1], TINY))
        told = query >= 0.0
        parts = (np.where(told, c, 0.0) for c in (graph, query, first, second, third))
        cell = np.where(told, question_code(*parts, pooled=pooled), -1.0)
        return _answers(theta, lapse, places, rule, row, start, uniforms, noise, cell)

    return simulate


def question_code(
    graph: Any, query: Any, first: Any, second: Any, third: Any, *, pooled: bool = False
) -> NDArray[np.int64]:
    """Number the questions: 81 graph + 27 query + 9 (first + 1) + 3 (second + 1) + third + 1.

    With `pooled` a question about C2 (or about the effect of C1 alone) has the number of its mirror
    image, about C1 (or of C2 alone).
    """
    whole = (np.asarray(c).astype(np.int64) for c in (graph, query, first, second, third))
    g, q, x1, x2, x3 = np.broadcast_arrays(*whole)
    if pooled:
        turn = direction_of(q, x1, x2, x3, g) == 1
        q = np.where(turn & (q < 2), 1 - q, q)
        x1, x2 = np.where(turn, x2, x1), np.where(turn, x1, x2)
    return np.asarray(g * N_QUESTIONS + q * 27 + (x1 + 1) * 9 + (x2 + 1) * 3 + x3 + 1)


def merge(
    subject: Integers,
    columns: tuple[Array, ...],
    *,
    pooled: bool = False,
    censored: bool = True,
) -> tuple[Integers, tuple[Array, ...]]:
    """Merge the answers of a subject to the same question.

    Returns the subject of each place, and per place: the question's number, how many answers lie
    between the ends, their mean and their sum of squared deviations from it (on a scale from 0 to
    1), how many are 0 and how many are 100. Where answers are not `censored`, those at the ends
    count as any other.
    """
    response, graph, query, first, second, third = columns
    given = np.isfinite(response)
    told = np.stack([first, second, third])
    at = np.nan_to_num(query, nan=-1.0).astype(np.int64)
    wrong = given & ~(
        np.isin(told, (-1.0, 0.0, 1.0)).all(axis=0)
        & np.isin(query, (0.0, 1.0, 2.0))
        & np.isin(graph, (0.0, 1.0, 2.0))
        & (told[np.clip(at, 0, 2), np.arange(len(at))] == -1.0)
    )
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        values = ", ".join(f"{c[k]:g}" for c in (graph, query, first, second, third))
        raise ValueError(
            "A question has a graph (0, 1, 2), a query (0, 1, 2), and first, second, third of -1 "
            f"(not told), 0 or 1, -1 for the queried one; got {values}. Recode these columns."
        )
    parts = (np.where(given, c, 0.0) for c in (graph, query, first, second, third))
    cell = question_code(*parts, pooled=pooled)
    place, where = np.unique(subject * (3 * N_QUESTIONS) + cell, return_inverse=True)
    y = np.where(given, response, 0.0) / 100.0
    low, high = given & (y <= 0.0) & censored, given & (y >= 1.0) & censored
    inside = given & ~low & ~high

    def added(values: NDArray[Any]) -> Array:
        return np.bincount(where, values, minlength=len(place)).astype(float)

    count = added(inside)
    mean = added(np.where(inside, y, 0.0)) / np.maximum(count, 1.0)
    spread = added(np.where(inside, (y - mean[where]) ** 2, 0.0))
    subjects, cells = np.divmod(place, 3 * N_QUESTIONS)
    return subjects, (cells.astype(float), count, mean, spread, added(low), added(high))


def prior(name: str, description: str) -> Parameter:
    """Declare a probability of a graph, with the prior that all of them have."""
    return Parameter(name, UNIT, mean=0.0, sd=1.5, description=description)


NOISE = Parameter(
    "sigma",
    POSITIVE,
    mean=-2.2,
    sd=0.6,
    description="standard deviation of answers on a scale from 0 to 1",
)


class CausalReasoner(PercentJudge):
    """An agent with a causal graph, which answers questions on a scale from 0 to 100.

    An answer is 100 times (prediction + sigma N(0, 1)), cut off at 0 and 100.

    Attributes
    ----------
    graphs
        The graphs that the model can reason about.
    """

    columns = ("response", "graph", "query", "first", "second", "third")
    design = ("graph", "query", "first", "second", "third")
    graphs: ClassVar[Sequence[Graph]] = GRAPHS
    prepare = staticmethod(merging(merge))

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError also where the graph is none that the model knows."""
        super().check_plays(environment)
        graph = environment.settings.get("graph", "collider")
        if graph not in cls.graphs:
            raise ValueError(
                f"{cls.name} reasons about a {' or a '.join(cls.graphs)}; {environment.name} has a "
                f"{graph} here. Choose another model, such as noisy_or."
            )

    @abstractmethod
    def weigh(self, graph: Graph) -> Array:
        """Return the weights of the eight states of a graph, [8], as `causal_graph.STATES`."""

    def answer(self, graph: Graph, query: int, told: tuple[int, int, int]) -> float:
        """Return the weight of the states in which the queried variable is present, as a share."""
        if graph not in self._weights:
            self._weights[graph] = self.weigh(graph)
        return float(conditional(self._weights[graph], query, *told)[0])

    def predict(self, observation: Observation) -> float:
        """Return the answer to a question before any noise, on a scale from 0 to 1."""
        place, query, *rest = (int(observation[name]) for name in self.design)
        question = (place, query, rest[0], rest[1], rest[2])
        if question not in self._known:
            told = (rest[0], rest[1], rest[2])
            self._known[question] = self.answer(GRAPHS[place], query, told)
        return self._known[question]

    def reset(self) -> None:
        """Forget nothing but what need not be computed again."""
        self._weights: dict[Graph, Array] = {}
        self._known: dict[tuple[int, ...], float] = {}


def held(value: float) -> float:
    """Return a probability held away from 0 and 1."""
    return min(max(value, EDGE), 1.0 - EDGE)
