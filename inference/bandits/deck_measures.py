"""Which decks are preferred in the Iowa gambling task, and what they pay."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import IowaGambling
from knownminds.inference.measure import Dial
from knownminds.inference.session_measure import SessionMeasure, SessionRows

CARDS = 20  # of a block, as in the literature
SIGNS = {"good": (-1, -1, 1, 1), "rare": (-1, 1, -1, 1)}  # of decks A to D


class DeckMeasure(SessionMeasure):
    """What is read off the cards of a session; those without an answer are passed over."""

    kind = IowaGambling
    columns: tuple[str, ...] = ("action",)
    reason = "no card was taken"
    violator = "prospect_valence_delta"

    def signed(self, rows: SessionRows, of: str, where: NDArray[np.bool_] | bool = True) -> Array:
        """Return decks that count for something less those against, per 20 cards, [sessions]."""
        taken = np.isfinite(rows["action"])
        deck = np.where(taken, rows["action"], 0).astype(np.int64)
        return rows.mean(CARDS * np.array(SIGNS[of], dtype=float)[deck], where & taken)


class NetScore(DeckMeasure):
    """Choices of the decks that pay off (C and D) less those of the others (A and B), per 20 cards.

    It lies between -20 and 20 and is 0 in who chooses by lot. Published net scores of a block of
    20 are on this scale; those of a session of 100 cards are five times as large.

    Parameters
    ----------
    block
        Which block of 20 cards, from 1 on; the whole session if None.
    """

    source = "Bechara, Damasio, Damasio and Anderson 1994; Bechara, Tranel and Damasio 2000"
    null = 0.0
    bounds = (-float(CARDS), float(CARDS))
    rational = "random_responder"
    dial = Dial({"loss_aversion": 1.0}, reach=2.0, steps=9)

    def __init__(self, block: int | None = None):
        super().__init__()
        self.block = block
        self.name = "net_score" + (f"_block_{block}" if block else "")
        self.summary = "choices of decks C and D less A and B, per 20 cards" + (
            f", cards {CARDS * (block - 1) + 1} to {CARDS * block}" if block else ""
        )
        if block:
            self.reason = "no card in the block"

    def by_session(self, rows: SessionRows) -> Array:
        """Return the net score per 20 cards, [sessions]."""
        where = rows.trial // CARDS == self.block - 1 if self.block else True
        return self.signed(rows, "good", where)


class NetScoreRise(DeckMeasure):
    """Net score of the last block of 20 cards less that of the first: what was learned.

    It lies between -40 and 40 and is 0 in who chooses by lot, or who never changes.
    """

    name = "net_score_rise"
    summary = "net score of the last 20 cards less that of the first 20"
    source = "Bechara, Damasio, Damasio and Anderson 1994; Bechara, Tranel and Damasio 2000"
    null = 0.0
    bounds = (-2.0 * CARDS, 2.0 * CARDS)
    rational = "random_responder"
    reason = "no two blocks of cards"
    dial = Dial({"loss_aversion": 1.0}, reach=2.0, steps=9)

    def by_session(self, rows: SessionRows) -> Array:
        """Return the rise per 20 cards, [sessions].

        What is left at the end of a session is a separate block from 10 cards on; fewer belong
        to the block before.
        """
        most = np.zeros(rows.n, dtype=np.int64)
        np.maximum.at(most, rows.session, rows.trial)
        count = np.maximum((most + 1 + CARDS // 2) // CARDS, 1)
        last = count[rows.session] - 1
        block = np.minimum(rows.trial // CARDS, last)
        rise = self.signed(rows, "good", block == last) - self.signed(rows, "good", block == 0)
        return np.where(count > 1, rise, np.nan)


class RareLossPreference(DeckMeasure):
    """Choices of the decks that seldom cost (B and D) less the others (A and C), per 20 cards.

    Many people prefer deck B, which wins nine times in ten and loses in the end: they go by how
    often a deck wins. It lies between -20 and 20 and is 0 in who chooses by lot.
    """

    name = "rare_loss_preference"
    summary = "choices of decks B and D less A and C, per 20 cards"
    source = "Lin, Chiu, Lee and Hsieh 2007; Steingroever et al. 2013"
    null = 0.0
    bounds = (-float(CARDS), float(CARDS))
    rational = "random_responder"
    dial = Dial({"alpha": -1.0}, reach=2.0, steps=9)

    def by_session(self, rows: SessionRows) -> Array:
        """Return the preference per 20 cards, [sessions]."""
        return self.signed(rows, "rare")


class Payoff(DeckMeasure):
    """Mean of what a card brought, its gain less its loss.

    Ten cards of deck A or B come to -250, ten of C or D to 250: who keeps to either pair has -25
    or 25 a card. Who chooses by lot has -5 in 100 cards, as the decks lie, and 0 in long sessions.
    Amounts are those of the experiment: with `scale` they are multiplied.
    """

    name = "payoff"
    summary = "mean of gain less loss, per card"
    source = "Bechara, Damasio, Damasio and Anderson 1994"
    columns = ("action", "reward")
    bounds = (-1150.0, 100.0)  # the 1,250 of deck B, and a card of A or B without a loss
    reason = "no card with a reward"
    dial = Dial({"loss_aversion": 1.0}, reach=2.0, steps=9)

    def by_session(self, rows: SessionRows) -> Array:
        """Return the mean reward, [sessions]."""
        return rows.mean(rows["reward"], np.isfinite(rows["action"] + rows["reward"]))
