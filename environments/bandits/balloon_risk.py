"""Balloon risk: each pump is worth a point, and may burst the balloon and lose them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import Design
from knownminds.environments.fields import YES_OR_NO, Field, Fields, Numbers, OrNone, Whole, setting
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Searched, Span
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.history import FIRST, Filled, Retelling, is_missing
from knownminds.environments.words.prompt import Message, Prompt, Template
from knownminds.environments.words.slots import position_of
from knownminds.environments.world import World

STOP, INFLATE = 0, 1
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OPTIONS = ["1", "2"]
_WORDS = ("stop", "inflate", "held", "burst", "stopped")
_BITS = 32  # one uniform number yields so many fair coins


class BalloonWorld(World):
    """Shows a balloon until it is no longer inflated; a pump pays a point, or takes all back."""

    span = "balloon"
    falls_for_good = True

    def begin(self) -> None:
        self.there: Any = INFLATE

    def show(self, drawn: Any) -> dict[str, Any]:
        return {"pump": drawn.pump, "present": self.there == INFLATE}

    def pay(self, drawn: Any, action: Any) -> Any:
        self.there = action
        return action * (1.0 - drawn.bursts * drawn.pump) + 0.0  # never -0


class BalloonRisk(Retelling):
    """A player inflates balloons of several types pump by pump, and stops or sees them burst.

    A balloon whose type has the maximum M bursts at a pump that is drawn evenly from 1 to M. So
    pump k, if it is reached, bursts it with the probability 1 / (M - k + 1). Action 0 stops, and
    action 1 inflates. A pump that holds pays 1 point, a burst takes back the points of this
    balloon, and a stop pays nothing more: rewards add up to the points.

    A balloon has as many trials as its type has pumps; trials after a stop or a burst fall away. If
    an answer cannot be read, the balloon is taken away: it was neither inflated nor stopped, and
    counts for nothing.
    """

    name = "balloon_risk"
    summary = "balloons of three types, inflated for points until one stops or they burst"
    source = "Lejuez, Read, Kahler, Richards, Ramsey, Stuart, Strong and Brown 2002"
    usual_model = "balloon_pumper"
    searched: ClassVar = {
        "n_balloons": Span(3, 60),
        "maxima": Searched(
            (Span(4, 16), Span(1.0, 4.0, 0.5, even=True), Span(1, 3, even=True)),
            lambda least, times, n: [round(least * times**k) for k in range(n)],
        ),
    }
    fields = Fields(
        Field("balloon", "n_all", "number of the balloon, from 0", setting="n_balloons"),
        Field("type", "n_types", "position among the `maxima`, from 0", setting="maxima"),
        Field(
            "pump",
            lambda environment: (1, max(environment.maxima)),
            "pump that is next",
            dependent=True,
            unit="pumps",
        ),
        FIRST,
    )
    sequence = ("balloon",)
    shipped = Path(__file__).with_suffix(".toml")
    world = BalloonWorld
    n_actions = 2
    performance_bounds = (0.0, np.inf)
    ends_early = True

    noun = "option"
    thought = "I weigh one point more against all that this balloon holds."

    n_balloons: int = setting(
        None,
        OrNone(Whole(1)),
        "Balloons of each type; if None, 10 as in the paper, or 15 as in the released code.",
        size=True,
    )
    maxima: tuple[int, ...] = setting(
        (128, 32, 8),
        Numbers(
            f"are highest numbers of pumps, whole, of 1 to {len(_LETTERS)} types",
            lambda most: np.all(most > 0) and len(most) <= len(_LETTERS),
            decimals=0,
        ),
        "The highest number of pumps of each type.",
    )
    released: bool = setting(
        False,
        YES_OR_NO,
        "Whether the order is drawn as in the released code, each time a type evenly from those "
        "that have balloons left; otherwise all balloons are shuffled.",
    )

    def prepare(self) -> None:
        self.n_balloons = self.n_balloons or (15 if self.released else 10)
        self._settings["n_balloons"] = self.n_balloons
        self.n_types = len(self.maxima)
        self.n_all = self.n_types * self.n_balloons
        words = self._choose_words(
            n_types=self.n_types,
            types=", ".join(_LETTERS[: self.n_types]),
            n_balloons=self.n_balloons,
            n_all=self.n_all,
        )
        self._say_results(words)
        self._most = np.array(self.maxima)
        self._types = np.repeat(np.arange(self.n_types), self.n_balloons)

    @property
    def n_trials(self) -> int:
        return self.n_balloons * sum(self.maxima)

    @property
    def n_draws(self) -> int:
        """The order and the burst of each balloon; one number for many fair coins; the letters."""
        return 2 * self.n_all + self._n_coins + self.n_types

    @property
    def _n_coins(self) -> int:
        return -(-self.n_trials // _BITS)

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the balloons pump by pump, and which pump would burst them.

        "present" marks the pumps that can be reached: those up to the one that bursts.
        """
        n, n_all = len(uniforms), self.n_all
        kind = self._order(uniforms[:, :n_all])
        most = self._most[kind]
        # This is the pump that bursts, from 1 to the maximum.
        fatal = (uniforms[:, n_all : 2 * n_all] * most).astype(np.int64) + 1
        length = most.ravel()
        shape = (n, self.n_trials)
        begin = np.cumsum(length) - length
        pump = np.arange(1, n * self.n_trials + 1) - np.repeat(begin, length)
        fatal = np.repeat(fatal.ravel(), length)
        coins = uniforms[:, 2 * n_all : 2 * n_all + self._n_coins]
        words = (coins * 2.0**_BITS).astype("<u4").view(np.uint8)
        first = np.unpackbits(words, axis=1, count=self.n_trials)
        return {
            "balloon": np.repeat(np.tile(np.arange(n_all), n), length).reshape(shape),
            "type": np.repeat(kind.ravel(), length).reshape(shape),
            "pump": pump.reshape(shape),
            "bursts": (pump == fatal).reshape(shape),
            "present": (pump <= fatal).reshape(shape),
            "first": first.astype(np.int64),
        }

    def labels(self, uniforms: NDArray[np.float64]) -> dict[str, Any]:
        order = np.argsort(uniforms[-self.n_types :])
        return {"types": [_LETTERS[k] for k in order]}

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return the points of each balloon, in the row of its stop or burst."""
        frame = trials.frame
        action, reward = trials.numbers("action"), trials.numbers("reward")
        kept = frame["pump"].to_numpy(dtype=float) - 1.0
        lost = np.where((action == INFLATE) & (reward < 1.0), 0.0, np.nan)
        return np.where(action == STOP, kept, lost)

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        balloon, kind, pump = map(trials.numbers, self.fields.stimulus)
        action, reward = trials.numbers("action"), trials.numbers("reward")
        most = self._most[kind.astype(np.int64)]
        yield (
            "A balloon takes as many pumps as its type has at most",
            pump <= most,
            ("type", "pump"),
            "Give the maximum of each type as `maxima`.",
        )
        pumped = ((reward == 1.0) & (pump < most)) | (reward == 1.0 - pump)
        missing, stopped = np.isnan(action), action == STOP
        yield (
            "A stop pays 0, a pump that holds 1, a burst takes back the points of its balloon, "
            "and the last pump bursts it",
            np.select([missing, stopped], [np.isnan(reward), reward == 0.0], pumped),
            ("pump", "action", "reward"),
            "Rewards are changes of the points: correct them.",
        )
        follows = np.diff(trials.session_codes) == 0
        held = follows & (action[:-1] == INFLATE) & (reward[:-1] == 1.0)
        same = follows & (np.diff(balloon) == 0) & (np.diff(kind) == 0)
        due = np.append(1, 1 + np.where(held, pump[:-1], 0))
        yield (
            "After a pump that holds, the next one of the same balloon is due; after a stop, a "
            "burst or no answer, the first one of another balloon",
            (pump == due) & np.append(True, held == same),
            ("balloon", "type", "pump"),
            "Add the rows that are missing, or drop the balloon.",
        )

    def labels_in(self, messages: Sequence[Message]) -> dict[str, Any]:
        return {"types": list(_LETTERS[: self.n_types])}

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        if self.history == "chat":
            return super().render(labels, observation, turns)
        words = self._words(labels, observation)
        lines = [
            self._balloon_line(labels, list(played))
            for balloon, played in groupby(turns, key=lambda turn: turn.observation["balloon"])
            if balloon != observation["balloon"]
        ]
        if not lines:
            return Prompt((Message("user", self._opening[""].render(**words)),))
        past = "\n".join(lines)
        return Prompt((Message("user", self._retold[""].render(past=past, **words)),))

    def read(self, design: Design, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        if self.history == "chat" or len(messages) != 1:
            return super().read(design, messages)
        turns: list[Turn] = []
        filled = self._retold[""].read(messages[0].content)
        if filled is None:
            _, filled = self._must_read(self._opening, messages[0].content)
        else:
            for line in filled["past"].split("\n"):
                (_, missing), line_words = self._must_read(self._lines, line)
                turns += self._ended(design, line_words, bool(missing), turns)
        turns += self._pumped(design, filled, _count(filled["pumps"]), turns)
        return turns, self._seen(design, "", filled, turns)

    def _order(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the type of each balloon, [N, n_all]."""
        if not self.released:
            return self._types[np.argsort(uniforms, axis=1)]
        left = np.full((len(uniforms), self.n_types), self.n_balloons)
        kind = np.empty(uniforms.shape, dtype=np.int64)
        for k in range(self.n_all):
            open_types = np.cumsum(left > 0, axis=1)
            position = (uniforms[:, k] * open_types[:, -1]).astype(np.int64)
            kind[:, k] = np.argmax(open_types > position[:, None], axis=1)
            left[np.arange(len(left)), kind[:, k]] -= 1
        return kind

    def _say_results(self, words: Mapping[str, Template]) -> None:
        self._choices = [words["stop"].text, words["inflate"].text]
        self._results = {name: words[name].text for name in ("stopped", "held", "burst")}
        for said in (self._choices, list(self._results.values())):
            if len(set(said)) < len(said):
                raise ValueError(
                    f"The words for {', '.join(_WORDS[:2])} differ, and those for "
                    f"{', '.join(_WORDS[2:])}; got {', '.join(map(repr, said))}."
                )

    def _words(self, labels: Any, observation: Observation) -> dict[str, object]:
        words: dict[str, object] = {
            "balloon": int(observation["balloon"]) + 1,
            "type": labels["types"][int(observation["type"])],
            "pumps": int(observation["pump"]) - 1,
        }
        if "first" in observation:
            first = int(observation["first"])
            words |= {"first": self._choices[first], "second": self._choices[1 - first]}
        return words

    def _feedback_words(self, labels: Any, turn: Turn) -> dict[str, object]:
        pump = int(turn.observation["pump"])
        result, points = "stopped", pump - 1
        if turn.action == INFLATE:
            burst = turn.reward is None or turn.reward < 1.0
            result, points = ("burst", 0) if burst else ("held", pump)
        return {"result": self._results[result], "points": points}

    def _balloon_line(self, labels: Any, played: Sequence[Turn]) -> str:
        """Return the line of a balloon that is over."""
        last = played[-1]
        missing = is_missing(last)
        pumps = len(played) - (last.action != INFLATE)
        words = {
            **self._words(labels, last.observation),
            **self._words_after(labels, last),
            "pumps": pumps,
        }
        return self._lines["", missing].render(**words)

    def _pumped(self, design: Design, filled: Filled, n: int, turns: Sequence[Turn]) -> list[Turn]:
        """Return the n pumps of a balloon, all of which held."""
        if n == 0:
            return []
        begun = self._seen(design, "", {**filled, "pumps": "0"}, turns)
        shown = {name: begun[name] for name in ("trial", *self.fields.stimulus)}
        return [
            Turn({**shown, "trial": shown["trial"] + k, "pump": k + 1}, INFLATE, 1.0)
            for k in range(n)
        ]

    def _ended(
        self, design: Design, filled: Filled, missing: bool, turns: Sequence[Turn]
    ) -> list[Turn]:
        """Return all turns of a balloon that is over."""
        n = _count(filled["pumps"])
        result = None if missing else position_of(filled["result"], list(self._results.values()))
        if result == 2:  # after a burst, the last pump did not hold
            n -= 1
        if result == 1 or n < 0:
            raise ValueError(
                f"A balloon that is over was stopped, or burst at a pump; got {filled['result']!r} "
                f"after {filled['pumps']}. Use the templates it was rendered with."
            )
        pumped = self._pumped(design, filled, n, turns)
        last = self._seen(design, "", {**filled, "pumps": str(n)}, [*turns, *pumped])
        shown = {name: last[name] for name in ("trial", *self.fields.stimulus)}
        ends = {
            None: Turn(shown, None, None),
            0: Turn(shown, STOP, 0.0),
            2: Turn(shown, INFLATE, float(-n)),
        }
        return [*pumped, ends[result]]

    def _seen(
        self, design: Design, kind: str, filled: Filled, turns: Sequence[Turn]
    ) -> Observation:
        balloon, pump = _count(filled["balloon"]) - 1, _count(filled["pumps"]) + 1
        seen: dict[str, int | float] = {
            "trial": 0,
            "balloon": balloon,
            "type": position_of(filled["type"], design.labels["types"]),
            "pump": pump,
        }
        after, goes_on = 0, 1
        if turns:
            last = turns[-1].observation
            goes_on = int(last["pump"]) + 1 if last["balloon"] == balloon else 1
            after = int(last["balloon"]) + (goes_on == 1)
            begun = int(last["trial"]) - int(last["pump"]) + 1
            if goes_on > 1:
                seen["trial"] = begun + pump - 1
            else:
                seen["trial"] = begun + self.maxima[int(last["type"])]
        if (balloon, pump) != (after, goes_on):
            raise ValueError(
                f"Balloons and pumps follow each other; balloon {balloon + 1} with {pump - 1} "
                f"pumps does not come after {len(turns)} trials that end with balloon {after}. "
                "Use the settings and templates it was rendered with."
            )
        if "first" in filled:
            seen["first"] = position_of(filled["first"], self._choices)
        return seen

    def _paid(self, labels: Any, kind: str, filled: Filled) -> tuple[float, Mapping[str, float]]:
        result = position_of(filled["result"], list(self._results.values()))
        return (0.0, 1.0, float(-_count(filled["pumps"])))[result], {}

    def options(self, labels: Any, observation: Observation) -> list[str]:
        return _OPTIONS if observation["first"] == STOP else _OPTIONS[::-1]


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"Balloons and pumps in a prompt are whole numbers; got {text!r}.")
    return int(text)
