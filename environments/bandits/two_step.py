"""The two-step task: a first choice leads to one of two states, and a second choice there pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.environments.design import Design
from knownminds.environments.fields import YES_OR_NO, Field, Fields, Number, Numbers, Whole, setting
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Searched, Span
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import Answer, parse_label
from knownminds.environments.words.history import (
    FIRST,
    LETTERS,
    Filled,
    Retelling,
    Words,
    two_names,
)
from knownminds.environments.words.prompt import Message
from knownminds.environments.words.slots import Label, Option, Options, Slot, number_in
from knownminds.environments.world import World

NOWHERE = -1  # the state at the first stage

_N_ALIENS = 4  # two on each of two planets
_SMALLEST = 2.0**-54  # this is below the least uniform number above 0, and its quantile is finite


class Gems(Slot):
    """Words for what an alien pays, in gems; a shuttle pays nothing."""

    def write(self, options: Options, labels: Any, turn: Turn) -> object:
        reward = turn.reward
        return "" if reward is None else f"{reward:g} gem{'' if reward == 1 else 's'}"

    def read(self, options: Options, labels: Any, word: str, seen: Observation) -> float:
        return number_in(word.split(" ")[0])


class ShuttleWorld(World):
    """A shuttle reaches its planet or the other one, and an alien of that planet pays.

    Without an answer at the first stage there is no second one.
    """

    span = "day"

    def begin(self) -> None:
        self.shuttle: Any = 0
        self.planet: Any = NOWHERE

    def show(self, drawn: Any) -> dict[str, Any]:
        if drawn.stage == 0:
            return {"state": NOWHERE, "present": True}
        self.planet = self.shuttle if drawn.arrives > 0 else 1 - self.shuttle
        return {"state": self.planet, "present": self.shuttle >= 0}

    def pay(self, drawn: Any, action: Any) -> Any:
        if drawn.stage == 0:
            self.shuttle = action
            return None
        return drawn.gems[action] if self.planet == 0 else drawn.gems[2 + action]


class TwoStep(Retelling):
    """Days of two choices: a shuttle that leads to one of two planets, then an alien that pays.

    Shuttle (action) k of the first stage reaches planet (state) k with probability `transition` and
    the other planet otherwise. Each planet has two aliens. Each alien pays 1 with a probability of
    its own, and otherwise 0. These four probabilities start at uniform numbers within `rates` and
    change every day by a Normal(0, drift) step, reflected at the ends of `rates`.

    A day takes up two trials: trial 2 d is the first stage of day d, trial 2 d + 1 its second. The
    column "stage" is 0 or 1. "state" is the planet (0 or 1) at the second stage, and -1 at the
    first, where there is no planet yet. The first stage pays nothing. If its answer is missing, the
    second stage falls away.
    """

    name = "two_step"
    summary = "a shuttle to one of two planets, then a deal with one of two aliens there"
    source = "Daw, Gershman, Seymour, Dayan and Dolan 2011"
    usual_model = "two_step_reduced"
    searched: ClassVar = {
        "n_days": Span(10, 200),
        "transition": Span(0.55, 0.95, 0.05),
        "drift": Span(0.0, 0.2, 0.025),
        "rates": Searched((Span(0.0, 0.4, 0.05), Span(0.6, 1.0, 0.05)), lambda *ends: [*ends]),
    }
    fields = Fields(
        Field("stage", (0, 1), "0 for the shuttle, 1 for the alien"),
        Field("transition", (0.5, 1.0), "that a shuttle reaches its planet", unit="probability"),
        Field("state", (NOWHERE, 1), "the planet; -1 at the first stage", dependent=True),
        FIRST,
    )
    sequence = ("stage",)
    shipped = Path(__file__).with_suffix(".toml")
    world = ShuttleWorld
    n_actions = 2
    performance_bounds = (0.0, 1.0)

    kinds = ("flight", "deal")
    slots: ClassVar = {
        "planet": Label("state", "planets"),
        "first": Option("first"),
        "second": Option("first", 1),
        "label": Option("action"),
        "reward": Gems("reward"),
    }
    thought = "I go by what my days have brought so far."

    n_days: int = setting(
        20, Whole(1), "Days of two choices; 20 in CogBench, 200 is usual with people.", size=True
    )
    transition: float = setting(
        0.7, Number(0.5, 1.0), "Probability that a shuttle reaches its planet."
    )
    drift: float = setting(
        0.025, Number(0.0), "Standard deviation of the daily change of each alien's probability."
    )
    rates: tuple[float, float] = setting(
        (0.25, 0.75),
        Numbers(
            "holds the lowest and the highest probability of an alien to pay, from 0 to 1",
            lambda rates: 0 <= rates[0] <= rates[1] <= 1,
            (2,),
        ),
        "Lowest and highest probability of an alien to pay.",
    )
    released: bool = setting(
        False,
        YES_OR_NO,
        "Whether probabilities stop at the ends of `rates` as in the released code of CogBench, "
        "instead of being reflected.",
    )
    tell_transition: bool = setting(
        False,
        YES_OR_NO,
        "Whether the introduction says how often a shuttle reaches its planet, and that the "
        "chances of aliens change independently. Without, as in CogBench, players see from their "
        "journal alone that flights may end elsewhere. Models of this task that plan know the "
        "probability either way.",
    )

    def prepare(self) -> None:
        self._choose_words(
            introduction="introduction_told" if self.tell_transition else "introduction",
            n_days=self.n_days,
            percent=f"{100 * self.transition:g}",
        )

    @property
    def n_trials(self) -> int:
        return 2 * self.n_days

    @property
    def n_draws(self) -> int:
        """Per day the flight, four payments, four changes, two orders of mention; then names."""
        return 11 * self.n_days + len(LETTERS)

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the stages, whether flights go as planned, what all aliens would pay, and orders.

        "arrives" [N, n_trials] says, on both stages of a day, whether the shuttle reaches its
        planet. "gems" [N, n_trials, 4] is what the aliens pay that day, with alien a of planet s at
        position 2 s + a. "chances" has the probability of each payment.
        """
        n, days = len(uniforms), self.n_days
        drawn = uniforms[:, : 11 * days].reshape(n, days, 11)
        chances = self._chances(drawn[..., 5:9])
        gems = drawn[..., 1:5] < chances
        return {
            "day": np.broadcast_to(np.arange(2 * days) // 2, (n, 2 * days)),
            "stage": np.broadcast_to(np.arange(2 * days) % 2, (n, 2 * days)),
            "transition": np.full((n, 2 * days), self.transition),
            "arrives": np.repeat(drawn[..., 0] < self.transition, 2, axis=1).astype(np.int64),
            "gems": np.repeat(gems, 2, axis=1).astype(np.float64),
            "chances": np.repeat(chances, 2, axis=1),
            "first": (drawn[..., 9:] < 0.5).reshape(n, 2 * days).astype(np.int64),
        }

    def labels(self, uniforms: NDArray[np.float64]) -> dict[str, Any]:
        letters = LETTERS[np.argsort(uniforms[11 * self.n_days :])]
        return {
            "planets": letters[:2].tolist(),
            "aliens": letters[2 : 2 + _N_ALIENS].reshape(2, 2).tolist(),
        }

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        noun = "alien" if observation["stage"] else "shuttle"
        options = self.options(labels, observation)
        return parse_label(text, options, self.reasoning != "none", noun, self.marker)

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        stage, state, trial = map(trials.numbers, ("stage", "state", "trial"))
        action, reward = trials.numbers("action"), trials.numbers("reward")
        second = stage == 1
        yield (
            "First stages have even trial numbers and second stages odd ones",
            stage == trial % 2,
            ("stage",),
            "Number the trials 2 d + stage for day d from 0.",
        )
        yield (
            "A state is 0 or 1 at the second stage and -1 at the first",
            second == (state != NOWHERE),
            ("state",),
            "Recode the states, for example with knownminds.environments.stages_of_days.",
        )
        code = trials.session_codes
        follows = np.zeros(len(trials), dtype=bool)
        follows[1:] = (code[1:] == code[:-1]) & (trial[1:] == trial[:-1] + 1)
        follows[1:] &= ~np.isnan(action[:-1])
        yield (
            "A second stage follows an answered first stage of its day, in the row before",
            ~second | follows,
            ("stage",),
            "Drop the row, or fill in the first stage.",
        )
        yield (
            "Rewards are 0 or 1 where the second stage has an action, and missing elsewhere",
            np.where(second & ~np.isnan(action), np.isin(reward, (0, 1)), np.isnan(reward)),
            ("action", "reward"),
            "Recode them, for example 1 for a treasure and 0 for none.",
        )

    def labels_in(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return planets and aliens in the order of their letters, with a sign for unnamed ones."""
        aliens = self._names_by("planet", messages)
        planets = aliens.pop("", set()) | set(aliens)
        for verb, heard in (("are", planets), *((f"live on {p}", a) for p, a in aliens.items())):
            if len(heard) > 2:
                what = "planets" if verb == "are" else "aliens"
                raise ValueError(
                    f"There {verb} two {what}; the prompt names {', '.join(sorted(heard))}. "
                    "Use the settings and templates it was rendered with."
                )
        known = two_names(planets)
        named = [two_names(aliens.get(planet, set())) for planet in known]
        return {"planets": known, "aliens": named}

    def _chances(self, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the aliens' probabilities day by day, given uniforms[N, days, 4]."""
        low, high = self.rates
        begin = low + (high - low) * uniforms[:, 0]
        steps = self.drift * ndtri(np.maximum(uniforms[:, 1:], _SMALLEST))
        if self.released:
            chances = np.empty_like(uniforms)
            chances[:, 0] = begin
            for day in range(1, uniforms.shape[1]):
                chances[:, day] = np.clip(chances[:, day - 1] + steps[:, day - 1], low, high)
            return chances
        # Steps are symmetric. So a walk that is reflected at the ends has the same distribution as
        # a free walk that is folded into the interval afterwards.
        free = np.concatenate([begin[:, None], begin[:, None] + np.cumsum(steps, axis=1)], axis=1)
        width = high - low
        if width == 0.0:
            return np.full_like(free, low)
        return high - np.abs((free - low) % (2.0 * width) - width)

    def _kind(self, observation: Observation) -> str:
        return self.kinds[int(observation["stage"])]

    def _words(self, labels: Any, observation: Observation) -> Words:
        return {"day": int(observation["trial"]) // 2 + 1, **super()._words(labels, observation)}

    def _seen(
        self, design: Design, kind: str, filled: Filled, turns: Sequence[Turn]
    ) -> Observation:
        stage = self.kinds.index(kind)
        if not filled["day"].isdigit():
            raise ValueError(f"The days of a prompt are whole numbers; got {filled['day']!r}.")
        known = {
            "trial": 2 * (int(filled["day"]) - 1) + stage,
            "stage": stage,
            "transition": self.transition,
        }
        return self._shown_by(
            design.labels, filled, known if stage else {**known, "state": NOWHERE}
        )

    def options(self, labels: Any, observation: Observation) -> list[str]:
        options: list[str] = labels["planets"]
        if observation["stage"]:
            options = labels["aliens"][observation["state"]]
        return options
