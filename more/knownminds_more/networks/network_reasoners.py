"""Reasoners over causal networks of up to four variables whose strengths are stated."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from knownminds.agents.causes.percentages import NOISE, PercentJudge
from knownminds.agents.compiler.definition import positive, unit
from knownminds.agents.variants import holding
from knownminds.environments.causes.network_questions import BASES, MADE_ABSENT, TOLD

__all__ = [
    "NetworkReasoner",
    "NetworkReasonerAssociative",
    "NetworkReasonerBiased",
    "NetworkReasonerExact",
    "NetworkReasonerNeglect",
    "NetworkReasonerSeeing",
]

LEAST = 1e-9  # a cause that always works is taken to fail with this probability
IMPOSSIBLE = 1e-300  # the least probability that something impossible counts with


def _log_fails(chance: Any) -> Any:
    """Return the log of the probability that something does not come about."""
    return np.log(np.clip(1.0 - chance, LEAST, 1.0))


class NetworkReasoner(PercentJudge):
    """Sums over the states of a causal network, with four ways to depart from exact answers.

    With the base rates b_j and the strengths w_ij that are shown, variable j is present with the
    following probability, given the states x_i of its causes:

        [1 - (1 - b_j)^r prod over w_ij > 0 (1 - w_ij)^(s x_i)]
            times prod over w_ij < 0 (1 - |w_ij|)^(s x_i)

    P(query | shown) is a ratio of sums over the states. An intervention cuts a variable off from
    its causes. Let P_do be the answer by that rule, P_see the answer if everything shown had merely
    been observed, and A the share of the shown variables that are present. Then the answer is

        (1 - k) [(1 - n) P_do + n P_see] + k A + sigma N(0, 1),

    cut off at 0 and 1. Here n is `neglect`, s `strength_scale` and r `base_scale`. With n = k = 0
    and s = r = 1 it is exact. An event that would be certain is taken to fail once in 1e9.
    """

    name = "network_reasoner"
    summary = "neglects interventions, misjudges strengths and associates, each by a parameter"
    source = "Cheng 1997; Novick and Cheng 2004; Pearl 2000; Waldmann and Hagmayer 2005"

    neglect = unit(
        "share by which what was brought about counts as merely observed",
        mean=-0.5,
        sd=1.3,
        source="Waldmann and Hagmayer 2005",
    )
    strength_scale = positive("a cause of strength w is taken to work like so many of them", sd=0.5)
    base_scale = positive("a base rate is taken to come from so many such backgrounds", sd=0.5)
    k = unit("share of association in an answer", mean=-1.0, sd=1.2)
    sigma = NOISE

    def chances(self, trial: Any) -> list[dict[tuple[int, ...], Any]]:
        """Return how likely each variable is to be present, by the states of those before it."""
        rows: list[dict[tuple[int, ...], Any]] = []
        for j, base in enumerate(BASES):
            rows.append({})
            for causes in product((0, 1), repeat=j):
                absent = self.base_scale * _log_fails(getattr(trial, base))
                kept: Any = 0.0
                for i in (i for i, x in enumerate(causes) if x):
                    strength = getattr(trial, f"w{i + 1}{j + 1}")
                    absent = absent + self.strength_scale * _log_fails(strength)
                    kept = kept + self.strength_scale * _log_fails(-strength)
                rows[j][causes] = (1.0 - np.exp(absent)) * np.exp(kept)
        return rows

    def share(self, trial: Any, chances: Any, cut: bool) -> Any:
        """Return P(query | shown); interventions cut off causes if `cut`, else are observed."""

        def weight(states: Any, before: tuple[int, ...] = ()) -> Any:
            """Sum the probabilities of the states that begin with these values."""
            j = len(before)
            if j == len(TOLD):
                return 1.0
            chance, total = chances[j][before], 0.0
            for x, share in enumerate((1.0 - chance, chance)):
                if cut:
                    share = np.where(getattr(trial, TOLD[j]) >= MADE_ABSENT, 1.0, share)
                total = total + np.where(states[j][x], share, 0.0) * weight(states, (*before, x))
            return total

        fits, holds = [], []
        for j, name in enumerate(TOLD):
            code = getattr(trial, name)
            absent, present = ((code != x) & (code != MADE_ABSENT + x) for x in (1, 0))
            fits.append((absent, present))
            holds.append((absent & (trial.query != j), present))
        return weight(holds) / np.maximum(weight(fits), IMPOSSIBLE)

    def judge(self, trial: Any) -> Any:
        codes, chances = [getattr(trial, name) for name in TOLD], self.chances(trial)
        done, seen = (self.share(trial, chances, cut) for cut in (True, False))
        shown = sum(np.where(code >= 0, 1.0, 0.0) for code in codes)
        present = sum(np.where((code == 1) | (code == 3), 1.0, 0.0) for code in codes)
        associated = np.where(shown > 0.0, present / np.maximum(shown, 1.0), 0.5)
        answer = (1.0 - self.neglect) * done + self.neglect * seen
        return (1.0 - self.k) * answer + self.k * associated


NetworkReasonerExact = holding(
    NetworkReasoner,
    "network_reasoner_exact",
    "answers exactly by the network, interventions included",
    neglect=0.0,
    strength_scale=1.0,
    base_scale=1.0,
    k=0.0,
)
# This reasons backwards from every intervention to its possible causes.
NetworkReasonerSeeing = holding(
    NetworkReasoner,
    "network_reasoner_seeing",
    "takes interventions for observations, and is exact otherwise",
    neglect=1.0,
    strength_scale=1.0,
    base_scale=1.0,
    k=0.0,
)
NetworkReasonerNeglect = holding(
    NetworkReasoner,
    "network_reasoner_neglect",
    "takes interventions in part for observations, and is exact otherwise",
    strength_scale=1.0,
    base_scale=1.0,
    k=0.0,
)
NetworkReasonerBiased = holding(
    NetworkReasoner,
    "network_reasoner_biased",
    "takes strengths and base rates for other than stated, and is exact otherwise",
    neglect=0.0,
    k=0.0,
)
# Any present variable speaks for the queried one, even if the network screens it off: a violation
# of the Markov condition of size k.
NetworkReasonerAssociative = holding(
    NetworkReasoner,
    "network_reasoner_associative",
    "mixes exact answers with the share of shown variables that are present",
    neglect=0.0,
    strength_scale=1.0,
    base_scale=1.0,
)
