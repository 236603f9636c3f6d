"""The ultimatum game: offers to accept or reject, and offers to make, of a share of a stake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.fields import Field, Fields, Number, Numbers, OrNone, SomeOf, setting
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.turn import Observation
from knownminds.environments.words.answer import decimal
from knownminds.environments.words.history import FIRST

from .stated import LABELS, ListedQuestions, Places

ROLES = ("responder", "proposer")
RESPONDER, PROPOSER = 0, 1
COLUMNS = ("role", "stake", "less", "less_chance", "more", "more_chance")
# Offers are shares of the stake. Below one half an offer reveals envy, above it guilt.
OFFERS = (0.04, 0.08, 0.12, 0.16, 0.2, 0.24, 0.28, 0.32, 0.36, 0.4, 0.44, 0.48,
          0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # fmt: skip
LOW_OFFERS, EVEN = (0.0, 0.1, 0.2), 0.5
# Each pair has the chances that the lower and the even offer are accepted. The guilt at which both
# are worth the same rises along the row, from .1 to .9 where the lower offer is nothing.
CHANCES = ((0.55, 1.0), (0.65, 1.0), (0.75, 1.0), (0.85, 1.0), (0.95, 1.0),
           (1.0, 0.9), (1.0, 0.7), (1.0, 0.55), (1.0, 0.4), (1.0, 0.2))  # fmt: skip
CLOSE = 1e-9

Proposal = tuple[float, float]  # an offer and the chance that it is accepted


def _are_proposals(pairs: NDArray[np.float64]) -> bool:
    amount, chance = pairs[..., 0], pairs[..., 1]
    right = (amount[:, 0] >= 0) & (amount[:, 0] < amount[:, 1])
    once = len(np.unique(pairs, axis=0)) == len(pairs)
    return bool(right.all() and ((chance > 0) & (chance <= 1)).all() and once)


def earned(columns: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return what an action earns in points; a mean if acceptance is left to chance.

    A responder earns the offer by accepting and nothing by rejecting. A proposer keeps the rest of
    the stake, times the chance that the offer is accepted. NaN without an action.
    """
    x = {name: np.asarray(columns[name], dtype=float) for name in (*COLUMNS, "action")}
    more = x["action"] == 1
    offer = np.where(more, x["more"], x["less"])
    chance = np.where(more, x["more_chance"], x["less_chance"])
    share = np.where(x["role"] == RESPONDER, offer, x["stake"] - offer)
    return np.where(np.isfinite(x["action"]), chance * share, np.nan)


