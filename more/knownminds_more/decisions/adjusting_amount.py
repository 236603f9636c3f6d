"""The adjusting-amount procedure: a sum now closes in on the value of a later sum, by halving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.fields import YES_OR_NO, Field, Fields, Numbers, Whole, setting
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Span
from knownminds.environments.turn import Observation
from knownminds.environments.words.answer import decimal
from knownminds.environments.words.history import FIRST
from knownminds.environments.world import World, follow_world, where

from .stated import LABELS, Places, StatedQuestions

SOONER, LATER = 0, 1
CLOSE = 1e-9


class Halving(World):
    """The sum now lies in the middle of the interval that may be worth as much as the later one.

    Bounds are shares of the later sum. Without an answer they stay, and the question comes again.
    """

    span = "ladder"

    def begin(self) -> None:
        self.low: Any = 0.0
        self.high: Any = 1.0

    def show(self, drawn: Any) -> dict[str, Any]:
        return {"sooner_amount": drawn.later_amount * (0.5 * (self.low + self.high))}

    def pay(self, drawn: Any, action: Any) -> Any:
        """Narrow the bounds by the choice; nothing is paid.

        A participant who waits for a gain, or pays a loss now, values the later sum more than the
        offer.
        """
        middle = 0.5 * (self.low + self.high)
        above = where(drawn.later_amount > 0, LATER, SOONER)
        below = where(drawn.later_amount > 0, SOONER, LATER)
        self.low = where(action == above, middle, self.low)
        self.high = where(action == below, middle, self.high)


_rising = Numbers(
    "are whole numbers from 1 on in rising order",
    lambda values: values[0] >= 1 and np.all(np.diff(values) > 0),
    decimals=0,
)


def _ends(environment: AdjustingAmount) -> tuple[float, float]:
    most = float(environment.amounts[-1])
    return (-most if environment.losses else 0.0), most


class AdjustingAmount(StatedQuestions):
    """A sum now (action 0) or a larger one later (1); the sum now follows the last answer.

    For each later sum and delay there is a ladder of `questions` questions. The first offers half
    of the later sum now. Each answer halves the interval that holds the sum now that is worth as
    much as the later one, and the next question offers its middle. After q questions this
    *indifference point* is known to within 1 / 2**q of the later sum, if every answer is true to
    the participant's preference; a single slip keeps it on the wrong side for good. Ladders come in
    mixed order, gains and losses (negative sums) among each other; every question stands alone.

    The likelihood of answers is the same as if the questions had been fixed in advance: a question
    depends on earlier answers and on nothing else that is unknown. So discounters are fitted as for
    a fixed list. The precision of a fit depends on where the questions lie.
    """

    name = "adjusting_amount"
    summary = "a sum now or a later one, the sum now adjusted to the last answer, no rewards"
    source = "Du, Green and Myerson 2002; Richards, Zhang, Mitchell and de Wit 1999"
    usual_model = "hyperbolic_discounter"
    searched: ClassVar = {"losses": None, "questions": Span(2, 10), "repeats": Span(1, 8)}
    fields = Fields(
        Field("sooner_amount", _ends, "the sum now", dependent=True, unit="dollars"),
        Field("sooner_delay", (0, np.inf), "until the sum now", unit="months"),
        Field("later_amount", _ends, "the later sum", unit="dollars"),
        Field("later_delay", (1, np.inf), "until the later sum", unit="months"),
        FIRST,
        Field(
            "ladder", (0, np.inf), "which ladder of the session, from 0", "hidden", unit="position"
        ),
    )
    shipped = Path(__file__).with_suffix(".toml")
    performance_bounds = None
    world = Halving
    thought = "I weigh how much there is against how long it takes."

    amounts: Sequence[int] = setting((640,), _rising, "Later sums.")
    delays: Sequence[int] = setting(
        (1, 3, 6, 12, 24, 60), _rising, "Delays of the later sums, in months."
    )
    losses: bool = setting(True, YES_OR_NO, "Whether there are losses as well.")
    questions: int = setting(6, Whole(1, 10), "Of a ladder.")
    repeats: int = setting(1, Whole(1), "How often each ladder is climbed.", size=True)

    def prepare(self) -> None:
        signs = (1, -1) if self.losses else (1,)
        ladders = [(s * a, d) for s, a, d in product(signs, self.amounts, self.delays)]
        self._ladders = np.array(ladders, dtype=np.int64)
        super().prepare()

    @property
    def n_trials(self) -> int:
        return self.questions * self._n_climbed

    @property
    def _n_climbed(self) -> int:
        return self.repeats * len(self._ladders)

    @property
    def n_draws(self) -> int:
        """One number per ladder for its position, and one per question for what is named first."""
        return self._n_climbed + self.n_trials

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the ladders in mixed order."""
        n = len(uniforms)
        order = np.argsort(uniforms[:, : self._n_climbed], axis=1) % len(self._ladders)
        amount, delay = np.moveaxis(np.repeat(self._ladders[order], self.questions, axis=1), 2, 0)
        ladder = np.repeat(np.arange(self._n_climbed), self.questions)
        return {
            "sooner_delay": np.zeros((n, self.n_trials), dtype=np.int64),
            "later_amount": amount,
            "later_delay": delay,
            "first": (uniforms[:, self._n_climbed :] < 0.5).astype(np.int64),
            "ladder": np.broadcast_to(ladder, (n, self.n_trials)),
        }

    def complete(self, trials: Trials) -> pd.DataFrame:
        frame = trials.frame
        if "ladder" in frame or "trial" not in frame:
            return frame
        return frame.assign(ladder=frame["trial"] // self.questions)

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        later, sooner = trials.numbers("later_amount"), trials.numbers("sooner_amount")
        yield "A later sum is not 0", later != 0, ("later_amount",), "Leave such trials out."
        number, session = trials.numbers("trial").astype(np.int64), trials.session_codes
        yield (
            f"Trials are numbered from 0 to {self.n_trials - 1}",
            (number >= 0) & (number < self.n_trials),
            ("trial",),
            "Use the settings that they were made with.",
        )
        shape = (int(session.max(initial=-1)) + 1, self.n_trials)
        actions, amounts = np.full(shape, -1), np.ones(shape)
        actions[session, number] = np.nan_to_num(trials.numbers("action"), nan=-1.0)
        amounts[session, number] = later
        ladder = np.broadcast_to(np.arange(self.n_trials) // self.questions, shape)
        followed = follow_world(Halving, {"later_amount": amounts, "ladder": ladder}, actions)
        expected = followed["sooner_amount"][session, number]
        yield (
            f"Sums now follow from the answers before them, in ladders of {self.questions}",
            np.abs(sooner - expected) <= CLOSE * np.abs(later),
            ("sooner_amount", "later_amount"),
            "Use the settings that they were made with.",
        )

    def _labels(self, observation: Observation) -> Sequence[str]:
        return LABELS if observation["first"] == 0 else LABELS[::-1]

    def _places(self, observation: Observation) -> Places:
        sentences = [self._sentence(observation, side) for side in ("sooner", "later")]
        first, labels = int(observation["first"]), self._labels(observation)
        return {
            "one": sentences[first],
            "two": sentences[1 - first],
            "label_one": labels[first],
            "label_two": labels[1 - first],
        }

    def _sentence(self, observation: Observation, side: str) -> str:
        amount, months = float(observation[f"{side}_amount"]), int(observation[f"{side}_delay"])
        when = self._words["months"].render(months=months) if months else self._words["now"].text
        form = self._words["receive" if amount > 0 else "pay"]
        return form.render(amount=decimal(abs(amount)), when=when)

    def _every(self) -> Iterator[dict[str, Any]]:
        parts = 2**self.questions
        for (amount, delay), part in product(self._ladders.tolist(), range(1, parts)):
            seen = {
                "sooner_amount": amount * (part / parts),
                "sooner_delay": 0,
                "later_amount": amount,
                "later_delay": delay,
            }
            yield from ({**seen, "first": first} for first in (0, 1))
