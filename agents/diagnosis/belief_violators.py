"""Deciders who each break one rule that a belief which drives decisions keeps, by one dial."""

from __future__ import annotations

from dataclasses import replace

from knownminds.agents.parameters import IDENTITY, Parameter, Parameters

from .belief_kernels import FRAMED, INCOHERENT, MISREPORTS, NON_MONOTONE, PEEKS
from .decider import BELIEFS, UTILITIES, Decider

__all__ = [
    "OutcomePeeker",
    "Misreporter",
    "NoisyReporter",
    "IncoherentBeliever",
    "FrameDependent",
    "NonMonotoneDecider",
]


def _with_dial(name: str, sd: float, description: str) -> Parameters:
    """Return the parameters of a rational decider and a dial, at which 0 is rational."""
    dial = Parameter(name, IDENTITY, mean=0.0, sd=sd, description=description)
    return Parameters(*UTILITIES, *BELIEFS, dial)


class OutcomePeeker(Decider):
    """Acts on p + delta (theta - 1/2), where theta is the state that it could not know.

    What it acts on may lie outside (0, 1), where values go on as straight lines. Its decisions tell
    of the state what the stated belief does not. delta comes from decisions alone, and only where
    utilities depend on the state: V changes by delta (u(a, 1) - u(a, 0)) between the two.
    """

    name = "outcome_peeker"
    summary = "decides by more than it states: its decisions know the state"
    source = "violates the independence of action and state given the belief"
    parameters = _with_dial("delta", 0.3, "by how much the belief acted on is nearer to the state")
    violation = PEEKS


class Misreporter(Decider):
    """States p with log odds kappa above those it acts on, whenever it is asked for the state.

    What it states given a part is honest, from which kappa is told apart from c; where no such
    question is asked, only the curve of decisions over stated beliefs tells of it, which is little.
    What it states rises with what it believes, so that the belief stated says all that the belief
    held does: independence and monotone choice hold, iterated expectation does not.
    """

    name = "misreporter"
    summary = "states another belief than the one it decides by"
    source = "violates the agreement of stated and acted-on belief"
    parameters = _with_dial("kappa", 0.7, "log odds by which stated beliefs exceed those held")
    violation = MISREPORTS


class NoisyReporter(Decider):
    """Is rational, but states its belief with much noise: s_report is the dial, from 0 on.

    `RandomUtility` with another prior of s_report. Nothing is wrong with its beliefs or its
    decisions; yet these depend on the state given what it *stated*, because that is only a part
    of what it believes. A test that accuses it accuses the report.
    """

    name = "noisy_reporter"
    summary = "decides by a belief that it states with much noise"
    source = "a rational decider, whose reports violate independence"
    parameters = Parameters(*UTILITIES, *BELIEFS[:-1], replace(BELIEFS[-1], mean=-0.5, sd=0.7))


class IncoherentBeliever(Decider):
    """States beliefs given a part whose log odds are kappa too high for its belief before it.

    They do not average to it: iterated expectation fails, the other rules hold. kappa comes from
    what is stated given a part, against what is stated before.
    """

    name = "incoherent_believer"
    summary = "has beliefs given a part that do not average to the belief before it"
    source = "violates the law of iterated expectation"
    parameters = _with_dial("kappa", 0.7, "log odds by which beliefs given a part are too high")
    violation = INCOHERENT


class FrameDependent(Decider):
    """States a belief that depends on how it is asked for: its log odds move by kappa f.

    f is 0 where the question is plain, 1 under squared error, -1 under absolute error and 1/2 where
    it is told to reason in a Bayesian way. It decides by the belief that it states plainly.
    """

    name = "frame_dependent"
    summary = "states a belief that moves with the elicitation"
    source = "violates the sameness of beliefs over elicitations"
    parameters = _with_dial("kappa", 0.7, "log odds by which the elicitation moves the belief")
    violation = FRAMED


class NonMonotoneDecider(Decider):
    """Defers where it is sure: V(Defer) has kappa (2 p - 1)**2 besides its expected utility.

    The log odds of Yes over Defer then no longer rise with p everywhere, once 4 kappa exceeds the
    slope they have, (u(Yes, 1) - u(Yes, 0)) - (u(Defer, 1) - u(Defer, 0)); below, the dial bends
    them without breaking the rule.
    """

    name = "non_monotone_decider"
    summary = "defers in the wrong place: where it is sure"
    source = "violates monotone pairwise choice"
    parameters = _with_dial("kappa", 3.0, "what deferring is worth more where p is 0 or 1")
    violation = NON_MONOTONE
