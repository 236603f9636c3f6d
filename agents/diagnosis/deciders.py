"""A rational decider, deciders who weigh probabilities, and deciders who each break one rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive, real
from knownminds.agents.probability_weights import prelec, tversky_kahneman

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

# How far an elicitation moves a belief that hangs on the frame, in units of the dial: plain,
# squared error, absolute error, Bayesian.
FRAMES = (0.0, 1.0, -1.0, 0.5)


class RandomUtility(Decider):
    """Chooses Yes, Defer or No by softmax over V(a) = p u(a, 1) + (1 - p) u(a, 0).

    u(No, .) = 0, and the four utilities, in units of choice noise, are identified where stated
    beliefs spread over (0, 1); c, d, s_between and s_report by what is stated alone, the last two
    by repetitions. A plain belief and a decision for 25 contexts x 5 give all eight back (r of .93
    and more over the prior).
    """

    name = "random_utility"
    summary = "decides by expected utility and softmax, and states what it believes"
    source = "McFadden 1974; Luce 1959"


class ProspectUtility(Decider):
    """Chooses by softmax over V(a) = w u(a, 1) + (1 - w) u(a, 0) with w = exp(-(-ln p)**gamma).

    gamma = 1 is `RandomUtility`. gamma is identified well only with three actions, and by as much
    as values depend on the state: u(a, 1) - u(a, 0), in units of choice noise. A plain belief and a
    decision for 200 contexts x 5 give utilities back (r = .97 over the prior), gamma weakly (r =
    .6).
    """

    name = "prospect_utility"
    summary = "decides as random_utility does, with probabilities weighed by Prelec's function"
    source = "Prelec 1998"

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
    `ProspectUtility`; the two forms differ little, and few data tell them apart.
    """

    name = "prospect_utility_tversky_kahneman"
    summary = "decides as random_utility does, with Tversky and Kahneman's weights"
    source = "Tversky and Kahneman 1992"

    def weigh(self, p: Any, state: Any) -> Any:
        return tversky_kahneman(p, self.gamma)


class OutcomePeeker(Decider):
    """Acts on p + delta (theta - 1/2), where theta is the state that it could not know.

    What it acts on may lie outside (0, 1), where values go on as straight lines. Its decisions tell
    of the state what the stated belief does not. delta comes from decisions alone, and only where
    utilities depend on the state: V changes by delta (u(a, 1) - u(a, 0)) between the two.
    """

    name = "outcome_peeker"
    summary = "decides by more than it states: its decisions know the state"
    source = "violates the independence of action and state given the belief"
    decides_by_state = True

    delta = real("by how much the belief acted on is nearer to the state", sd=0.3)

    def weigh(self, p: Any, state: Any) -> Any:
        return p + self.delta * (state - 0.5)


class Misreporter(Decider):
    """States p with log odds kappa above those it acts on, whenever a question is about the state.

    What it states given a part is honest, from which kappa is distinguished from c; where no such
    question is posed, only the curve of decisions over stated beliefs shows it, which is little.
    What it states rises with what it believes, so that the belief stated says all that the belief
    held does: independence and monotone choice hold, iterated expectation does not.
    """

    name = "misreporter"
    summary = "states another belief than the one it decides by"
    source = "violates the agreement of stated and acted-on belief"

    kappa = real("log odds by which stated beliefs exceed those held", sd=0.7)
    dial = property(lambda self: self.kappa)

    @classmethod
    def moves(cls, question: Any, elicitation: Any) -> Any:
        return np.where(question == BELIEF, 1.0, 0.0)

    def acted_on(self, stated: Any) -> Any:
        return stated / (stated + (1.0 - stated) * np.exp(np.clip(self.kappa, -700.0, 700.0)))


class NoisyReporter(Decider):
    """Is rational, but states its belief with much noise: s_report is the dial, from 0 on.

    `RandomUtility` with another prior of s_report. Nothing is wrong with its beliefs or its
    decisions; yet these depend on the state given what it *stated*, because that is only a part
    of what it believes. A test that accuses it accuses the report. Its likelihood takes what is
    stated for the belief that is decided by, so that posteriors of its utilities are too narrow.
    """

    name = "noisy_reporter"
    summary = "decides by a belief that it states with much noise"
    source = "a rational decider, whose reports violate independence"

    s_report = positive("standard deviation of stated around believed log odds", -0.5, 0.7)


class IncoherentBeliever(Decider):
    """States beliefs given a part whose log odds are kappa too high for its belief before it.

    They do not average to it: iterated expectation fails, the other rules hold. kappa comes from
    what is stated given a part, against what is stated before.
    """

    name = "incoherent_believer"
    summary = "has beliefs given a part that do not average to the belief before it"
    source = "violates the law of iterated expectation"

    kappa = real("log odds by which beliefs given a part are too high", sd=0.7)
    dial = property(lambda self: self.kappa)

    @classmethod
    def moves(cls, question: Any, elicitation: Any) -> Any:
        return np.where(question == CONDITIONAL, 1.0, 0.0)


class FrameDependent(Decider):
    """States a belief that depends on the elicitation: its log odds move by kappa f.

    f is 0 where the question is plain, 1 under squared error, -1 under absolute error and 1/2 where
    it is shown to reason in a Bayesian way. It decides by the belief that it states plainly.
    """

    name = "frame_dependent"
    summary = "states a belief that moves with the elicitation"
    source = "violates the sameness of beliefs over elicitations"

    kappa = real("log odds by which the elicitation moves the belief", sd=0.7)
    dial = property(lambda self: self.kappa)

    @classmethod
    def moves(cls, question: Any, elicitation: Any) -> Any:
        moved = sum(np.where(elicitation == k, frame, 0.0) for k, frame in enumerate(FRAMES))
        return np.where(question == BELIEF, moved, 0.0)


class NonMonotoneDecider(Decider):
    """Defers where it is sure: V(Defer) has kappa (2 p - 1)**2 besides its expected utility.

    The log odds of Yes over Defer then no longer rise with p everywhere, once 4 kappa exceeds the
    slope they have, (u(Yes, 1) - u(Yes, 0)) - (u(Defer, 1) - u(Defer, 0)); below, the dial bends
    them without breaking the rule.
    """

    name = "non_monotone_decider"
    summary = "defers at the wrong beliefs: where it is sure"
    source = "violates monotone pairwise choice"

    kappa = real("what deferring is worth more where p is 0 or 1", sd=3.0)

    def bend(self, p: Any) -> Any:
        return self.kappa * (2.0 * p - 1.0) ** 2
