"""Measures of which decks are preferred in the Iowa gambling task, and what they pay.

Cards without an answer are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.inference.measure import Dial
from knownminds.inference.session_measure import DeclaredMeasure, SessionRows, session_measure

CARDS = 20  # cards of a block, as in the literature
GOOD, RARE = (-1.0, -1.0, 1.0, 1.0), (-1.0, 1.0, -1.0, 1.0)  # signs of decks A to D
BECHARA = "Bechara, Damasio, Damasio and Anderson 1994"
OF_DECKS: dict[str, Any] = {
    "environments": ("iowa_gambling",),
    "violator": "prospect_valence_delta",
    "dial": Dial({"loss_aversion": 1.0}, reach=2.0, steps=9),
    "columns": ("action",),
}


def net_choices(
    rows: SessionRows, signs: tuple[float, ...], where: NDArray[np.bool_] | bool = True
) -> Array:
    """Return choices of favoured decks less choices of the others, per 20 cards, [sessions]."""
    taken = np.isfinite(rows["action"])
    deck = np.where(taken, rows["action"], 0).astype(np.int64)
    return rows.mean(CARDS * np.array(signs)[deck], where & taken)


def net_score(block: int | None = None) -> DeclaredMeasure:
    """Choices of the decks that pay off (C and D) less those of the others (A and B), per 20 cards.

    It lies between -20 and 20, and is 0 for players who choose at random. Published net scores of a
    block of 20 cards are on this scale; those of a session of 100 cards are five times as large.

    Parameters
    ----------
    block : The number of a block of 20 cards, from 1 on; the whole session if None.
    """
    cards = f", cards {CARDS * (block - 1) + 1} to {CARDS * block}" if block else ""
    return session_measure(
        name="net_score" + (f"_block_{block}" if block else ""),
        summary=f"choices of decks C and D less A and B, per 20 cards{cards}",
        source=f"{BECHARA}; Bechara, Tranel and Damasio 2000",
        rational="random_responder",
        bounds=(-float(CARDS), float(CARDS)),
        reason="no card in the block" if block else "no card was taken",
        **OF_DECKS,
    )(lambda rows: net_choices(rows, GOOD, rows.trial // CARDS == block - 1 if block else True))


@session_measure(
    name="net_score_rise",
    summary="net score of the last 20 cards less that of the first 20",
    source=f"{BECHARA}; Bechara, Tranel and Damasio 2000",
    rational="random_responder",
    bounds=(-2.0 * CARDS, 2.0 * CARDS),
    reason="no two blocks of cards",
    **OF_DECKS,
)
def net_score_rise(rows: SessionRows) -> Array:
    """Net score of the last block of 20 cards less that of the first: what was learned.

    It lies between -40 and 40, and is 0 for players who choose at random or never change. Cards
    left over at the end of a session are a block of their own if they are 10 or more; fewer belong
    to the block before.
    """
    most = np.zeros(rows.n, dtype=np.int64)
    np.maximum.at(most, rows.session, rows.trial)
    count = np.maximum((most + 1 + CARDS // 2) // CARDS, 1)
    last = count[rows.session] - 1
    block = np.minimum(rows.trial // CARDS, last)
    rise = net_choices(rows, GOOD, block == last) - net_choices(rows, GOOD, block == 0)
    return np.where(count > 1, rise, np.nan)


@session_measure(
    name="rare_loss_preference",
    summary="choices of decks B and D less A and C, per 20 cards",
    source="Lin, Chiu, Lee and Hsieh 2007; Steingroever et al. 2013",
    rational="random_responder",
    bounds=(-float(CARDS), float(CARDS)),
    reason="no card was taken",
    **OF_DECKS | {"dial": Dial({"alpha": -1.0}, reach=2.0, steps=9)},
)
def rare_loss_preference(rows: SessionRows) -> Array:
    """Choices of the decks that seldom cost (B and D) less the others (A and C), per 20 cards.

    Many people prefer deck B, which wins nine times in ten but loses in the end: they go by how
    often a deck wins. The score lies between -20 and 20, and is 0 for players who choose at random.
    """
    return net_choices(rows, RARE)


@session_measure(
    name="payoff",
    summary="mean of gain less loss, per card",
    source=BECHARA,
    bounds=(-1150.0, 100.0),  # the loss of 1,250 of deck B, and a card of A or B without a loss
    reason="no card with a reward",
    **OF_DECKS | {"columns": ("action", "reward")},
)
def payoff(rows: SessionRows) -> Array:
    """Mean payoff per card: its gain less its loss.

    Ten cards of deck A or B add up to -250, and ten of C or D to 250. So a player who keeps to
    either pair has -25 or 25 per card. A player who chooses at random has -5 in 100 cards, given
    the order of the decks, and 0 in long sessions. Amounts are those of the experiment, multiplied
    by its `scale`.
    """
    return rows.mean(rows["reward"], np.isfinite(rows["action"] + rows["reward"]))


DECK_MEASURES = (
    *map(net_score, (None, 1, 2, 3, 4, 5)),
    net_score_rise,
    rare_loss_preference,
    payoff,
)
