"""The public-goods game: what to put into a common pool, given what the others put in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.fields import Field, Fields, Numbers, Whole, setting
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.turn import Observation
from knownminds.environments.words.answer import decimal

from .stated import ListedQuestions, Places

COLUMNS = ("endowment", "group", "multiplier", "others")


def earned(columns: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return what a contribution earns in tokens, e - c + m (c + (n - 1) o) / n.

    Here e is the endowment, c the contribution (the action), m the multiplier, n the group size,
    and o what each of the others puts in. NaN without an action.
    """
    x = {name: np.asarray(columns[name], dtype=float) for name in (*COLUMNS, "action")}
    pool = x["action"] + (x["group"] - 1) * x["others"]
    return np.asarray(x["endowment"] - x["action"] + x["multiplier"] * pool / x["group"])


class PublicGoods(ListedQuestions):
    """How many tokens of an endowment to put into a common pool, after the others have put in
    theirs.

    A round is played with other people each time. Every member of the group has the endowment. All
    contributions are multiplied and shared out equally, so that a token brings its owner multiplier
    / group. The contribution of each of the others is shown: every amount from 0 to the endowment,
    with every multiplier, in mixed order. The action is the contribution.

    Nothing is shown between rounds; everything can be paid at the end. There are several
    multipliers for this reason: an agent who dislikes having more than the others by beta matches
    their contribution if 1 - multiplier / group < beta, and gives nothing otherwise. With one
    multiplier it would show only on which side of that number its beta lies.

    Performance is what the contribution earns in tokens; see `earned`.
    """

    name = "public_goods"
    summary = "how much of an endowment to put into a common pool, others' shares shown, no rewards"
    source = "Fischbacher, Gaechter and Fehr 2001"
    usual_model = "conditional_cooperator"
    fields = Fields(
        Field("endowment", (1, np.inf), "what each member has", unit="tokens"),
        Field("group", (2, np.inf), "members, oneself included", unit="members"),
        Field(
            "multiplier",
            (0.0, np.inf),
            "by which what is put in grows before it is shared",
            unit="times",
        ),
        Field("others", (0, np.inf), "what each of the others has put in", unit="tokens"),
    )
    shipped = Path(__file__).with_suffix(".toml")
    performance_bounds = (0.0, np.inf)
    n_numbers = 1
    noun = "tokens"
    thought = "I weigh what I keep against what the group gets."

    endowment: int = setting(10, Whole(1, 100), "Tokens of each member.")
    group: int = setting(4, Whole(2), "How many members a group has, oneself included.")
    multipliers: Sequence[float] = setting(
        (1.2, 1.6, 2.4, 3.2),
        Numbers(
            "are different numbers above 0",
            lambda v: np.all(v > 0) and len(set(v.tolist())) == len(v),
        ),
        "Factors by which contributions grow before they are shared.",
    )

    def prepare(self) -> None:
        self.n_actions = self.endowment + 1
        super().prepare()

    def _questions(self) -> dict[str, NDArray[Any]]:
        rounds = list(product(self.multipliers, range(self.endowment + 1)))
        multiplier, others = np.array(rounds).T
        return {
            "endowment": np.full(len(rounds), self.endowment),
            "group": np.full(len(rounds), self.group),
            "multiplier": multiplier,
            "others": others.astype(np.int64),
        }

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return what each contribution earns, in tokens."""
        return earned({name: trials.numbers(name) for name in (*COLUMNS, "action")})

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        x = {name: trials.numbers(name) for name in COLUMNS}
        yield (
            f"Each member has {self.endowment} tokens",
            x["endowment"] == self.endowment,
            ("endowment",),
            "Set endowment to what they had.",
        )
        yield "A multiplier is above 0", x["multiplier"] > 0, ("multiplier",), "Correct it."
        yield (
            "What each of the others puts in lies between 0 and the endowment",
            x["others"] <= x["endowment"],
            ("others", "endowment"),
            "Correct it.",
        )

    def _labels(self, observation: Observation) -> Sequence[str]:
        return [str(tokens) for tokens in range(self.n_actions)]

    def _places(self, observation: Observation) -> Places:
        group = int(observation["group"])
        return {
            "endowment": int(observation["endowment"]),
            "group": group,
            "rest": group - 1,
            "multiplier": decimal(float(observation["multiplier"])),
            "others": int(observation["others"]),
        }
