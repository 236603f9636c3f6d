"""Causal strength: how strongly a cause brings its effect about or prevents it, by counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.causes.likelihoods import LikelihoodQuestions
from knownminds.environments.fields import (
    Field,
    Fields,
    Numbers,
    OneOf,
    OrNone,
    SomeOf,
    Whole,
    coded,
    setting,
)
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.trials import Trials
from knownminds.environments.search_ranges import Among, Span
from knownminds.environments.turn import Observation

from .contingency import causal_power, causal_support, delta_p

Array = NDArray[np.float64]
Table = tuple[int, int, int, int]  # cases with both, cause alone, effect alone, neither
Shown = Literal["table", "list"]
Asking = Literal["strength", "counterfactual"]
COUNTS = ("both", "cause", "effect", "neither")
KINDS = ("produce", "prevent")
PRODUCE, PREVENT = range(2)
SHOWN: tuple[str, ...] = get_args(Shown)
ASKING: tuple[str, ...] = get_args(Asking)
STORIES = ("garden", "dairy", "harbor", "stable")
ORDERS = 1000  # a list may be shown in so many orders
MOST_CASES = 500  # a table has so many cases at most

_PARTS = ("introduction", "one", "many", "name")
_OF_CASES = ("with_cause", "without_cause", "with_effect")
_IN_LISTS = ("has_cause", "lacks_cause", "has_effect", "lacks_effect")


def judged_contrast(columns: Mapping[str, Any]) -> Array:
    """Return the contrast in the queried direction, [rows]; 0 where it is below 0."""
    signed = np.asarray(delta_p(*(columns[name] for name in COUNTS)))
    return np.maximum(np.where(np.asarray(columns["kind"]) == PREVENT, -signed, signed), 0.0)


def judged_power(columns: Mapping[str, Any]) -> Array:
    """Return the power to produce or to prevent, as queried, [rows]; 0 where it is below 0."""
    counts = [np.asarray(columns[name], dtype=float) for name in COUNTS]
    prevents = np.asarray(columns["kind"]) == PREVENT
    signed = causal_power(*counts)
    flat = delta_p(*counts) == 0.0  # power to prevent may be 0 here, power to produce NaN
    power = np.where(prevents, -signed, signed)
    room = np.where(prevents, counts[2] > 0, counts[3] > 0)
    return np.where(flat, np.where(room, 0.0, np.nan), np.maximum(power, 0.0))


def judged_support(columns: Mapping[str, Any]) -> Array:
    """Return the causal support for the queried direction, [rows]."""
    a, b, c, d = (np.asarray(columns[name], dtype=float) for name in COUNTS)
    prevents = np.asarray(columns["kind"]) == PREVENT
    pairs = [np.where(prevents, y, x) for x, y in ((a, b), (b, a), (c, d), (d, c))]
    return causal_support(*pairs)


class CausalStrength(LikelihoodQuestions):
    """Judgements of causal strength, from 0 to 100, given counts of cases.

    A prompt tells of cases with and without a possible cause, and in how many of each the effect
    came about. It shows them as two lines or as a list of single cases. It asks how strongly the
    cause brings the effect about (kind 0) or prevents it (kind 1). With asked="counterfactual" it
    asks in how many of a hundred cases the cause would make the difference. The right answer is
    `causal_power` by the Power PC theory (Cheng 1997). `performance` is 1 minus the distance from
    it, as a share of the scale. Each trial stands alone: nothing is paid, and no prompt tells of
    earlier ones.

    As shipped, the shares of the effect with and without the cause are among 0, 1/4, 1/2, 3/4 and
    1. A session asks about every such pair in the direction in which the two differ (in both
    directions if they are equal). Pairs that leave the cause no room are left out: 14 remain of
    either kind. The evidence of a table for the cause, `support`, follows from its counts, and is
    added to trials that lack it.
    """

    name = "causal_strength"
    summary = (
        "how strongly a cause brings about or prevents an effect, by counts of cases, 0 to 100"
    )
    source = "Buehner, Cheng and Clifford 2003; Griffiths and Tenenbaum 2005"
    usual_model = "strength_judge"
    searched: ClassVar = {
        "cases": Among((4, 8, 16, 32)),
        "levels": Among((3, 5, 9)),
        "repeats": Span(1, 20),
    }
    fields = Fields(
        *(
            Field(name, (0, MOST_CASES), f"cases with {told}", unit="cases")
            for name, told in zip(
                COUNTS, ("both", "the cause alone", "the effect alone", "neither"), strict=True
            )
        ),
        Field("kind", (0, 1), f"what is asked: {coded(KINDS)}"),
        Field(
            "support",
            (-1000.0, 1000.0),
            "causal support, a log Bayes factor; by the counts",
            unit="nats",
        ),
        Field("story", (0, len(STORIES) - 1), coded(STORIES), "wording"),
        Field("order", (0, ORDERS - 1), "in which order a list has the cases", "wording"),
        Field("round", "repeats", "from 0", "wording"),
    )
    performance_bounds = (0.0, 1.0)

    cases: int = setting(
        8,
        Whole(1, MOST_CASES // 2),
        "Cases with the cause, and as many without; a multiple of levels - 1.",
    )
    levels: int = setting(
        5,
        Whole(2, 21),
        "How many shares of the effect there are, evenly from 0 to 1; tables have every pair.",
    )
    tables_told: tuple[Table, ...] | None = setting(
        None,
        OrNone(
            Numbers(
                f"are rows of four counts of {MOST_CASES} cases at most, some with the cause and "
                "some without it, in which the cause has room to make a difference",
                lambda rows: (
                    np.all(rows >= 0)
                    and np.all(rows.sum(axis=1) <= MOST_CASES)
                    and np.isfinite(causal_power(*rows.T))
                ),
                (0, 4),
                decimals=0,
            )
        ),
        "Other tables instead of these: rows of four counts, with both, with the cause "
        "alone, with the effect alone, with neither; each is judged in its direction.",
        called="contingencies",
    )
    kinds: tuple[str, ...] = setting(KINDS, SomeOf(KINDS), "Which directions are asked about.")
    shown: Shown = setting(
        "table", OneOf(SHOWN), '"table" tells the counts, "list" every case on a line of its own.'
    )
    asked: Asking = setting(
        "strength",
        OneOf(ASKING),
        '"strength" asks how strongly it works; "counterfactual", in how many of 100 cases that '
        "would lack the effect (or have it) it would make the difference (Buehner et al. 2003).",
    )

    def prepare(self) -> None:
        self._asked = [
            (*table, kind) for table, kind in self._questions() if KINDS[kind] in self.kinds
        ]
        if not self._asked:
            raise ValueError(
                f"A session asks at least one question; no table is of the kind {self.kinds[0]}. "
                "Add one, or ask of the other kind."
            )
        grid = dict(zip((*COUNTS, "kind"), np.array(self._asked).T, strict=True))
        self._support = judged_support(grid)
        self._load_words()

    @property
    def n_trials(self) -> int:
        return len(self._asked) * self.repeats

    @property
    def n_draws(self) -> int:
        """Three numbers per trial: its position, its story, the order of its list."""
        return 3 * self.n_trials

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the questions in their order, round by round."""
        position, story, order = np.moveaxis(uniforms.reshape(len(uniforms), 3, -1), 1, 0)
        n = len(self._asked)
        turn = np.argsort(position + np.arange(self.n_trials) // n, axis=1)
        columns = np.array(self._asked, dtype=np.int64).T
        names = (*COUNTS, "kind")
        return {
            **{name: column[turn % n] for name, column in zip(names, columns, strict=True)},
            "support": self._support[turn % n],
            "story": np.floor(story * len(STORIES)).astype(np.int64),
            "order": np.floor(order * ORDERS).astype(np.int64),
            "round": turn // n,
        }

    def complete(self, trials: Trials) -> pd.DataFrame:
        frame = trials.frame
        if "support" in frame or not {*COUNTS, "kind"} <= set(frame):
            return frame
        columns = {name: trials.numbers(name) for name in (*COUNTS, "kind")}
        return frame.assign(support=judged_support(columns))

    def right(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return causal power."""
        return 100.0 * judged_power(columns)

    def shortcuts(self, observation: Observation) -> Mapping[str, float]:
        """Return the counts that can be read off, and the contrast."""
        counts = {f"cases with {name}": float(observation[name]) for name in ("both", "effect")}
        shown = {name: np.array([observation[name]]) for name in (*COUNTS, "kind")}
        return counts | {"contrast": float(judged_contrast(shown)[0])}

    def _text(self, labels: Any, observation: Observation) -> str:
        words, story = self._words, STORIES[int(observation["story"])]
        parts = (*_PARTS, *_OF_CASES, *_IN_LISTS)
        said = {part: words[f"{story}_{part}"].text for part in parts}
        kind = KINDS[int(observation["kind"])]
        return words["prompt"].render(
            introduction=said["introduction"],
            cases=self._cases(observation, said),
            asked=words[f"{self.asked}_{kind}"].render(**said),
            answer=words[f"answer_{self.answer}"].text,
        )

    def _questions(self) -> Iterable[tuple[Table, int]]:
        """Yield each table with the direction that is asked about."""
        if self.tables_told is not None:
            for table in self.tables_told:
                yield table, PRODUCE if delta_p(*table) >= 0 else PREVENT
            return
        steps, n = self.levels - 1, self.cases
        if n % steps:
            raise ValueError(
                f"cases is a multiple of levels - 1, so that shares are even; got {n} cases and "
                f"{self.levels} levels. Take {steps * max(n // steps, 1)} cases."
            )
        for kind in (PRODUCE, PREVENT):
            for x in range(0, n + 1, n // steps):
                for y in range(0, n + 1, n // steps):
                    high, low, end = (x, y, n) if kind == PRODUCE else (y, x, 0)
                    if high >= low and y != end:
                        yield (x, n - x, y, n - y), kind

    def _cases(self, observation: Observation, said: Mapping[str, str]) -> str:
        """Return the cases in words, as a table or as a list."""
        words = self._words
        a, b, c, d = (int(observation[name]) for name in COUNTS)
        if self.shown == "table":
            counts = {"n_with": a + b, "n_without": c + d, "both": a, "effect": c}
            return words["table"].render(**counts, **said)
        kinds = np.repeat(np.arange(4), (a, b, c, d))
        kinds = np.random.default_rng(int(observation["order"])).permutation(kinds)
        lines = [
            words["case"].render(
                one=said["one"],
                number=number,
                cause=said["has_cause" if kind < 2 else "lacks_cause"],
                effect=said["lacks_effect" if kind % 2 else "has_effect"],
            )
            for number, kind in enumerate(kinds.tolist(), 1)
        ]
        return "\n".join([words["list_begins"].render(**said), *lines])
