"""What deciders share: a belief about a state, words for it, and a choice that follows from it.

A session asks for numbers (what is the probability of the state?) and for decisions (Yes, Defer,
No). All deciders are one kernel (`belief_kernels`), in which each has some of ten parameters.
"""

from __future__ import annotations

from math import exp, floor, log, log1p, sqrt
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_ndtr, logit, ndtri

from knownminds.agents.agent import Agent, Integers, Prepared
from knownminds.agents.parameters import IDENTITY, POSITIVE, Array, Parameter
from knownminds.environments.environment import Choice, Observation

from .belief_kernels import (
    ABSENT,
    BELIEF,
    CONDITIONAL,
    DEALT,
    DECISION,
    DIAL,
    HALF_LOG_2_PI,
    HIGH,
    LINEAR,
    LOG_WIDTH,
    LOW,
    MISREPORTS,
    N_CELLS,
    NARROWEST,
    NOTHING_LEFT,
    PART,
    PLAIN,
    RATIONAL,
    S_BETWEEN,
    S_REPORT,
    TINY,
    C,
    D,
    decided,
    given,
    likelihood,
    log_odds,
    meant,
    share_of,
    simulation,
)  # fmt: skip
from .belief_places import end_of, places_of

# The parameters of the kernel by position; the last, a dial, has another name in each model.
NAMES = (
    "u_yes_1", "u_yes_0", "u_defer_1", "u_defer_0", "gamma", "c", "d", "s_between", "s_report",
)  # fmt: skip
EXACT = ("posterior", "marginal", "conditional")

UTILITIES = tuple(
    Parameter(
        f"u_{name}_{state}",
        IDENTITY,
        mean=0.0,
        sd=3.0,
        description=f"utility of {name.capitalize()} where the state is {told}, over that of No, "
        "in units of choice noise",
        source="McFadden 1974",
    )
    for name in ("yes", "defer")
    for state, told in ((1, "present"), (0, "absent"))
)

BELIEFS = (
    Parameter(
        "c", IDENTITY, mean=0.0, sd=0.5, description="log odds that are added to every belief"
    ),
    Parameter(
        "d",
        POSITIVE,
        mean=0.0,
        sd=0.3,
        description="slope of believed on true log odds; below 1: beliefs are too moderate",
    ),
    Parameter(
        "s_between",
        POSITIVE,
        mean=-1.5,
        sd=0.7,
        description="standard deviation over contexts of how their log odds are misread",
    ),
    Parameter(
        "s_report",
        POSITIVE,
        mean=-2.0,
        sd=0.7,
        description="standard deviation of stated around believed log odds",
    ),
)


