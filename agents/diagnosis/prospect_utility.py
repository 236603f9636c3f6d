"""Deciders who weigh probabilities before they multiply utilities by them."""

from __future__ import annotations

from knownminds.agents.parameters import POSITIVE, Parameter, Parameters

from .belief_kernels import PRELEC, TVERSKY_KAHNEMAN
from .decider import BELIEFS, UTILITIES, Decider

__all__ = ["ProspectUtility", "ProspectUtilityTverskyKahneman"]


def _gamma(source: str) -> Parameter:
    return Parameter(
        "gamma",
        POSITIVE,
        mean=-0.3,
        sd=0.3,
        description="exponent of the weight of probabilities; 1: none, below 1: flat in the middle",
        source=source,
    )


class ProspectUtility(Decider):
    """Chooses by softmax over V(a) = w u(a, 1) + (1 - w) u(a, 0) with w = exp(-(-ln p)**gamma).

    With two actions, any increasing w and two utilities would do as well as any other where the
    odds of a choice are the same: gamma is identified only because the form of w is fixed, and well
    only with three actions, whose two log odds are both straight lines in the same w(p). What is
    identified of the utilities is as in `RandomUtility`, which this is where gamma = 1.

    gamma shows by as much as values hang on w: by u(a, 1) - u(a, 0), which is in units of choice
    noise. Where these are small, nothing hangs on w and gamma stays what the prior says; and noise
    of what is stated, which stands for what is believed, bends the curve of choices too. A plain
    belief and a decision for 200 contexts x 5 give utilities back (r = .97 over the prior), gamma
    weakly (r = .6; 50 x 5: .4, the prior speaks). It takes utilities that hang on the state and
    more decisions: with 4 and -4 for Yes, r = .75 at 200 x 5 and .9 at 200 x 10 with hardly any
    noise in what is stated; with .3 and -.3 it is not identified at all.
    """

    name = "prospect_utility"
    summary = "decides as random_utility does, with probabilities weighed by Prelec's function"
    source = "Prelec 1998"
    parameters = Parameters(*UTILITIES, _gamma("Prelec 1998"), *BELIEFS)
    weighting = PRELEC


class ProspectUtilityTverskyKahneman(ProspectUtility):
    """Weighs with w(p) = p**gamma / (p**gamma + (1 - p)**gamma)**(1 / gamma).

    Below gamma = 0.28 this w does not rise everywhere. What is identified is as in
    `ProspectUtility`; the two forms differ little, and few data tell them apart.
    """

    name = "prospect_utility_tversky_kahneman"
    summary = "decides as random_utility does, with Tversky and Kahneman's weights"
    source = "Tversky and Kahneman 1992"
    parameters = Parameters(*UTILITIES, _gamma("Tversky and Kahneman 1992"), *BELIEFS)
    weighting = TVERSKY_KAHNEMAN
