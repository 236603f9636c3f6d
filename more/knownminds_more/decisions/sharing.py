"""What people give up for fair shares: rejected low offers, generous ones, giving in kind."""

from __future__ import annotations

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.inference.measure import Dial
from knownminds.inference.session_measure import SessionRows, session_measure

from .ultimatum import COLUMNS as OFFERED
from .ultimatum import PROPOSER, RESPONDER

LOW = 0.3  # of the stake; offers below this are often rejected
CLOSE = 1e-9


@session_measure(
    name="low_offers_rejected",
    summary="share of offers below 30% of the stake that were rejected",
    source="Gueth, Schmittberger and Schwarze 1982",
    environments=("ultimatum",),
    columns=(*OFFERED, "action"),
    reason="no offer below 30% of the stake was answered",
    bounds=(0.0, 1.0),
    violator="inequity_averse",
    dial=Dial({"alpha": 1.0}, reach=2.0, steps=9),
)
def low_offers_rejected(rows: SessionRows) -> Array:
    """Share of low offers that a responder rejects; low offers are below 30% of the stake.

    A responder who goes by the earnings alone rejects them only by mistake.
    """
    low = rows["more"] < LOW * rows["stake"] - CLOSE
    answered = (rows["role"] == RESPONDER) & low & np.isfinite(rows["action"])
    return rows.mean(rows["action"] == 0, answered)


@session_measure(
    name="generous_offers",
    summary="share of proposals where the higher offer was made and the lower one earns more",
    source="Blanco, Engelmann and Normann 2011",
    environments=("ultimatum",),
    columns=(*OFFERED, "action"),
    reason="no proposal in which the lower offer earns more was answered",
    bounds=(0.0, 1.0),
    violator="inequity_averse",
    dial=Dial({"beta": 1.0}, reach=2.0, steps=9),
)
def generous_offers(rows: SessionRows) -> Array:
    """Share of proposals in which the higher offer was made although the lower one earns more.

    The earnings of an offer are the part that is kept, times the chance that the offer is accepted.
    A proposer who goes by the earnings alone makes the higher offer only by mistake.
    """
    less, more = (
        rows[f"{offer}_chance"] * (rows["stake"] - rows[offer]) for offer in ("less", "more")
    )
    costs = less > more + CLOSE * rows["stake"]
    answered = (rows["role"] == PROPOSER) & costs & np.isfinite(rows["action"])
    return rows.mean(rows["action"] == 1, answered)


@session_measure(
    name="conditional_cooperation",
    summary="slope of contributions on those of the others",
    source="Fischbacher, Gaechter and Fehr 2001",
    environments=("public_goods",),
    columns=("others", "action"),
    reason="contributions to fewer than two different ones of the others",
    rational="selfish_contributor",
    violator="conditional_cooperator",
    dial=Dial({"slope": 1.0}, reach=1.0, steps=9),
)
def conditional_cooperation(rows: SessionRows) -> Array:
    """Slope of contributions on what each of the others has put in, by least squares.

    0 means that gifts do not depend on the others (to give nothing, for instance); 1 means to give
    as they do. If the others' contributions and the multiplier are crossed, as in the design, it is
    0 for players who go by their earnings alone.
    """
    answered = np.isfinite(rows["action"] + rows["others"])
    others = np.where(answered, rows["others"], np.nan)
    return rows.slope(others - rows.mean(others, answered)[rows.session], rows["action"])
