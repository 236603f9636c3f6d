"""The fourfold pattern of risk attitudes, and what losses weigh."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from knownminds.agents import Agent, ProspectTheory
from knownminds.agents.parameters import Array
from knownminds.environments import RiskyChoice
from knownminds.environments.decisions.risky_choice import PLACES, sure_and_risky, took_risk
from knownminds.inference.measure import Dial, FittedMeasure
from knownminds.inference.session_measure import SessionMeasure, SessionRows

RARE = 0.25  # a stake is rare up to this chance, and likely from 1 less this on
FAIR = 1e-6  # by what share of the stake a sure amount may differ from the mean of its gamble


class RiskAttitude(SessionMeasure):
    """Share of fair offers in which the gamble was chosen, in one of four cells.

    An offer is fair where a sure amount equals the mean of a stake with a chance of it. Cells are
    gains or losses with a rare stake (a chance up to .25) or a likely one (from .75 on). Who goes
    by expected values chooses by lot, .5. People were found above .5 with rare gains and likely
    losses and below it with likely gains and rare losses.

    Parameters
    ----------
    likely, loss
        The cell.
    """

    kind = RiskyChoice
    source = "Tversky and Kahneman 1992"
    columns: tuple[str, ...] = (
        "action",
        *(f"{side}_{place}{what}" for side in "ab" for what in ("", "_chance") for place in PLACES),
    )
    null = 0.5
    bounds = (0.0, 1.0)
    rational = "expected_value"
    violator = "prospect_theory"

    def __init__(self, likely: bool = False, loss: bool = False):
        super().__init__()
        self.likely, self.loss = likely, loss
        cell = ("likely" if likely else "rare", "losses" if loss else "gains")
        self.name = f"risk_seeking_{cell[0]}_{cell[1]}"
        self.summary = f"share of gambles chosen over their mean, {' '.join(cell)}"
        self.reason = f"no fair offer of {' '.join(cell)} was answered"
        turned = {"alpha_loss": -1.0} if loss else {"alpha": 1.0}
        self.dial = Dial(turned, reach=2.0, steps=9)

    def by_session(self, rows: SessionRows) -> Array:
        """Return the share of gambles, [sessions]."""
        columns = dict(rows.columns)
        sure, stake, chance = sure_and_risky(columns)
        taken = took_risk(columns)
        fair = np.isfinite(taken) & (np.abs(sure - stake * chance) <= FAIR * np.abs(stake))
        fair &= (chance >= 1 - RARE) if self.likely else (chance <= RARE)
        return rows.mean(taken, fair & ((stake < 0) == self.loss))


class LossAversion(FittedMeasure):
    """What a loss of 100 points weighs where a gain of 100 weighs 1, by MAP of `prospect_theory`.

    It is 1 where losses weigh as much as gains. For agents that choose by no such weight it has no
    true value.
    """

    name = "loss_aversion"
    summary = "weight of a loss of 100 points over a gain of 100"
    source = "Tversky and Kahneman 1992"
    environments = ("risky_choice",)
    null = 1.0
    bounds = (0.0, float("inf"))
    rational = "expected_value"
    violator = "prospect_theory"
    dial = Dial({"loss_aversion": 1.0})
    model = ProspectTheory
    contrast: Mapping[str, float] = {"loss_aversion": 1.0}

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the weight; 1 for agents that go by expected values, NaN for other models."""
        if model is not self.model and model.name != self.rational:
            return np.full(len(theta), np.nan)
        return super().truth(model, theta)
