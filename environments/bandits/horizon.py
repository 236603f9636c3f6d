"""Horizon: short and long games with two machines, after four plays that were made for you."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.environments.design import Design
from knownminds.environments.fields import Field, Fields, Number, Numbers, Whole, setting
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Searched, Span
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import decimal
from knownminds.environments.words.history import FIRST, LETTERS, Filled
from knownminds.environments.words.slots import Option, Slot, number_in, position_of
from knownminds.environments.world import World

from .two_machines import TwoMachines

N_FORCED = 4
ARMS = tuple(f"forced_{k + 1}" for k in range(N_FORCED))
POINTS = tuple(f"forced_points_{k + 1}" for k in range(N_FORCED))
_NTH = ("one", "two", "three", "four")
_WORDS = tuple(f"{what}_{nth}" for what in ("forced", "points") for nth in _NTH)
_FIELDS = dict(zip(_WORDS, (*ARMS, *POINTS), strict=True))  # what each placeholder shows

_PER_GAME = 2 + N_FORCED + 4 + N_FORCED  # uniforms of a game besides those of its free plays
_MEAN = "points per play of machine {} so far"
_ROUNDED = 0.05  # a mean may differ by so much from the mean of the earlier plays


def _plays(environment: Horizon) -> tuple[int, int]:
    """Return the numbers of plays that a machine can have had."""
    return 1, N_FORCED + environment.long_horizon - 1


class Machines(World):
    """The two machines of a game, and what its plays have shown so far, forced plays included."""

    span = "game"

    def begin(self) -> None:
        self.plays_0: Any = 0
        self.plays_1: Any = 0
        self.paid_0: Any = 0.0
        self.paid_1: Any = 0.0

    def show(self, drawn: Any) -> dict[str, Any]:
        count_0 = drawn.forced_count[0] + self.plays_0
        count_1 = drawn.forced_count[1] + self.plays_1
        return {
            "mean_0": (drawn.forced_sum[0] + self.paid_0) / count_0,
            "mean_1": (drawn.forced_sum[1] + self.paid_1) / count_1,
            "count_0": count_0,
            "count_1": count_1,
        }

    def pay(self, drawn: Any, action: Any) -> Any:
        points = drawn.points[action]
        first, second = action == 0, action == 1
        self.plays_0 = self.plays_0 + first
        self.plays_1 = self.plays_1 + second
        self.paid_0 = self.paid_0 + first * points
        self.paid_1 = self.paid_1 + second * points
        return points


class Horizon(TwoMachines):
    """Games with two machines: four forced plays, then one free play or several.

    In each game one machine, chosen at random, has a mean of one of `base_means`. The mean of the
    other lies higher or lower by one of `differences`. A play pays a whole number of points, Normal
    around the mean. The four forced plays show either each machine twice, or one of them once and
    the other three times, in mixed order. The number of free plays that are left is shown.

    A trial is a free play. Game g has the trials from long_horizon x g on; a game with one free
    play has only the first of them. Means and counts include the forced plays. A prompt tells of
    its own game alone.
    """

    name = "horizon"
    summary = "two-armed bandits after four forced plays, one or six free ones"
    source = "Wilson, Geana, White, Ludvig and Cohen 2014, as in CogBench"
    usual_model = "horizon_explorer"
    searched: ClassVar = {
        "n_games": Span(10, 200),
        "long_horizon": Span(2, 12),
        "long_share": Span(0.0, 1.0, 0.05),
        "unequal_share": Span(0.0, 1.0, 0.05),
        "differences": Searched(
            (Span(1, 10), Span(1, 6, even=True), Span(1.2, 3.0, 0.1)),
            lambda least, n, ratio: [float(round(least * ratio**k)) for k in range(n)],
        ),
    }
    fields = Fields(
        Field("game", "n_games", "number of the game, from 0"),
        Field(
            "horizon",
            lambda environment: (1, environment.long_horizon),
            "free plays of the game",
            unit="plays",
        ),
        Field("play", "long_horizon", "which free play, from 0"),
        *(Field(f"mean_{a}", help=_MEAN.format(a), dependent=True, unit="points") for a in (0, 1)),
        *(
            Field(f"count_{a}", _plays, f"plays of machine {a} so far", dependent=True)
            for a in (0, 1)
        ),
        FIRST,
        *(Field(name, (0, 1), "machine of a forced play", "wording") for name in ARMS),
        *(Field(name, help="what it paid", role="wording", unit="points") for name in POINTS),
        Field("true_mean_0", help="mean of machine 0", role="hidden", unit="points"),
        Field("true_mean_1", help="mean of machine 1", role="hidden", unit="points"),
    )
    sequence = ("game",)
    shipped = Path(__file__).with_suffix(".toml")
    world = Machines
    n_actions = 2

    slots: ClassVar = {"label": Option("action"), "reward": Slot("reward")}
    noun = "machine"
    thought = "I weigh what each machine has paid, how often I saw it, and the plays that are left."

    n_games: int = setting(100, Whole(1), "Games; 100 in CogBench.", size=True)
    long_horizon: int = setting(6, Whole(2), "Free plays of a long game; short games have one.")
    long_share: float = setting(0.5, Number(0.0, 1.0), "Probability that a game is a long one.")
    unequal_share: float = setting(
        0.5,
        Number(0.0, 1.0),
        "Probability that one machine is shown once and the other three times.",
    )
    base_means: tuple[float, ...] = setting(
        (40.0, 60.0), Numbers("are numbers"), "Means of the one machine, drawn evenly."
    )
    differences: tuple[float, ...] = setting(
        (4.0, 8.0, 12.0, 20.0, 30.0),
        Numbers("are numbers above 0", lambda values: values > 0.0),
        "By how much the other one's mean lies above or below it, drawn evenly.",
    )
    sd: float = setting(
        8.0, Number(above=0.0), "Standard deviation of a play's points, before they are rounded."
    )

    def prepare(self) -> None:
        # An introduction tells the forced plays of its game: filled in when it is rendered.
        later = {name: f"{{{name}}}" for name in ("game", "horizon", *_WORDS)}
        self._choose_words(n_games=self.n_games, **later)

    @property
    def n_trials(self) -> int:
        return self.n_games * self.long_horizon

    @property
    def n_draws(self) -> int:
        """Some numbers for each game, three for each free play, and those that draw the names."""
        return (_PER_GAME + 3 * self.long_horizon) * self.n_games + len(LETTERS)

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return games and forced plays, and what both machines would pay on each free play.

        "forced_count" and "forced_sum" hold the plays and points of both machines before the first
        free play. "points" [N, n_trials, 2] holds what both would pay.
        """
        n, games, plays = len(uniforms), self.n_games, self.long_horizon
        thrown = uniforms[:, : (_PER_GAME + 3 * plays) * games].reshape(n, games, -1)
        thrown = np.maximum(thrown, 2.0**-54)  # the normal quantile of this number is finite
        parts = np.split(thrown, np.cumsum([1, 1, N_FORCED, 4, N_FORCED, 2 * plays]), axis=2)
        long, unequal, shuffled, means, forced_noise, noise, mention = parts

        horizon = np.where(long[..., 0] < self.long_share, plays, 1)
        # Machine 1 is shown twice; in games of unequal information it is shown once or three times.
        lot = unequal[..., 0]
        once = lot < 0.5 * self.unequal_share
        thrice = ~once & (lot < self.unequal_share)
        shown = np.where(once, 1, np.where(thrice, 3, 2))
        arm = (np.argsort(shuffled, axis=2) < shown[..., None]).astype(np.int64)

        base = np.array(self.base_means)[(means[..., 0] * len(self.base_means)).astype(np.int64)]
        gap = np.array(self.differences)[(means[..., 1] * len(self.differences)).astype(np.int64)]
        other = base + np.where(means[..., 2] < 0.5, gap, -gap)
        swapped = means[..., 3] < 0.5
        mean = np.stack([np.where(swapped, other, base), np.where(swapped, base, other)], axis=2)

        forced = self._pay(np.take_along_axis(mean, arm, axis=2), forced_noise)
        count_1, sum_1 = arm.sum(axis=2), (arm * forced).sum(axis=2)
        count = np.stack([N_FORCED - count_1, count_1], axis=2)
        total = np.stack([forced.sum(axis=2) - sum_1, sum_1], axis=2)
        points = self._pay(mean[:, :, None, :], noise.reshape(n, games, plays, 2))

        play = np.broadcast_to(np.arange(plays), (n, games, plays))
        per_game = {
            "game": np.broadcast_to(np.arange(games), (n, games)),
            "horizon": horizon,
            "true_mean_0": mean[..., 0],
            "true_mean_1": mean[..., 1],
            **{name: arm[..., k] for k, name in enumerate(ARMS)},
            **{name: forced[..., k] for k, name in enumerate(POINTS)},
            "forced_count": count,
            "forced_sum": total,
        }
        return {
            **{name: np.repeat(values, plays, axis=1) for name, values in per_game.items()},
            "play": play.reshape(n, -1),
            "present": (play < horizon[..., None]).reshape(n, -1),
            "first": (mention < 0.5).astype(np.int64).reshape(n, -1),
            "points": points.reshape(n, -1, 2),
        }

    def recalled(self, turns: Sequence[Turn], observation: Observation) -> Sequence[Turn]:
        game = observation["game"]
        begin = len(turns)
        while begin > 0 and turns[begin - 1].observation["game"] == game:
            begin -= 1
        return turns[begin:]

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        yield (
            f"A game has 1 or {self.long_horizon} free plays",
            trials.one_of("horizon", 1, self.long_horizon),
            ("horizon",),
            "Set long_horizon to the number that was played.",
        )
        play = trials.numbers("play")
        yield (
            "Free plays of a game are numbered from 0 to horizon - 1",
            play < trials.numbers("horizon"),
            ("horizon", "play"),
            "Renumber them.",
        )
        yield (
            f"A game begins with {N_FORCED} forced plays",
            (play > 0) | (trials.numbers("count_0") + trials.numbers("count_1") == N_FORCED),
            ("count_0", "count_1"),
            "Count the plays of this game only.",
        )
        yield trials.paired("reward")
        yield (
            "Means and counts are those of all plays of the game so far",
            self._add_up(trials),
            ("mean_0", "mean_1", "count_0", "count_1"),
            "They do not follow from the trial before: count each play once, and number games "
            "anew in each session.",
        )

    def _pay(self, mean: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
        rounded: NDArray[np.float64] = np.round(mean + self.sd * ndtri(noise)) + 0.0  # never -0
        return rounded

    def _words(self, labels: Any, observation: Observation) -> dict[str, object]:
        words: dict[str, object] = {
            "game": int(observation["game"]) + 1,
            "play": int(observation["play"]) + 1,
        }
        if "first" not in observation:
            return words
        machines, first = self.options(labels, observation), int(observation["first"])
        words |= {"first": machines[first], "second": machines[1 - first]}
        words |= {"horizon": int(observation["horizon"])}
        words |= {"left": int(observation["horizon"]) - int(observation["play"])}
        for word, name in _FIELDS.items():
            value = observation[name]
            words[word] = machines[int(value)] if name in ARMS else decimal(value)
        return words

    def _seen(
        self, design: Design, kind: str, filled: Filled, turns: Sequence[Turn]
    ) -> Observation:
        game, play = (int(number_in(filled[name])) - 1 for name in ("game", "play"))
        seen: dict[str, int | float] = {
            "trial": game * self.long_horizon + play,
            "game": game,
            "play": play,
        }
        if "first" not in filled:
            return seen
        machines = self.options(design.labels, seen)
        forced: dict[str, int | float]
        if "horizon" in filled:
            forced = {"horizon": int(number_in(filled["horizon"]))}
            for word, name in _FIELDS.items():
                word_shown = filled[word]
                forced[name] = (
                    position_of(word_shown, machines) if name in ARMS else number_in(word_shown)
                )
        else:  # for a later message of a chat; the first one showed them
            before = turns[-1].observation
            forced = {name: before[name] for name in ("horizon", *ARMS, *POINTS)}
        plays = [(int(forced[a]), float(forced[p])) for a, p in zip(ARMS, POINTS, strict=True)]
        plays += [(t.action, t.reward or 0.0) for t in turns if t.action is not None]
        for a in range(self.n_actions):
            paid = [points for arm, points in plays if arm == a]
            if not paid:
                raise ValueError(
                    f"A game begins with plays of both machines; that of game {game + 1} lacks "
                    f"{machines[a]}. Use the seed, settings and templates it was rendered with."
                )
            seen |= {f"mean_{a}": sum(paid) / len(paid), f"count_{a}": len(paid)}
        return {**seen, **forced, "first": position_of(filled["first"], machines)}

    def _add_up(self, trials: Trials) -> NDArray[np.bool_]:
        """Mark the rows whose counts and means follow from the row before and its reward."""
        action, reward = trials.numbers("action")[:-1], trials.numbers("reward")[:-1]
        next_one = np.diff(trials.session_codes) == 0
        next_one &= np.diff(trials.numbers("game")) == 0
        next_one &= np.diff(trials.numbers("play")) == 1
        right = np.ones(len(trials), dtype=bool)
        for a in range(self.n_actions):
            count, mean = trials.numbers(f"count_{a}"), trials.numbers(f"mean_{a}")
            counted = count[:-1] + (action == a)
            total = count[:-1] * mean[:-1] + np.where(action == a, reward, 0.0)
            known = (count[1:] == counted) & (np.abs(mean[1:] - total / counted) <= _ROUNDED)
            right[1:] &= known | ~next_one
        return right
