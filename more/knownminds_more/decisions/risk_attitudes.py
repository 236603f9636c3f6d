"""The fourfold pattern of risk attitudes, and the weight of losses."""

from __future__ import annotations

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.inference.measure import Dial, FittedMeasure
from knownminds.inference.session_measure import DeclaredMeasure, SessionRows, session_measure

from .risk_takers import ProspectTheory
from .risky_choice import PLACES, sure_and_risky, took_risk

RARE = 0.25  # a stake is rare up to this chance, and likely from 1 less this on
FAIR = 1e-6  # a sure amount may differ from the mean of its gamble by this share of the stake


def risk_attitude(likely: bool = False, loss: bool = False) -> DeclaredMeasure:
    """Share of fair offers in which the gamble was chosen, in one of four cells.

    An offer is fair if the sure amount equals the mean of a stake with a chance of it. The cells
    are gains or losses with a rare stake (a chance up to .25) or a likely one (from .75 on). A
    player who goes by expected values chooses at random, .5. People were found above .5 with rare
    gains and likely losses, and below it with likely gains and rare losses.

    Parameters
    ----------
    likely, loss : The cell.
    """

    def share(rows: SessionRows) -> Array:
        columns = dict(rows.columns)
        sure, stake, chance = sure_and_risky(columns)
        taken = took_risk(columns)
        fair = np.isfinite(taken) & (np.abs(sure - stake * chance) <= FAIR * np.abs(stake))
        fair &= (chance >= 1 - RARE) if likely else (chance <= RARE)
        return rows.mean(taken, fair & ((stake < 0) == loss))

    cell = ("likely" if likely else "rare", "losses" if loss else "gains")
    sides = [
        f"{side}_{place}{what}" for side in "ab" for what in ("", "_chance") for place in PLACES
    ]
    return session_measure(
        name=f"risk_seeking_{cell[0]}_{cell[1]}",
        summary=f"share of gambles chosen over their mean, {cell[0]} {cell[1]}",
        source="Tversky and Kahneman 1992",
        environments=("risky_choice",),
        null=0.5,
        bounds=(0.0, 1.0),
        rational="expected_value",
        violator="prospect_theory",
        dial=Dial({"alpha_loss": -1.0} if loss else {"alpha": 1.0}, reach=2.0, steps=9),
        columns=("action", *sides),
        reason=f"no fair offer of {cell[0]} {cell[1]} was answered",
    )(share)


# The weight of a loss of 100 points, if a gain of 100 points weighs 1, by MAP; 1 means that losses
# weigh as much as gains.
LOSS_AVERSION = FittedMeasure(
    name="loss_aversion",
    summary="weight of a loss of 100 points over a gain of 100",
    source="Tversky and Kahneman 1992",
    environments=("risky_choice",),
    null=1.0,
    bounds=(0.0, float("inf")),
    rational="expected_value",
    violator="prospect_theory",
    dial=Dial({"loss_aversion": 1.0}),
    model=ProspectTheory,
    contrast={"loss_aversion": 1.0},
)


RISK_ATTITUDES = tuple(
    risk_attitude(likely, loss) for loss in (False, True) for likely in (False, True)
)
