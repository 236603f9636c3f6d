"""Probabilistic reversal learning: one of two machines wins more often, until they reverse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.bandits.two_machines import TwoMachines
from knownminds.environments.fields import Field, Fields, Number, Numbers, OneOf, Whole, setting
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Among, Searched, Span
from knownminds.environments.words.history import FIRST, LETTERS
from knownminds.environments.world import World

CRITERIA = ("plays", "correct", "consecutive")


class OnCorrect(World):
    """Machines change places when the better one was chosen a given number of times."""

    on_end = False  # whether a choice of the other machine begins the count anew

    def begin(self) -> None:
        self.better: Any = -1
        self.block: Any = 0
        self.counted: Any = 0
        self.needed: Any = 0

    def show(self, drawn: Any) -> dict[str, Any]:
        begins, ends = self.better < 0, self.counted >= self.needed
        turned = np.where(ends, 1 - self.better, self.better)
        self.block = self.block + np.where(begins, 0, np.where(ends, 1, 0))
        self.better = np.where(begins, drawn.start, turned)
        self.counted = np.where(ends, 0, self.counted)
        self.needed = np.where(ends, drawn.length, self.needed)
        return {"block": self.block, "better": self.better}

    def pay(self, drawn: Any, action: Any) -> Any:
        right = action == self.better
        kept = np.where(action < 0, self.counted, 0 if self.on_end else self.counted)
        self.counted = np.where(right, self.counted + 1, kept)
        return np.where(right, drawn.pays[0], drawn.pays[1])


class OnConsecutive(OnCorrect):
    """Machines change places when the better one was chosen a given number of times in a row."""

    on_end = True


WORLDS: dict[str, type[World]] = {"correct": OnCorrect, "consecutive": OnConsecutive}


class ReversalLearning(TwoMachines):
    """Two machines, one of which wins more often; after each block they change places.

    A play pays 1 if the machine wins and `loss` if not. The better machine wins with the first
    probability of `win_probability`, the other with the second; plays are independent. The number
    of plays in a block is drawn evenly from `block_length`; the last block ends with the session.
    Which machine is better at first is drawn as well. With another `criterion` the length of a
    block is not drawn: it ends once the better machine was chosen a given number of times.
    """

    name = "reversal_learning"
    summary = "two machines that win at different rates, which reverse now and then"
    source = (
        "Cools, Clark, Owen and Robbins 2002; den Ouden, Daw, Fernandez, Elshout, Rijpkema, "
        "Hoogman, Franke and Cools 2013"
    )
    usual_model = "rescorla_wagner_dual"
    searched: ClassVar = {
        "n_plays": Span(20, 480),
        "win_probability": Searched(
            (Span(0.55, 1.0, 0.05), Span(0.0, 0.45, 0.05)), lambda *rates: [*rates]
        ),
        "block_length": Searched(
            (Span(3, 40), Among((1.0, 1.5, 2.0))),
            lambda fewest, times: [fewest, round(fewest * times)],
        ),
        "criterion": None,
    }
    fields = Fields(
        FIRST,
        Field("block", help="reversals before this play", role="hidden", unit="reversals"),
        Field("better", (0, 1), "machine that wins more often", role="hidden"),
    )
    shipped = Path(__file__).with_suffix(".toml")
    n_actions = 2
    performance_bounds = (0.0, 1.0)

    noun = "machine"
    thought = "I go by what the machines have paid of late."

    n_plays: int = setting(120, Whole(1), "Plays in a session.", size=True)
    win_probability: tuple[float, float] = setting(
        (0.8, 0.2),
        Numbers(
            "holds how often the better and the worse machine win, from 0 to 1, the better one "
            "more often",
            lambda chances: 0 <= chances[1] < chances[0] <= 1,
            (2,),
        ),
        "How often the better and the worse machine win.",
    )
    block_length: tuple[int, int] = setting(
        (10, 15),
        Numbers(
            "holds the fewest and the most plays of a block, whole numbers from 1 on",
            lambda ends: 1 <= ends[0] <= ends[1],
            (2,),
            decimals=0,
        ),
        "Fewest and most plays before the machines change places; one number twice fixes it.",
    )
    criterion: str = setting(
        "plays",
        OneOf(CRITERIA),
        'What is counted until machines change places: "plays"; "correct", choices of the better '
        'machine, as in Cools et al. 2002; "consecutive", such choices in a row.',
    )
    loss: float = setting(
        -1.0,
        Number(-100.0, 0.0),
        "What a play pays that does not win: -1, or 0 if nothing can be lost.",
    )

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        low = frame["reward"].min() if "reward" in frame else None
        return cls() if low is None or not low <= 0.0 else cls(loss=float(low))

    def prepare(self) -> None:
        if self.criterion in WORLDS:
            self.world, self.depletes = WORLDS[self.criterion], True
            self.fields = Fields(
                *(replace(field, dependent=field.role == "hidden") for field in self.fields)
            )
        self._choose_words(n_trials=self.n_trials, loss=_points(self.loss))

    @property
    def _n_blocks(self) -> int:
        if self.criterion in WORLDS:
            return self.n_plays
        return -(-self.n_plays // self.block_length[0])

    @property
    def n_draws(self) -> int:
        """Three numbers per play, one per block, and those for the start and the names.

        If blocks depend on choices, there is room for a block at each play.
        """
        return 3 * self.n_plays + self._n_blocks + 1 + len(LETTERS)

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return blocks, what both machines would pay, and the order of mention."""
        n, n_plays = len(uniforms), self.n_plays
        thrown = uniforms[:, : 3 * n_plays].reshape(n, n_plays, 3)
        rest = uniforms[:, 3 * n_plays :]
        fewest, most = self.block_length
        length = fewest + (rest[:, : self._n_blocks] * (most - fewest + 1)).astype(np.int64)
        first, begins = (thrown[..., 2] < 0.5).astype(np.int64), rest[:, self._n_blocks, None] < 0.5
        if self.criterion in WORLDS:
            pays = self._payoffs_of(np.zeros((n, n_plays), dtype=np.int64), thrown[..., :2])
            start = np.broadcast_to(begins, (n, n_plays)).astype(np.int64)
            return {"first": first, "start": start, "length": length, "pays": pays}
        ends = np.cumsum(length, axis=1)
        block = (ends[:, None, :] <= np.arange(n_plays)[:, None]).sum(axis=2)
        better = (block + begins) % 2
        return {
            "first": first,
            "block": block,
            "better": better,
            "payoffs": self._payoffs_of(better, thrown[..., :2]),
        }

    def _payoffs_of(
        self, better: NDArray[np.int64], uniforms: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what both machines would pay, [..., 2], given the better one and uniforms."""
        high, low = self.win_probability
        wins = uniforms < np.where(better[..., None] == np.arange(2), high, low)
        return np.where(wins, 1.0, self.loss)

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return 1 where the better machine was chosen, else 0; NaN without a choice."""
        if "better" not in trials.frame:
            raise ValueError(
                f"Whether a choice of {self.name} was right depends on the machine that wins "
                "more often, better; the trials have no 'better'. Map one with "
                "--columns better=YOUR_NAME."
            )
        action = trials.numbers("action")
        right = (action == trials.numbers("better")).astype(float)
        return np.where(np.isnan(action), np.nan, right)

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        yield (
            f"Rewards are 1 or {self.loss:g}",
            trials.one_of("reward", 1, self.loss),
            ("reward",),
            "Recode them, or set what a play pays that does not win (--set loss=0).",
        )
        yield trials.paired("reward")


def _points(number: float) -> str:
    """Return a number of points in words."""
    return f"{number:g} point{'' if abs(number) == 1 else 's'}"