class Decider(Agent):
    """An agent with a belief about a state, which states it and decides by it.

    Its belief is p_S with log odds c + d logit p* + s_between z, where p* is the exact probability
    and z a standard normal number of the context, the same wherever the context comes up. What it
    states is p_S + s_report N(0, 1) in log odds, rounded to .01. It decides by p_S itself, not by
    what it stated.

    Its beliefs agree with each other: p_S(state | part) follows from p_S and the true
    P(part | state) by Bayes' rule, as does p_S(part): from the columns "marginal", P(state), and
    "conditional", P(state | part).

    The likelihood knows nothing of z. A stated belief has the probability of its cell of width .01
    (half of that at 0 and 1), given those stated before in the same context, divided by the
    width: a density per unit that integrates to one. Earlier statements tell z: after each it is
    taken as normal, with the mean and the variance that it has given the cell (moment matching,
    Opper 1998), which is exact but for shape. With lapses these are of a mixture, in which the
    statement counts by the probability that it was none (Minka 2001). A question about a part is
    answered with z at its mean.

    A distribution over the parts is dealt out in hundredths, one state after the other: each gets
    its believed share of what is left, with noise s_report in log odds (or, in a lapse, any), and
    the last gets all that is left. So it sums to 1 however noisy it is, and where a single number
    is rounded by .005 at most, that of a later state is by a little more.

    A decision has its probability given the belief stated to the plain question of the same
    context and repetition, which stands for p_S. Without one it adds nothing. It follows that
    s_report > 0 makes utilities come out too small: the error of a regressor.

    Attributes
    ----------
    weighting, violation
        How probabilities are weighted, and which rule of a rational decider is broken.
    positions
        In which column of theta each of the ten parameters of the kernel stands; -1 if in none.
        Kernel and simulation follow from these three.
    """

    columns = (
        "action", "response", "repetition", "question", "elicitation", "part", "posterior",
        "marginal", "conditional", "state",
    )  # fmt: skip
    design = (
        "question", "elicitation", "part", "posterior", "marginal", "conditional", "idiosyncrasy",
        "state",
    )  # fmt: skip
    separate = ("context",)
    given = "either"
    n_uniforms = 2
    n_actions = 3
    remembers = False
    weighting: ClassVar[int] = LINEAR
    violation: ClassVar[int] = RATIONAL
    positions: ClassVar[tuple[int, ...]]

    @classmethod
    def prepare(
        cls, subject: Integers, sequence: Integers, columns: tuple[Array, ...], lapse: bool
    ) -> Prepared:
        """Count decisions that are alike, and work out what hangs on the trials alone."""
        return places_of(subject, sequence, columns, cls.violation)

    def __init_subclass__(cls, **options: Any) -> None:
        """Find the parameters by their names, and make kernel and simulation for them."""
        super().__init_subclass__(**options)
        names = cls.parameters.names
        own = [names.index(name) if name in names else -1 for name in NAMES]
        dial = next((k for k, name in enumerate(names) if name not in NAMES), -1)
        cls.positions = (*own, dial)
        model = (cls.positions, cls.weighting, cls.violation)
        cls.log_likelihood = staticmethod(likelihood(*model))
        cls.simulate = staticmethod(simulation(*model))

    def reset(self) -> None:
        """Forget what was stated."""
        own = zip(self.positions, ABSENT, strict=True)
        self._full = np.array([self.theta[k] if k >= 0 else absent for k, absent in own])
        self._stated: dict[tuple[float, float], float] = {}
        self._told: dict[float, tuple[float, float]] = {}  # mean and variance of s_between z
        # By context, repetition and part: what was dealt out, in hundredths, and what it could be.
        self._dealt: dict[tuple[float, float, int], tuple[int, float, float]] = {}

    def believed(self, observation: Observation) -> float:
        """Return the log odds of the state as believed before any part is told."""
        z = float(observation["idiosyncrasy"])
        return self._unread(observation) + float(self._full[S_BETWEEN]) * z

    def action_probabilities(self, observation: Observation) -> Array:
        """Return the probabilities of Yes, Defer and No, given the belief."""
        return self._choices(share_of(self.believed(observation)), observation)

    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        """Decide, or state a probability, with two uniform numbers."""
        first, second = rng.random(2).tolist()
        if observation["question"] == DECISION:
            shares = self.probabilities(observation)
            return int(np.searchsorted(np.cumsum(shares[:2]), first, side="right"))
        left, certain = 100, False
        if observation["question"] == DEALT:
            left, certain = self._left(observation)
        told = self._meant(observation, self.believed(observation))
        answer = share_of(told + float(self._full[S_REPORT] * ndtri(max(second, TINY))))
        if first < self.lapse:
            answer = second
        cell = left if certain else floor(left * answer + 0.5)
        if observation["question"] == DEALT:
            self._deal(observation, cell)
        return cell / 100.0

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Note what was stated, which changes nothing of what is done."""
        response, asked = observation.get("response"), observation["question"]
        if response is not None and response >= 0.0 and asked == DEALT:
            self._deal(observation, floor(100.0 * response + 0.5))
        if response is None or not response >= 0.0 or asked not in (BELIEF, CONDITIONAL):
            return
        context = float(observation["context"])
        if asked == BELIEF and observation["elicitation"] == PLAIN:
            self._stated[context, float(observation["repetition"])] = float(response)
        off, left = self._misread(context)
        mean, sd = self._meant(observation, self._unread(observation)) + off, self._sd(left)
        cell = _cell(response)
        a, b = (LOW[cell] - mean) / sd, (HIGH[cell] - mean) / sd
        density = self.log_density(observation, float(response))
        # With the probability that the number was no lapse it tells of the context.
        own = 1.0
        if self.lapse:
            held = (1.0 - self.lapse) * exp(density)
            own = held / (held + self.lapse)
        share = density + LOG_WIDTH[cell]
        at_a, at_b = (exp(-0.5 * x * x - HALF_LOG_2_PI - share) for x in (a, b))
        g = at_a - at_b
        shift, shrink = left / sd * g, (left / sd) ** 2 * (a * at_a - b * at_b - g * g)
        spread = own * (shrink + (1.0 - own) * shift * shift)
        self._told[context] = off + own * shift, max(left + spread, 0.0)

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of a stated probability, given those stated before."""
        cell, (off, left) = _cell(response), self._misread(float(observation["context"]))
        low, high = LOW[cell], HIGH[cell]
        if observation["question"] == DEALT:
            whole, certain = self._left(observation)
            if certain:
                return 0.0
            ends = np.array([min(cell, whole) - 0.5, min(cell, whole) + 0.5])
            low, high = end_of(ends, np.array(whole))
            cell = 0 if cell == 0 or cell >= whole else 1
        mean = self._meant(observation, self._unread(observation) + off)
        if observation["question"] in (PART, DEALT):
            left = 0.0
        sd = self._sd(left)
        a, b = (low - mean) / sd, (high - mean) / sd
        if a + b > 0.0:
            a, b = -b, -a
        lower, upper = float(log_ndtr(a)), float(log_ndtr(b))
        return float(upper + log1p(-exp(lower - upper)) - LOG_WIDTH[cell])

    def log_probability(
        self,
        observation: Observation,
        action: int | None,
        response: float | None,
        response_range: tuple[float, float] = (0.0, 1.0),
    ) -> float:
        """Return the log probability of an answer given what was stated before, lapses included."""
        if observation["question"] != DECISION:
            if response is None or not response >= 0.0:
                return 0.0
            if observation["question"] == DEALT:
                whole, certain = self._left(observation)
                if certain:
                    return 0.0
                response_range = (0.0, whole / 100.0)
            return super().log_probability(observation, None, response, response_range)
        key = (float(observation["context"]), float(observation["repetition"]))
        if action is None or action < 0 or key not in self._stated:
            return 0.0
        p = self._stated[key]
        if self.violation == MISREPORTS and 0.0 < p < 1.0:
            p = float(expit(logit(p) - self._full[DIAL]))
        share = self._choices(p, observation)[action]
        return log(max((1.0 - self.lapse) * float(share) + self.lapse / 3.0, TINY))

    def _misread(self, context: float) -> tuple[float, float]:
        """Return mean and variance of how a context is misread, as statements tell."""
        return self._told.get(context, (0.0, self._full[S_BETWEEN] ** 2))

    def _before(self, observation: Observation) -> tuple[float, float, float]:
        """Return the hundredths left before a state of a distribution, and what they can be.

        The hundredths are NaN where it is not known which states came before.
        """
        key = float(observation["context"]), float(observation["repetition"])
        numbers = range(int(observation["part"]))
        unknown = (float("nan"),) * 3
        before = [self._dealt.get((*key, part), unknown) for part in numbers]
        told, present, absent = (sum(each[k] for each in before) for k in range(3))
        return 100.0 - told, 1.0 - present, 1.0 - absent

    def _left(self, observation: Observation) -> tuple[int, bool]:
        """Return the hundredths left, and whether nothing is to be learnt of the next number."""
        told, present, absent = self._before(observation)
        own = given(*_exact(observation))
        certain = max(present - own[0], absent - own[1]) <= NOTHING_LEFT
        known = told == told and told > 0.0
        return (int(told) if known else 0), bool(certain or not known)

    def _deal(self, observation: Observation, hundredths: int) -> None:
        """Note what a state of a distribution got."""
        key = float(observation["context"]), float(observation["repetition"])
        present, absent = given(*_exact(observation))
        part = int(observation["part"])
        self._dealt[(*key, part)] = hundredths, float(present), float(absent)

    def _sd(self, left: float) -> float:
        return max(sqrt(left + float(self._full[S_REPORT]) ** 2), NARROWEST)

    def _unread(self, observation: Observation) -> float:
        """Return the believed log odds of the state where the context is not misread."""
        return float(self._full[C] + self._full[D] * log_odds(float(observation["marginal"])))

    def _meant(self, observation: Observation, believed: float) -> float:
        """Return the log odds that are stated without noise, given those of the state."""
        left = self._before(observation)[1:] if observation["question"] == DEALT else (1.0, 1.0)
        how = float(observation["question"]), float(observation["elicitation"])
        return float(meant(self._full, self.violation, *how, believed, _exact(observation), left))

    def _choices(self, p: float, observation: Observation) -> Array:
        state = float(observation.get("state", 0.5))
        return np.array(decided(self._full, self.weighting, self.violation, p, state))


def _exact(observation: Observation) -> tuple[float, float, float]:
    posterior, marginal, conditional = (float(observation[name]) for name in EXACT)
    return posterior, marginal, conditional


def _cell(response: float) -> int:
    return min(max(floor(100.0 * response + 0.5), 0), N_CELLS - 1)
