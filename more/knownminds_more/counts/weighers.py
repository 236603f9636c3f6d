"""Agents that weigh what they are shown: earlier counts, correlations, irrelevant facts."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.model import Model
from knownminds.agents.variants import holding
from knownminds.environments.environment import Environment

from .counts import MOST, PERCENT, TENTHS

__all__ = ["EvidenceWeigher", "CorrelationWeigher", "CorrelationNeglecter"]

LEAST = 1e-9  # probability of an impossible outcome; temperature bends it like any other


def _pull() -> Any:
    return real("what is added to the log probability of a number named by a fact", sd=0.7)


class Weigher(Model):
    """The base of weighers: they tell outcomes, and state no probabilities."""

    separate = ()

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError if this model cannot play the environment."""
        if getattr(environment, "form", "") == "stated":
            raise ValueError(
                f"{cls.name} states no probabilities; {environment.name} asks for them. Ask for "
                'the outcomes, with form="question".'
            )
        super().check_plays(environment)


class EvidenceWeigher(Weigher):
    """Tells what a counter shows; earlier counts and irrelevant facts count more or less.

    log q(o) = (1/T) log m(o) + b_fact [o is named by a fact] + b_repeat [o is the last count] -
    const. Here m is the law with the known mean. If the mean is one of two, m mixes both laws by
    their posterior probabilities, in which the evidence has the weight w: the odds are (prior odds)
    (likelihood ratio)^w.

    With T = 1, w = 1 and no biases the agent knows the truth. With w near 0 it goes by the prior
    alone, and with w above 1 it jumps to conclusions. b_repeat also moves the agent after counts
    that have no influence: above 0 a streak goes on, below 0 it ends.
    """

    name = "evidence_weigher"
    summary = "tells counts, with a weight of earlier counts and a pull of facts that do not matter"
    source = "weight of evidence: Phillips and Edwards 1966; the model is ours"
    n_actions = MOST + 1

    temperature = positive("temperature: above 1 flattens, below 1 sharpens", mean=0.0, sd=0.5)
    evidence = positive("weight of the evidence of earlier counts; 1: Bayes' rule", sd=0.5)
    bias_fact = _pull()
    bias_repeat = real("what is added to the log probability of the last earlier count", sd=0.7)

    def begin(self) -> None:
        """Remember nothing."""

    def law(self, law: Any, mean: Any) -> list[Any]:
        hit = 1.0 / (1.0 + mean)
        below, shares = 0.0, []
        poisson, geometric = np.exp(-mean), hit
        for k in range(MOST):
            share = np.where(law == 0, poisson, geometric)
            shares.append(share)
            below = below + share
            poisson = poisson * mean / (k + 1)
            geometric = geometric * (1.0 - hit)
        return [*shares, 1.0 - below]

    def respond(self, trial: Any) -> Any:
        mean = trial.mean / TENTHS
        other = np.where(trial.other > 0, trial.other / TENTHS, mean)
        prior = np.where(trial.prior > 0, trial.prior / PERCENT, 0.5)
        counts = [trial.earlier_1, trial.earlier_2, trial.earlier_3, trial.earlier_4]
        n = sum(np.where(count >= 0, 1.0, 0.0) for count in counts)
        total = sum(np.where(count >= 0, count, 0.0) for count in counts)
        last = trial.earlier_1
        for count in counts[1:]:
            last = np.where(count >= 0, count, last)
        # Log-likelihood of the first mean less that of the other.
        poisson = total * (np.log(mean) - np.log(other)) - n * (mean - other)
        tries = n + total
        geometric = total * (np.log(mean) - np.log(other))
        geometric = geometric - tries * (np.log(1.0 + mean) - np.log(1.0 + other))
        ratio = np.where(trial.law == 0, poisson, geometric)
        odds = np.log(prior) - np.log(1.0 - prior) + self.evidence * ratio
        first = 1.0 / (1.0 + np.exp(-odds))
        one, two = self.law(trial.law, mean), self.law(trial.law, other)
        heights = []
        for k in range(MOST + 1):
            share = np.maximum(first * one[k] + (1.0 - first) * two[k], LEAST)
            height = np.log(share) / self.temperature
            height = height + np.where(trial.fact == k, self.bias_fact, 0.0)
            heights.append(height + np.where(last == k, self.bias_repeat, 0.0))
        return np.array(heights)


class CorrelationWeigher(Weigher):
    """Tells how many linked coins show a face, and heeds their correlation more or less.

    log q(o) = (1/T) log m(o) + b_fact [o is named by a fact] - const, with m = h p(o; r) + (1 - h)
    p(o; 0). With the probability h, `heed`, the agent goes by the joint law of coins with their
    correlation r. Otherwise it treats the coins as independent of each other (and of the first one,
    if that has been seen).

    With T = 1, h = 1 and no bias the agent knows the truth; h = 0 is correlation neglect.
    """

    name = "correlation_weigher"
    summary = "tells how many linked coins show a face, and heeds their correlation more or less"
    source = "correlation neglect: Enke and Zimmermann 2019; the model is ours"
    n_actions = None

    temperature = EvidenceWeigher.temperature
    heed: Any = unit("share of cases in which the correlation is heeded; 0: neglect", sd=1.0)
    bias_fact = _pull()

    def begin(self) -> None:
        """Remember nothing."""

    def law(self, share: Any, link: Any, seen: Any) -> list[Any]:
        after_hit, after_miss = share + link * (1.0 - share), share * (1.0 - link)
        # This equals `share`; written as after a previous coin, it also reads the link of a single
        # coin.
        alone = share * after_hit + (1.0 - share) * after_miss
        first = np.where(seen < 0, alone, seen)
        # By the number so far: those whose last coin shows the face, and the others.
        hits, misses = [0.0, first], [1.0 - first, 0.0]
        for _ in range(self.actions - 2):
            more = [h * after_hit + m * after_miss for h, m in zip(hits, misses, strict=True)]
            same = [
                h * (1.0 - after_hit) + m * (1.0 - after_miss)
                for h, m in zip(hits, misses, strict=True)
            ]
            hits, misses = [0.0, *more], [*same, 0.0]
        return [h + m for h, m in zip(hits, misses, strict=True)]

    def respond(self, trial: Any) -> Any:
        share, link = trial.weight / (trial.weight + 1.0), trial.correlation / PERCENT
        tied = self.law(share, link, trial.seen)
        loose = self.law(share, 0.0 * link, trial.seen)
        heights = []
        for k in range(self.actions):
            mixed = np.maximum(self.heed * tied[k] + (1.0 - self.heed) * loose[k], LEAST)
            height = np.log(mixed) / self.temperature
            heights.append(height + np.where(trial.fact == k, self.bias_fact, 0.0))
        return np.array(heights)


CorrelationNeglecter = holding(
    CorrelationWeigher,
    "correlation_neglecter",
    "tells how many linked coins show a face as if none hung on another",
    heed=0.0,
)
