"""A rational decider: chooses by expected utility, with noise."""

from __future__ import annotations

from knownminds.agents.parameters import Parameters

from .decider import BELIEFS, UTILITIES, Decider

__all__ = ["RandomUtility"]


class RandomUtility(Decider):
    """Chooses Yes, Defer or No by softmax over V(a) = p u(a, 1) + (1 - p) u(a, 0).

    Choices show only differences of utilities over the noise, so that u(No, .) = 0 and the noise is
    1: a utility of 2 is one of two standard units above No. The four numbers are then identified
    where stated beliefs spread over (0, 1); if all lie near one p, only V(Yes) and V(Defer)
    there are, one sum for each. c, d, s_between and s_report come from what is stated alone;
    s_between and s_report are told apart by repetitions. Belief and decision are as in `Decider`.

    A plain belief and a decision, 25 contexts x 5, give all eight back (r of .93 and more over the
    prior, whose utilities have a standard deviation of 3); without repetitions s_report is not
    identified.
    """

    name = "random_utility"
    summary = "decides by expected utility and softmax, and states what it believes"
    source = "McFadden 1974; Luce 1959"
    parameters = Parameters(*UTILITIES, *BELIEFS)
