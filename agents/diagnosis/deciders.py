"""A rational decider, deciders that weigh probabilities, and deciders that each break one rule."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from knownminds.agents.compiler.definition import positive, real
from knownminds.agents.powers import prelec, tversky_kahneman

from .belief_places import BELIEF, CONDITIONAL
from .decider import Decider

__all__ = [
    "RandomUtility",
    "ProspectUtility",
    "ProspectUtilityTverskyKahneman",
    "OutcomePeeker",
    "Misreporter",
    "NoisyReporter",
    "IncoherentBeliever",
    "FrameDependent",
    "NonMonotoneDecider",
]

# By elicitation (plain, squared error, absolute error, Bayesian), how far a belief that depends on
# the frame moves, in units of the dial.
FRAMES = (0.0, 1.0, -1.0, 0.5)


class RandomUtility(Decider):
    """Chooses Yes, Defer or No by softmax over V(a) = p u(a, 1) + (1 - p) u(a, 0).

    u(No, .) = 0. The four utilities, in units of choice noise, are identified if stated beliefs
    spread over (0, 1). c, d, s_between and s_report are identified by statements alone, the last
    two by repetitions. A plain belief and a decision for 25 contexts x 5 recover all eight (r of
    .93 and more over the prior).
    """

    name = "random_utility"
    summary = "decides by expected utility and softmax, and states what it believes"
    source = "McFadden 1974; Luce 1959"


class ProspectUtility(Decider):
    """Chooses by softmax over V(a) = w u(a, 1) + (1 - w) u(a, 0) with w = exp(-(-ln p)**gamma).

    gamma = 1 is `RandomUtility`. gamma is identified well only with three actions, and only as far
    as values depend on the state: u(a, 1) - u(a, 0), in units of choice noise. A plain belief and a
    decision for 200 contexts x 5 recover the utilities (r = .97 over the prior), but gamma only
    weakly (r = .6).
    """

    name = "prospect_utility"
    summary = "decides as random_utility does, with probabilities weighed by Prelec's function"
    source = "Prelec 1998"
    contains: ClassVar = {"random_utility": {"gamma": 1.0}}

    gamma = positive(
        "exponent of the weight of probabilities; 1: none, below 1: flat in the middle",
        mean=-0.3,
        sd=0.3,
        source="Prelec 1998",
    )
    c, d, s_between, s_report = Decider.c, Decider.d, Decider.s_between, Decider.s_report

    def weigh(self, p: Any, state: Any) -> Any:
        return prelec(p, self.gamma)


class ProspectUtilityTverskyKahneman(ProspectUtility):
    """Weighs with w(p) = p**gamma / (p**gamma + (1 - p)**gamma)**(1 / gamma).

    Below gamma = 0.28 this w does not rise everywhere. What is identified is as in
    `ProspectUtility`. The two forms differ little, and it takes many data to tell them apart.
    """

    name = "prospect_utility_tversky_kahneman"
    summary = "decides as random_utility does, with Tversky and Kahneman's weights"
    source = "Tversky and Kahneman 1992"
    contains: ClassVar = {"random_utility": {"gamma": 1.0}}

    def weigh(self, p: Any, state: Any) -> Any:
        return tversky_kahneman(p, self.gamma)


class OutcomePeeker(Decider):
    """Acts on p + delta (theta - 1/2), where theta is the state that it could not know.

    The number that it acts on may lie outside (0, 1), where values continue as straight lines. Its
    decisions reveal something of the state that its stated belief does not. delta is estimated from
    decisions alone, and only if utilities depend on the state: V differs by delta (u(a, 1) - u(a,
    0)) between the two states.
    """

    name = "outcome_peeker"
    summary = "decides by more than it states: its decisions know the state"
    source = "violates the independence of action and state given the belief"
    contains: ClassVar = {"random_utility": {"delta": 0.0}}
    decides_by_state = True

    delta = real("by how much the belief acted on is nearer to the state", sd=0.3)

    def weigh(self, p: Any, state: Any) -> Any:
        return p + self.delta * (state - 0.5)


class Misreporter(Decider):
    """Answers questions about the state with log odds that are kappa above those it acts on.

    Its statements given a part are honest, which tells kappa apart from c. Without such questions
    only the curve of decisions over stated beliefs shows kappa, and that little. Its statements
    rise with its beliefs, so that the stated belief holds all the information of the belief:
    independence and monotone choice hold, iterated expectation does not.
    """

    name = "misreporter"
    summary = "states another belief than the one it decides by"
    source = "violates the agreement of stated and acted-on belief"
    contains: ClassVar = {"random_utility": {"kappa": 0.0}}

    kappa = real("log odds by which stated beliefs exceed those held", sd=0.7)
    dial = property(lambda self: self.kappa)

    @classmethod
    def moves(cls, question: Any, elicitation: Any) -> Any:
        return np.where(question == BELIEF, 1.0, 0.0)

    def acted_on(self, stated: Any) -> Any:
        return stated / (stated + (1.0 - stated) * np.exp(np.clip(self.kappa, -700.0, 700.0)))


class NoisyReporter(Decider):
    """Is rational, but states its belief with much noise: s_report is the dial, from 0 on.

    This is `RandomUtility` with another prior of s_report. Its beliefs and decisions are faultless.
    Yet decisions depend on the state given what it *stated*, since a statement holds only a part of
    the belief. A test that rejects this agent is misled by the report. The likelihood treats the
    stated belief as the one that decides, so that posteriors of utilities are too narrow.
    """

    name = "noisy_reporter"
    summary = "decides by a belief that it states with much noise"
    source = "a rational decider, whose reports violate independence"
    contains: ClassVar = {"random_utility": {}}

    s_report = positive("standard deviation of stated around believed log odds", -0.5, 0.7)


class IncoherentBeliever(Decider):
    """States beliefs given a part whose log odds are kappa too high for its earlier belief.

    These beliefs do not average to the earlier one: iterated expectation fails, the other rules
    hold. kappa is estimated from statements given a part, compared with those before it.
    """

    name = "incoherent_believer"
    summary = "has beliefs given a part that do not average to the belief before it"
    source = "violates the law of iterated expectation"
    contains: ClassVar = {"random_utility": {"kappa": 0.0}}

    kappa = real("log odds by which beliefs given a part are too high", sd=0.7)
    dial = property(lambda self: self.kappa)

    @classmethod
    def moves(cls, question: Any, elicitation: Any) -> Any:
        return np.where(question == CONDITIONAL, 1.0, 0.0)


class FrameDependent(Decider):
    """States a belief that depends on the elicitation: its log odds move by kappa f.

    f is 0 for a plain question, 1 under squared error, -1 under absolute error, and 1/2 if the
    question asks for Bayesian reasoning. The agent decides by the belief that it states plainly.
    """

    name = "frame_dependent"
    summary = "states a belief that moves with the elicitation"
    source = "violates the sameness of beliefs over elicitations"
    contains: ClassVar = {"random_utility": {"kappa": 0.0}}

    kappa = real("log odds by which the elicitation moves the belief", sd=0.7)
    dial = property(lambda self: self.kappa)

    @classmethod
    def moves(cls, question: Any, elicitation: Any) -> Any:
        moved = sum(np.where(elicitation == k, frame, 0.0) for k, frame in enumerate(FRAMES))
        return np.where(question == BELIEF, moved, 0.0)


class NonMonotoneDecider(Decider):
    """Defers where it is sure: V(Defer) has kappa (2 p - 1)**2 besides its expected utility.

    The log odds of Yes over Defer no longer rise with p everywhere once 4 kappa exceeds their
    slope, (u(Yes, 1) - u(Yes, 0)) - (u(Defer, 1) - u(Defer, 0)). A smaller kappa bends them without
    breaking the rule.
    """

    name = "non_monotone_decider"
    summary = "defers at the wrong beliefs: where it is sure"
    source = "violates monotone pairwise choice"
    contains: ClassVar = {"random_utility": {"kappa": 0.0}}

    kappa = real("what deferring is worth more where p is 0 or 1", sd=3.0)

    def bend(self, p: Any) -> Any:
        return self.kappa * (2.0 * p - 1.0) ** 2