class Ultimatum(ListedQuestions):
    """Offers of a share of a stake to accept (action 1) or reject (0), and offers to make.

    A responder is offered a part of the stake by somebody who would keep the rest; after a
    rejection both get nothing. A proposer makes the lower (action 0) or the higher (1) of two
    offers. A computer stands in for the other person and accepts each offer with a chance that is
    shown. Every question stands alone, nothing is shown between them, and everything can be paid at
    the end.

    Of the 48 questions that ship, 12 offer a responder less than half, where an envious one gives
    up points to reject. Another 6 offer half or more, and 30 ask a proposer. *A responder alone
    does not show guilt*: such an offer is rejected only if guilt outweighs all that it brings. A
    proposer gives up points to have less, at prices that follow from the chances.

    Performance is what the action earns in points; see `earned`.
    """

    name = "ultimatum"
    summary = "offers of a share of a stake, to accept or reject and to make, no rewards"
    source = "Gueth, Schmittberger and Schwarze 1982; Blanco, Engelmann and Normann 2011"
    usual_model = "inequity_averse"
    fields = Fields(
        Field("role", (0, 1), "0 responder, 1 proposer"),
        Field("stake", (0.0, np.inf), "what is divided", unit="points"),
        Field("less", (0.0, np.inf), "offer by action 0; 0 where it rejects", unit="points"),
        Field("less_chance", (0.0, 1.0), "is accepted; 0 of a rejection", unit="probability"),
        Field("more", (0.0, np.inf), "offer by action 1, or the one that it accepts",
              unit="points"),
        Field("more_chance", (0.0, 1.0), "that it is accepted", unit="probability"),
        FIRST,
    )  # fmt: skip
    shipped = Path(__file__).with_suffix(".toml")
    performance_bounds = (0.0, np.inf)
    thought = "I weigh what I would have against what the other would have."

    stake: float = setting(100.0, Number(above=0.0), "What is divided, in points.")
    offers: tuple[float, ...] | None = setting(
        None,
        OrNone(
            Numbers(
                "are different amounts from 0 to the stake",
                lambda v: np.all(v >= 0) and len(set(v.tolist())) == len(v),
            )
        ),
        "Offers to a responder in points; None for 18 from 4% of the stake to all of it.",
    )
    proposals: tuple[tuple[Proposal, Proposal], ...] | None = setting(
        None,
        OrNone(
            Numbers(
                "are different pairs of a lower and a higher offer, each an amount and the chance "
                "that it is accepted, above 0 and up to 1, as in [[[0, 1], [50, 0.8]]]",
                _are_proposals,
                (0, 2, 2),
            )
        ),
        "Pairs of offers between which a proposer chooses, [[lower, chance], [higher, chance]]; "
        "None for 30 of nothing to a fifth of the stake against half of it.",
    )
    roles: Sequence[str] = setting(ROLES, SomeOf(ROLES), "Which questions are posed.")

    def prepare(self) -> None:
        super().prepare()
        for name in ("accept", "reject"):
            if not self._words[name].text.strip():
                raise ValueError(f"The template {name!r} is a word; {self.templates} has none.")

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return what each action earns, in points."""
        return earned({name: trials.numbers(name) for name in (*COLUMNS, "action")})

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        x = {name: trials.numbers(name) for name in COLUMNS}
        yield "A stake is above 0", x["stake"] > 0, ("stake",), "Correct it."
        yield (
            "Offers lie between 0 and the stake, `less` below `more`",
            ((x["less"] < x["more"]) & (x["more"] <= x["stake"] + CLOSE))
            | ((x["role"] == RESPONDER) & (x["less"] == x["more"])),
            ("less", "more", "stake"),
            "Correct them, or exchange the two columns.",
        )
        yield (
            "A responder accepts (more_chance 1) or rejects (less_chance 0)",
            (x["role"] == PROPOSER) | ((x["less_chance"] == 0) & (x["more_chance"] == 1)),
            ("less_chance", "more_chance"),
            "Set them so where role is 0.",
        )

    def _questions(self) -> dict[str, NDArray[Any]]:
        rows: list[tuple[float, ...]] = []
        if "responder" in self.roles:
            offers = [round(share * self.stake, 9) for share in OFFERS]
            offers = list(self.offers) if self.offers is not None else offers
            self._check_within("offers", offers)
            rows += [(RESPONDER, 0.0, 0.0, offer, 1.0) for offer in offers]
        if "proposer" in self.roles:
            pairs = self.proposals or tuple(
                ((round(low * self.stake, 9), p), (EVEN * self.stake, q))
                for low, (p, q) in product(LOW_OFFERS, CHANCES)
            )
            self._check_within("proposals", [high for _, (high, _) in pairs])
            rows += [(PROPOSER, low, p, high, q) for (low, p), (high, q) in pairs]
        role, *others = np.array(rows, dtype=float).T
        amounts = dict(zip(("less", "less_chance", "more", "more_chance"), others, strict=True))
        stake = np.full(len(role), self.stake)
        return {"role": role.astype(np.int64), "stake": stake, **amounts}

    def _check_within(self, name: str, amounts: Sequence[float]) -> None:
        beyond = [amount for amount in amounts if amount > self.stake + CLOSE]
        if beyond or not amounts:
            got = f"{beyond[0]:g} of {self.stake:g}" if beyond else "none"
            raise ValueError(
                f"{name.capitalize()} lie between 0 and the stake, and there is at least one; got "
                f"{got}. Lower it, or raise the stake."
            )

    def _labels(self, observation: Observation) -> Sequence[str]:
        if observation["role"] == RESPONDER:
            return [self._words[name].text for name in ("reject", "accept")]
        return LABELS if observation["first"] == 0 else LABELS[::-1]

    def _places(self, observation: Observation) -> Places:
        stake, labels = float(observation["stake"]), self._labels(observation)
        first = int(observation["first"])
        named = {"label_one": labels[first], "label_two": labels[1 - first]}
        if observation["role"] == RESPONDER:
            offer = float(observation["more"])
            rest = decimal(round(stake - offer, 9))
            words = {"stake": decimal(stake), "offer": decimal(offer), "rest": rest}
            return {**named, "situation": self._words["responder"].render(**words)}
        ways = [self._offer(stake, observation, name) for name in ("less", "more")]
        situation = self._words["proposer"].render(
            **named, stake=decimal(stake), one=ways[first], two=ways[1 - first]
        )
        return {**named, "situation": situation}

    def _offer(self, stake: float, observation: Observation, name: str) -> str:
        offer, chance = float(observation[name]), float(observation[f"{name}_chance"])
        return self._words["offer"].render(
            offer=decimal(offer),
            rest=decimal(round(stake - offer, 9)),
            percent=decimal(round(100 * chance, 9)),
        )
