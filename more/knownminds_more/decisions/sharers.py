"""Sharers: selfish, averse to unequal shares, or giving as much as others give."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.model import Model
from knownminds.agents.variants import holding

__all__ = [
    "ConditionalCooperator",
    "InequityAverse",
    "InequityAverseContributor",
    "Selfish",
    "SelfishContributor",
]

FEHR = "Fehr and Schmidt 1999"
RESPONDER = 0  # role in an ultimatum game


def _envy() -> Any:
    return positive("envy: what a point that another has more costs", mean=-0.4, sd=0.8,
                    source=FEHR)  # fmt: skip


def _guilt() -> Any:
    return unit("guilt: what a point that oneself has more costs", mean=-0.3, sd=1.0, source=FEHR)


def _worth(share: Any, other: Any, alpha: Any, beta: Any) -> Any:
    """Return mine - alpha max(other - mine, 0) - beta max(mine - other, 0)."""
    return share - alpha * np.maximum(other - share, 0.0) - beta * np.maximum(share - other, 0.0)


class InequityAverse(Model):
    """Values shares of a stake by the payoff, less envy and guilt, and chooses by softmax.

    U(mine, other) = mine - alpha max(other - mine, 0) - beta max(mine - other, 0), with amounts
    divided by the stake; nothing for both has U = 0. The value V of an offer is U times the
    probability that it is accepted; that of a rejection is 0. P(higher offer, or acceptance) =
    logistic((V(1) - V(0)) / tau).

    A responder alone does not reveal beta: U of a share above one half is positive whatever beta
    is.
    """

    name = "inequity_averse"
    summary = "accepts and makes offers by its share, less envy and guilt"
    source = FEHR
    separate = ()

    alpha: Any = _envy()
    beta: Any = _guilt()
    tau = positive(
        "temperature: how little choices follow the values, which are 1 at all that is divided",
        mean=-2.5,
        sd=0.5,
    )

    def respond(self, trial: Any) -> Any:
        less, more = trial.less / trial.stake, trial.more / trial.stake
        responds = trial.role == RESPONDER
        own_less, own_more = np.where(responds, less, 1.0 - less), np.where(
            responds, more, 1.0 - more)  # fmt: skip
        lower = _worth(own_less, 1.0 - own_less, self.alpha, self.beta)
        higher = _worth(own_more, 1.0 - own_more, self.alpha, self.beta)
        return (trial.more_chance * higher - trial.less_chance * lower) / self.tau


# This is the rational player, who accepts any offer.
Selfish = holding(
    InequityAverse,
    "selfish",
    "accepts and makes offers by its share alone",
    source="the rational player of Gueth, Schmittberger and Schwarze 1982",
    alpha=0.0,
    beta=0.0,
)


class InequityAverseContributor(Model):
    """Contributes by its earnings, less envy and guilt towards the others, and by softmax.

    All amounts are divided by the endowment. With the contribution c, and o put in by each of the
    others, U(c) = 1 - c + m (c + (n - 1) o) / n - alpha max(c - o, 0) - beta max(o - c, 0), since
    the others have c - o more than this agent. P(c) is proportional to exp(U(c) / tau). Without
    noise c = o if beta > 1 - m / n, and c = 0 if it is less (and m < n).
    """

    name = "inequity_averse_contributor"
    summary = "contributes by what it earns, less envy and guilt towards the others"
    source = FEHR
    separate = ()
    n_actions = None

    alpha: Any = _envy()
    beta: Any = _guilt()
    tau = InequityAverse.tau

    def respond(self, trial: Any) -> Any:
        put_in = np.arange(self.actions) / (self.actions - 1.0)
        others = trial.others / trial.endowment
        brings = trial.multiplier / trial.group
        kept = (brings - 1.0) * put_in
        ahead = others - put_in
        unequal = self.alpha * np.maximum(-ahead, 0.0) + self.beta * np.maximum(ahead, 0.0)
        return (kept - unequal) / self.tau


SelfishContributor = holding(
    InequityAverseContributor,
    "selfish_contributor",
    "contributes by what it earns alone",
    source="the free rider of Fischbacher, Gaechter and Fehr 2001",
    alpha=0.0,
    beta=0.0,
)


class ConditionalCooperator(Model):
    """Contributes a share that follows the others' contribution along a line, with normal noise.

    P(c) is proportional to exp(-(c - base - slope o)**2 / (2 sigma**2)) over the possible
    contributions, all as shares of the endowment. Slope 1 and base 0 make a perfect conditional
    cooperator; slope 0 and base 0 make a free rider.
    """

    name = "conditional_cooperator"
    summary = "contributes along a line of what the others put in, with noise"
    source = "Fischbacher, Gaechter and Fehr 2001"
    separate = ()
    n_actions = None

    base = real("contribution where the others put in nothing, share of the endowment", mean=0.1,
                sd=0.2)  # fmt: skip
    slope = real("how much more it is for what the others put in more", mean=0.5, sd=0.4)
    sigma = positive("standard deviation of contributions, share of the endowment", mean=-2.0,
                     sd=0.5)  # fmt: skip

    def respond(self, trial: Any) -> Any:
        put_in = np.arange(self.actions) / (self.actions - 1.0)
        meant = self.base + self.slope * trial.others / trial.endowment
        away = (put_in - meant) / self.sigma
        return -0.5 * away * away
