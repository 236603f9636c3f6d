"""The base of deciders: a belief about a state, words for it, and a choice that follows from it.

A session asks for numbers (what is the probability of the state?) and for decisions (Yes, Defer,
No). `Decider.draw` defines what a decider does. `respond` and `update`, which are compiled, define
how likely an answer is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_ndtr, ndtri

from knownminds.agents.compiled import read_only
from knownminds.agents.compiler.definition import HALF_LOG_2_PI, SMALLEST, Law, positive, real
from knownminds.agents.model import Integers, Model, Prepared
from knownminds.agents.parameters import Array
from knownminds.agents.sequences import Sequences
from knownminds.environments.turn import Choice, Observation

from .belief_places import (
    BELIEF,
    CONDITIONAL,
    DEALT,
    DECISION,
    DEFER,
    EDGE,
    FAR,
    NOTHING_LEFT,
    PART,
    YES,
    given,
    log_odds,
    places_of,
)

NARROWEST = 1e-9  # least standard deviation on the scale of log odds
LEAST = 1e-140  # a probability counts as at least this much
WIDTH, WIDTH_AT_END = 0.01, 0.005  # of the cells of stated numbers


@dataclass(frozen=True)
class CountedAnswer(Law):
    """An answer given by its log probability, which counts as often as the answer was given."""

    log_probability: Any
    span: ClassVar[None] = None

    def log_density(self, y: Any) -> Any:
        return y * self.log_probability

    def at(self, normal: Any) -> Any:
        return normal


def _utility(action: str, state: str) -> Any:
    return real(
        f"utility of {action} where the state is {state}, over that of No, in units of choice "
        "noise",
        sd=3.0,
        source="McFadden 1974",
    )


class Decider(Model):
    """An agent with a belief about a state, which states it and decides by it.

    The belief p_S has the log odds c + d logit p* + s_between z. Here p* is the exact probability,
    and z is a standard normal number of the context. The agent states p_S + s_report N(0, 1) in log
    odds, rounded to .01, and decides by p_S. Beliefs about a part, and given a part, follow from
    p_S by Bayes' rule and the true P(part | state). A distribution over parts is dealt out in
    hundredths, part by part; each part gets its share of what is left.

    The likelihood of a stated belief is the density of its cell, given the earlier statements in
    the context. After each statement, z is treated as normal with its new mean and variance (Opper
    1998; with lapses, the mean and variance of a mixture, Minka 2001). In a question about a part,
    z is at its mean. A decision has its probability given the belief stated plainly in the same
    context and repetition; without one it adds nothing. So estimates of utilities are too small if
    s_report > 0.

    Attributes
    ----------
    dial : By how much the agent breaks a rule of a rational decider.
    decides_by_state : Whether decisions depend on the state.
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
    kinds = ("kind", (BELIEF, DECISION, PART))
    given = "either"
    span = None
    n_uniforms = 2
    n_actions = 3
    remembers = False
    dial: Any = 0.0
    lapse: Any = None
    mixes_lapses = True
    decides_by_state: ClassVar[bool] = False

    u_yes_1 = _utility("Yes", "present")
    u_yes_0 = _utility("Yes", "absent")
    u_defer_1 = _utility("Defer", "present")
    u_defer_0 = _utility("Defer", "absent")
    c = real("log odds that are added to every belief", sd=0.5)
    d = positive("slope of believed on true log odds; below 1: beliefs are too moderate", sd=0.3)
    s_between = positive(
        "standard deviation over contexts of how their log odds are misread", mean=-1.5, sd=0.7
    )
    s_report: Any = positive(
        "standard deviation of stated around believed log odds", mean=-2.0, sd=0.7
    )

    # Kinds of deciders differ in the following methods.

    @classmethod
    def moves(cls, question: Any, elicitation: Any) -> Any:
        """Return how far the dial moves a stated belief about the state, in log odds."""
        return 0.0 * question

    def acted_on(self, stated: Any) -> Any:
        """Return the belief of a decider that states this one."""
        return stated

    def weigh(self, p: Any, state: Any) -> Any:
        """Return the weight of the state's presence in a decision under the belief p."""
        return p

    def bend(self, p: Any) -> Any:
        """Return the value of deferring besides its expected utility."""
        return 0.0

    # The following methods define what a decider does.

    def values(self, p: Any, state: Any) -> tuple[Any, Any]:
        """Return the values of Yes and Defer less that of No, under the belief p."""
        w = self.weigh(p, state)
        yes = self.u_yes_0 + (self.u_yes_1 - self.u_yes_0) * w
        defer = self.u_defer_0 + (self.u_defer_1 - self.u_defer_0) * w
        return yes, defer + self.bend(p)

    def shares(self, p: Any, state: Any) -> list[Any]:
        """Return the probabilities of Yes, Defer and No."""
        values = (*self.values(p, state), 0.0)
        top = np.maximum(np.maximum(values[0], values[1]), 0.0)
        weights = [np.exp(value - top) for value in values]
        return [weight / sum(weights) for weight in weights]

    def believed(self, trial: Any) -> Any:
        """Return the log odds of the state, as believed before any part is shown."""
        return self.c + self.d * log_odds(trial.marginal) + self.s_between * trial.idiosyncrasy

    def meant(self, trial: Any, believed: Any, present: Any, absent: Any) -> Any:
        """Return the log odds that are stated without noise, given those of the state.

        For a distribution, `present` and `absent` are the probabilities of the states that are not
        yet dealt out, given the state and given its absence.
        """
        question = trial.question
        more = log_odds(trial.posterior) - log_odds(trial.marginal)
        log_odds_meant = believed + self.dial * self.moves(question, trial.elicitation)
        of_present, of_absent = given(trial.posterior, trial.marginal, trial.conditional)
        left_present, left_absent = np.maximum(present, EDGE), np.maximum(absent, EDGE)
        by_state = expit(believed + np.log(left_present / left_absent))
        of_absent = np.minimum(of_absent / left_absent, 1.0)
        part = of_absent + by_state * (np.minimum(of_present / left_present, 1.0) - of_absent)
        log_odds_meant = log_odds_meant + np.where(question == CONDITIONAL, more, 0.0)
        return np.where((question == PART) | (question == DEALT), log_odds(part), log_odds_meant)

    def draw(self, trial: Any, first: Any, second: Any, lapse: Any, left: Any) -> tuple[Any, Any]:
        """Return action and response at two uniform numbers; -1 and NaN where there is none.

        `left` has the hundredths that are left of a distribution, and the probabilities of its
        remaining states; see `meant`. The first number chooses an action, or decides on a lapse of
        an answer.
        """
        hundredths, present, absent = left
        believed, acts = self.believed(trial), trial.question == DECISION
        yes, defer, _ = self.shares(expit(believed), trial.state)
        yes, defer = (1.0 - lapse) * yes + lapse / 3.0, (1.0 - lapse) * defer + lapse / 3.0
        action = np.where(first < yes, 0, np.where(first < yes + defer, 1, 2))
        noise = self.s_report * ndtri(np.maximum(second, SMALLEST))
        answer = expit(self.meant(trial, believed, present, absent) + noise)
        answer = np.where(first < lapse, second, answer)
        dealt, whole = trial.question == DEALT, np.where(trial.question == DEALT, hundredths, 100.0)
        parts = given(trial.posterior, trial.marginal, trial.conditional)
        ends = dealt & (np.maximum(present - parts[0], absent - parts[1]) <= NOTHING_LEFT)
        stated = np.where(ends, whole, np.floor(whole * answer + 0.5))
        return np.where(acts, action, -1), np.where(acts, np.nan, stated / 100.0)

    @classmethod
    def simulate(
        cls,
        theta: Array,
        lapse: Array | None,
        n_actions: int,
        row: Integers,
        start: Integers,
        uniforms: Array,
        *design: Array,
    ) -> tuple[Array, Array]:
        """Return actions and responses; see `Decider.draw`."""
        lane = np.repeat(row, np.diff(start), axis=0)
        tables = dict(zip(cls.design, design, strict=True))
        question = tables["question"]
        action, response = np.full(question.shape, -1.0), np.full(question.shape, np.nan)
        full = np.full((3, question.shape[1]), [[100.0], [1.0], [1.0]])
        left = full.copy()
        dealt = bool((question == DEALT).any())  # then each state depends on those before it
        for t in range(len(question)) if dealt else [slice(None)]:
            values = dict(zip(cls.parameters.names, theta.T[:, lane[t]], strict=True))
            agent = object.__new__(cls)
            agent.__dict__.update(values)
            trial = SimpleNamespace(**{name: table[t] for name, table in tables.items()})
            left = (
                np.where((trial.question == DEALT) & (trial.part > 0), left, full)
                if dealt
                else full
            )
            rate = 0.0 if lapse is None else lapse[lane[t]]
            first, second = np.moveaxis(uniforms[t], -2, 0)
            with np.errstate(invalid="ignore"):
                answers = agent.draw(
                    trial, first, second, rate, left if dealt else (100.0, 1.0, 1.0)
                )
            action[t], response[t] = (
                np.where(trial.question >= 0.0, x, gone)
                for x, gone in zip(answers, (-1.0, np.nan), strict=True)
            )
            if dealt:
                parts = given(trial.posterior, trial.marginal, trial.conditional)
                taken = np.stack([np.round(100.0 * np.nan_to_num(response[t])), *parts])
                left = np.where(trial.question == DEALT, left - taken, left)
        return action, response

    # The following methods define how likely an answer is.

    @classmethod
    def prepare(
        cls, subject: Integers, sequence: Integers, columns: Mapping[str, Array], lapse: bool
    ) -> Prepared:
        """Count equal decisions, and compute everything that depends on the trials alone."""
        return places_of(subject, sequence, columns, cls.moves, cls.decides_by_state)

    def begin(self) -> None:
        self.off, self.left = 0.0, self.s_between**2

    def cell(self, trial: Any) -> tuple[Any, ...]:
        """Return the log probability of the stated cell, and what it tells of the mean.

        That is the mean of the standard normal number that fell into the cell; what is added to its
        variance of 1; and the standard deviation of what is stated.
        """
        mean, variance = self.c + self.d * trial.odds, self.s_report**2
        if trial.kind == PART:
            by_state = expit(mean + self.off + trial.plus)
            part = trial.moved + by_state * (trial.more - trial.moved)
            part = np.clip(part, EDGE, 1.0 - EDGE)
            mean = np.log(part / (1.0 - part))
        else:
            mean = mean + self.off + trial.more + self.dial * trial.moved
            variance = variance + self.left
        sd = np.sqrt(np.maximum(variance, NARROWEST**2))
        a, b = (trial.low - mean) / sd, (trial.high - mean) / sd
        # Cells are mirrored to the lower side, where the tail has full precision.
        upper = a + b > 0.0
        low, high = log_ndtr(np.where(upper, -b, a)), log_ndtr(np.where(upper, -a, b))
        log_share = high + np.log(np.maximum(1.0 - np.exp(low - high), LEAST))
        at_a, at_b = (np.exp(-0.5 * x * x - HALF_LOG_2_PI - log_share) for x in (a, b))
        shift = at_a - at_b
        shrink = np.clip(a * at_a - b * at_b - shift * shift, -1.0, 0.0)
        return log_share, shift, shrink, sd

    def weight_of_cell(self, trial: Any, share: Any) -> tuple[Any, Any]:
        """Return the probability of a cell, lapses included, and its share without lapses."""
        width = np.where(self.at_an_end(trial), WIDTH_AT_END, WIDTH) * trial.per
        no_lapse = (1.0 - self.lapse) * share
        mixed = np.maximum(no_lapse + self.lapse * width, LEAST)
        return mixed, no_lapse / mixed

    @staticmethod
    def at_an_end(trial: Any) -> Any:
        """Say whether the cell is one of the two outermost."""
        return (trial.low <= -FAR) | (trial.high >= FAR)

    def respond(self, trial: Any) -> Any:
        if trial.kind == DECISION:
            return CountedAnswer(self.log_choice(trial))
        log_share = self.cell(trial)[0]
        if self.lapse is not None:
            log_share = np.log(self.weight_of_cell(trial, np.exp(log_share))[0])
        log_width = np.where(self.at_an_end(trial), log(WIDTH_AT_END), log(WIDTH))
        return CountedAnswer(log_share - log_width)

    def log_choice(self, trial: Any) -> Any:
        """Return the log probability of a decision, given the number stated."""
        yes, defer = self.values(self.acted_on(trial.stated), trial.state)
        top = np.maximum(np.maximum(yes, defer), 0.0)
        total = np.exp(yes - top) + np.exp(defer - top) + np.exp(-top)
        log_share = np.where(trial.chosen == YES, yes, np.where(trial.chosen == DEFER, defer, 0.0))
        log_share = log_share - top - np.log(total)
        if self.lapse is None:
            return log_share
        return np.log(np.maximum((1.0 - self.lapse) * np.exp(log_share) + self.lapse / 3.0, LEAST))

    def update(self, trial: Any) -> None:
        if trial.kind != BELIEF:
            return
        log_share, mean, shrink, sd = self.cell(trial)
        shift, spread = self.left / sd * mean, (self.left / sd) ** 2 * shrink
        if self.lapse is not None:
            weight = self.weight_of_cell(trial, np.exp(log_share))[1]
            spread = weight * (spread + (1.0 - weight) * shift * shift)
            shift = weight * shift
        self.off = self.off + shift
        self.left = np.maximum(self.left + spread, 0.0)

    # The following methods handle one subject, trial by trial.

    def reset(self) -> None:
        self._rows: dict[float, list[dict[str, float]]] = {}  # rows of trials, by context
        # These are the shares that states of distributions got, by context, repetition and part.
        self._dealt: dict[tuple[float, float, float], Array] = {}

    def _fresh_agent(self) -> Any:
        agent = object.__new__(type(self))
        agent.__dict__.update(zip(self.parameters.names, self.theta.tolist(), strict=True))
        return agent

    def action_probabilities(self, observation: Observation) -> Array:
        agent, trial = self._fresh_agent(), SimpleNamespace(**observation)
        return np.array(agent.shares(expit(agent.believed(trial)), trial.state))

    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        first, second = rng.random(2).tolist()
        trial = SimpleNamespace(**observation)
        left = np.array([100.0, 1.0, 1.0])
        context, repetition, part = _place(observation)
        for before in range(int(part)) if trial.question == DEALT else ():
            left -= self._dealt.get((context, repetition, float(before)), np.nan)
        left = np.nan_to_num(left)  # zero if an earlier number is missing
        action, response = self._fresh_agent().draw(trial, first, second, self.lapse, left)
        if trial.question == DECISION:
            return int(action)
        self._deal(observation, float(response))
        return float(response)

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        response = observation.get("response")
        rows = self._rows.setdefault(float(observation["context"]), [])
        rows.append(self._row(observation, action, response))
        if response is not None and response >= 0.0:
            self._deal(observation, float(response))

    def _deal(self, observation: Observation, response: float) -> None:
        """Note the share that a state of a distribution got, and its possible share."""
        if observation["question"] == DEALT:
            parts = given(*(observation[name] for name in ("posterior", "marginal", "conditional")))
            self._dealt[_place(observation)] = np.array([round(100.0 * response), *parts])

    def _row(self, observation: Any, action: int | None, response: Any) -> dict[str, float]:
        """Return the columns of a trial, as fits read them."""
        missing = response is None or not response >= 0.0
        known = {
            "action": -1.0 if action is None else float(action),
            "response": -np.inf if missing else float(response),
        }
        shown = {n: float(observation.get(n, 0.5)) for n in self.columns if n not in known}
        return known | shown

    def _log_likelihood(self, rows: list[dict[str, float]]) -> float:
        """Return the log-likelihood of the trials of a context."""
        zeros = np.zeros(len(rows), dtype=np.int64)
        columns = {name: np.array([row[name] for row in rows]) for name in self.columns}
        subject, run, places = self.prepare(zeros, zeros, columns, bool(self.lapse))
        sequences = Sequences.group(subject, (run,), 1)
        packed = [read_only(sequences.pack(x)) for x in self.reads(places, 3).values()]
        lapse = read_only([self.lapse]) if self.lapse else None
        blocks = (read_only(x, np.int64) for x in (sequences.row, sequences.start))
        total = self.log_likelihood(read_only(self.theta[None]), lapse, 3, *blocks, *packed)[0]
        return float(total[0])

    def log_probability(
        self, observation: Observation, action: int | None, response: float | None
    ) -> float:
        before = self._rows.get(float(observation["context"]), [])
        rows = [*before, self._row(observation, action, response)]
        return self._log_likelihood(rows) - (self._log_likelihood(before) if before else 0.0)

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        lapse, self.lapse = self.lapse, 0.0
        try:
            return self.log_probability(observation, None, response)
        finally:
            self.lapse = lapse


def _place(observation: Observation) -> tuple[float, float, float]:
    context, repetition, part = (observation[name] for name in ("context", "repetition", "part"))
    return float(context), float(repetition), float(part)
