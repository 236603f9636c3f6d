"""The Iowa gambling task: four decks of cards that bring gains and, some of them, losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.fields import Field, Fields, Number, Whole, setting
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Span
from knownminds.environments.turn import Observation
from knownminds.environments.words.answer import decimal
from knownminds.environments.words.history import LETTERS, Filled, Retelling
from knownminds.environments.words.prompt import Message
from knownminds.environments.words.slots import Count, Option, Slot
from knownminds.environments.world import Table, World

N_DECKS = 4
N_ORDERED = 40  # a deck has so many cards, then it begins anew
LOAN = 2000  # the words alone mention this loan, with which a session begins
_ORDINALS = ("first", "second", "third", "fourth")


def _cards(losses: Mapping[int, Sequence[int]]) -> NDArray[np.float64]:
    """Return the losses of a deck, card by card, given the positions (from 1) of each loss."""
    deck = np.zeros(N_ORDERED)
    for loss, places in losses.items():
        deck[np.array(places) - 1] = loss
    return deck


# What the cards of decks A, B, C and D bring, and what they cost, in their order of 1994.
GAINS = np.array([100.0, 100.0, 50.0, 50.0])
LOSSES = np.array(
    [
        _cards({
            150: (3, 18, 28, 37), 200: (7, 15, 26, 32), 250: (9, 14, 27, 33),
            300: (5, 17, 22, 38), 350: (10, 12, 24, 31),
        }),
        _cards({1250: (9, 14, 21, 32)}),
        _cards({
            25: (12, 17, 25, 34, 35), 50: (3, 5, 7, 9, 10, 20, 24, 26, 30, 39),
            75: (13, 18, 29, 37, 40),
        }),
        _cards({250: (10, 20, 29, 35)}),
    ]
)  # fmt: skip


class Decks(World):
    """Each deck shows its cards in their order, and begins anew after the last."""

    gains, losses = Table(GAINS), Table(LOSSES)

    def begin(self) -> None:
        self.taken: Any = np.zeros(N_DECKS, dtype=np.int64)

    def pay(self, drawn: Any, action: Any) -> Any:
        if action < 0:
            return {"reward": np.nan, "gain": np.nan, "loss": np.nan}
        card = self.taken[action]
        gain, loss = drawn.scale * self.gains[action], drawn.scale * self.losses[action, card]
        self.taken[action] = np.where(card == N_ORDERED - 1, 0, card + 1)
        return {"reward": gain - loss, "gain": gain, "loss": loss}


class IowaGambling(Retelling):
    """Four decks of cards: two with large gains and larger losses, two that pay off in the end.

    Decks A to D are the actions 0 to 3. A card of A or B brings 100, a card of C or D brings 50.
    Ten cards of A or B cost 1,250 in all: A by about five losses, B by one. Ten cards of C or D
    cost 250: C by about five losses, D by one. So ten cards of A or B lose 250, and ten cards of C
    or D win 250. Cards lie in the published order of 40, after which a deck begins anew. The order
    is the same in all sessions.

    The reward is the gain less the loss. Gain and loss are columns too, the loss a number from 0
    on, and both are shown after each card.
    """

    name = "iowa_gambling"
    summary = "four decks of cards with gains and losses, two of which pay off in the end"
    source = "Bechara, Damasio, Damasio and Anderson 1994"
    usual_model = "prospect_valence_delta"
    searched: ClassVar = {"n_cards": Span(20, 400)}
    fields = Fields(
        Field("first", (0, 3), "deck that is mentioned first; the others follow", "wording"),
        Field("gain", (0.0, np.inf), "what the card brought", "feedback", unit="dollars"),
        Field("loss", (0.0, np.inf), "what the card cost", "feedback", unit="dollars"),
    )
    shipped = Path(__file__).with_suffix(".toml")
    world = Decks
    n_actions = N_DECKS
    performance_bounds = (0.0, 1.0)
    depletes = True

    slots: ClassVar = {
        "turn": Count("trial"),
        **{name: Option("first", k) for k, name in enumerate(_ORDINALS)},
        "label": Option("action"),
        "gain": Slot("gain"),
        "loss": Slot("loss"),
    }
    noun = "deck"
    thought = "I go by what the decks have brought and cost so far."

    n_cards: int = setting(100, Whole(1), "Cards that are taken in a session.", size=True)
    scale: float = setting(
        1.0, Number(above=0.0), "By what all amounts of the published decks are multiplied."
    )

    def prepare(self) -> None:
        self._choose_words(n_trials=self.n_trials, loan=decimal(LOAN * self.scale))

    @property
    def n_draws(self) -> int:
        """One number per card for the order of mention, and those for the names."""
        return self.n_cards + len(LETTERS)

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the order of mention and the scale of amounts; the cards themselves are fixed."""
        first = (uniforms[:, : self.n_cards] * N_DECKS).astype(np.int64)
        return {"first": first, "scale": np.full(first.shape, self.scale)}

    def labels(self, uniforms: NDArray[np.float64]) -> dict[str, Any]:
        return {"decks": LETTERS[np.argsort(uniforms[-len(LETTERS) :])[:N_DECKS]].tolist()}

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return 1 where deck C or D was chosen, 0 where A or B was, NaN without a choice."""
        action = trials.numbers("action")
        return np.where(np.isnan(action), np.nan, (action >= 2).astype(float))

    def complete(self, trials: Trials) -> pd.DataFrame:
        frame = trials.frame
        if "reward" in frame or not {"gain", "loss"} <= set(frame):
            return frame
        return frame.assign(reward=trials.numbers("gain") - trials.numbers("loss"))

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        yield trials.paired("reward")
        reward, net = trials.numbers("reward"), trials.numbers("gain") - trials.numbers("loss")
        yield (
            "The reward is the gain less the loss",
            np.isnan(reward) | (np.abs(reward - net) <= 1e-9 * (1 + np.abs(net))),
            ("gain", "loss", "reward"),
            "Leave the column reward out, and it is filled in.",
        )

    def labels_in(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the letters of the decks in the order of their numbers."""
        filled = self._in_question(messages)
        return {"decks": sorted(filled[name] for name in _ORDINALS)}

    def _paid(self, labels: Any, kind: str, filled: Filled) -> tuple[float, Mapping[str, float]]:
        _, feedback = super()._paid(labels, kind, filled)
        return feedback["gain"] - feedback["loss"], feedback

    def options(self, labels: Any, observation: Observation) -> list[str]:
        letters: list[str] = labels["decks"]
        return letters
