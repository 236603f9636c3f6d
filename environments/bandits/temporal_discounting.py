"""Temporal discounting: one sum soon or another one later, by questionnaire, grid or list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import Design
from knownminds.environments.fields import (
    YES_OR_NO,
    Field,
    Fields,
    Numbers,
    OneOf,
    OrNone,
    Whole,
    coded,
    setting,
)
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Among, Searched, Span
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import decimal
from knownminds.environments.words.history import FIRST, Filled, Retelling
from knownminds.environments.words.slots import Option
from knownminds.environments.world import Table, World, follow_world, where

Plan = Literal["adaptive", "grid", "pairs"]
PLANS: tuple[str, ...] = get_args(Plan)
SOONER, LATER = 0, 1
ITEMS = (
    "gain",
    "large_gain",
    "loss",
    "present_bias",
    "subadditivity",
    "delay_speed_up",
    "delay_length",
)
BASELINES = 3
LADDER = 3  # a baseline has so many questions at most

# A baseline climbs through the five factors. Each entry of CLIMB is the position of the next
# factor, by the present one and the choice; OVER ends the baseline. SCORES is where it ended.
START, OVER = 2, -1
CLIMB = ((OVER, OVER), (OVER, 0), (3, 1), (4, OVER), (OVER, OVER))
ASKED_AT = (2, 1, 0, 1, 2)  # by the position of the factor: which question of its baseline
SCORES = ((1, 0), (2, OVER), (OVER, OVER), (OVER, 3), (5, 4))
# The grid has 288 choices with losses, which suffice for all parameters of each discounter.
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
DELAYS = (1, 2, 3, 4, 6, 9, 12, 18, 24, 36, 48, 60)

DAYS = 365.25 / 12  # of a month
_OPTIONS = ("receive", "pay", "wait_for_more", "pay_to_have_now", "wait")
_LABELS = ("1", "2")


def _held(column: str) -> Callable[[TemporalDiscounting], tuple[float, float]]:
    """Return the range of a column: the lowest and the highest value in any question."""

    def ends(environment: TemporalDiscounting) -> tuple[float, float]:
        values = environment._questions[column]
        return values.min().item(), values.max().item()

    return ends


def _rising(low: float, high: float) -> Numbers:
    """Return the rule for numbers that rise between two others."""
    return Numbers(
        f"are numbers between {low:g} and {high:g} in rising order",
        lambda values: np.all((low < values) & (values < high)) and np.all(np.diff(values) > 0),
    )


class Questionnaire(World):
    """The later sum depends on earlier answers; a baseline may end early.

    A factor is the position of the later sum among those of its trial; OVER means that there is
    none. A baseline is over once an answer is missing.
    """

    # By the choice and the present factor, these are the factor that comes next, and the one that
    # made the participant wait.
    following = Table(np.array(CLIMB).T)
    waits = Table(np.minimum(np.array(SCORES).T, len(CLIMB) - 1))

    def begin(self) -> None:
        self.factor: Any = OVER
        self.waits_at: Any = OVER
        self.baselines: Any = 0

    def show(self, drawn: Any) -> dict[str, Any]:
        begins, builds = drawn.ladder == 0, drawn.ladder == LADDER
        self.factor = where(begins, START, where(builds, self.waits_at, self.factor))
        self.baselines = self.baselines + where(begins, 1, 0)
        return {"later_amount": drawn.later_amounts[self.factor], "present": self.factor >= 0}

    def pay(self, drawn: Any, action: Any) -> Any:
        if drawn.ladder == LADDER:
            return
        answered = action >= 0
        waits = self.waits[action, self.factor]
        self.waits_at = where((self.baselines == 1) & answered, waits, self.waits_at)
        self.factor = where(answered, self.following[action, self.factor], OVER)


class Grid(World):
    """Each trial has a single later sum."""

    def show(self, drawn: Any) -> dict[str, Any]:
        return {"later_amount": drawn.later_amounts[0]}


class TemporalDiscounting(Retelling):
    """Choices between a sooner sum (action 0) and a later one (action 1); nothing is paid.

    The adaptive questionnaire has three baselines: a gain, a gain ten times as large, and a loss.
    Each asks two or three times for the sum now against more in `delay` months. The first factor is
    the middle one of `factors`. After a choice of the sooner sum the next offer is higher, after a
    choice of the later sum it is lower. Four further items build on the factor f that made the
    participant wait in the first baseline (the largest one if none did): the same choice put off by
    `delay` months (present bias); the sum now against twice the premium after twice the delay
    (subadditivity); and the choice of the first baseline, shown as a premium for waiting (delay
    speed-up) and as the price of not waiting (delay length). So 10 to 13 of the 13 trials happen.
    After an answer that could not be read, the rest of its baseline falls away; in the first
    baseline also the items that build on it.

    The grid asks for every sooner sum (a share of `amount`) against `amount` after every delay, as
    gains and as losses, in mixed order. Take the grid to estimate parameters. Its 288 choices
    recover all parameters of the discounters (r from .83 to .99 in 300 subjects drawn from the
    priors; half of the choices do not recover the weight of losses). One questionnaire recovers
    none.

    With the design "pairs" a list of the user's own is asked for, in mixed order.

    Sums of questionnaire and grid are rounded to whole numbers; losses are negative. A participant
    who chooses the sooner sum is impatient with gains, but *patient with losses*: the choice means
    paying now rather than more later. Which option is called 1 is drawn for every trial.
    """

    name = "temporal_discounting"
    summary = "a sum soon or another one later, adaptive questionnaire or grid, no rewards"
    source = "Ruggeri et al. 2022, as in CogBench"
    usual_model = "hyperbolic_discounter"
    searched: ClassVar = {
        "design": Among(("adaptive", "grid")),  # pairs are a list of the user's own
        "shares": Searched(
            (Span(0.02, 0.5, 0.02), Span(0.6, 0.98, 0.02), Span(2, 12)),
            lambda low, high, n: [round(low + k * (high - low) / (n - 1), 4) for k in range(n)],
        ),
        "delays": Searched(
            (Span(1, 12), Span(13, 360), Span(2, 12)),
            lambda low, high, n: sorted(
                {round(low * (high / low) ** (k / (n - 1))) for k in range(n)}
            ),
        ),
        "losses": None,
        "n_repeats": Span(1, 4),
    }
    published: ClassVar = {"design": "adaptive", "n_repeats": 1}
    fields = Fields(
        Field("item", _held("item"), coded(ITEMS)),
        Field("sooner_amount", _held("sooner_amount"), "the sooner sum", unit="dollars"),
        Field("sooner_delay", _held("sooner_delay"), "until the sooner sum", unit="months"),
        Field(
            "later_amount", _held("later_amounts"), "the later sum", dependent=True, unit="dollars"
        ),
        Field("later_delay", _held("later_delay"), "until the later sum", unit="months"),
        FIRST,
    )
    shipped = Path(__file__).with_suffix(".toml")
    performance_bounds = None
    n_actions = 2
    feedback = False
    slots: ClassVar = {"label": Option("action")}
    noun = "option"
    thought = "I weigh how much there is against how long it takes."

    plan: Plan = setting(
        "adaptive",
        OneOf(PLANS),
        'The questionnaire, "adaptive", the "grid", or a list of "pairs".',
        called="design",
    )
    amount: int = setting(
        500, Whole(1), "The smaller sum of the questionnaire, the larger one of the grid."
    )
    delay: int = setting(12, Whole(1), "Delay of the questionnaire, in months.")
    factors: tuple[float, ...] = setting(
        (1.01, 1.02, 1.1, 1.2, 1.5),
        _rising(1.0, inf),
        "Factors of the questionnaire: five, in rising order.",
    )
    shares: tuple[float, ...] = setting(
        SHARES, _rising(0.0, 1.0), "Grid only: the sooner sum as shares of the later one."
    )
    delays: tuple[int, ...] = setting(
        DELAYS,
        replace(_rising(0.0, inf), what="are months in rising order", decimals=0),
        "Grid only: delays of the later sum.",
    )
    losses: bool = setting(True, YES_OR_NO, "Grid only: whether there are losses as well.")
    pairs: tuple[tuple[float, ...], ...] | None = setting(
        None,
        OrNone(Numbers("are numbers", shape=(0, 4))),
        "Pairs only: the questions, each [sooner sum, its delay, later sum, its delay]. Both sums "
        "have the same sign; delays are months, and need not be whole. If some are not, words say "
        "those of whole days (of which a month has 30.4375) in days.",
    )
    n_repeats: int = setting(
        1, Whole(1), "How many times the whole grid or list is presented; 1 for the questionnaire."
    )

    def prepare(self) -> None:
        if len(self.factors) != len(CLIMB):
            raise ValueError(
                f"The questionnaire climbs through {len(CLIMB)} factors; got {len(self.factors)}."
            )
        adaptive = self.plan == "adaptive"
        if adaptive and self.n_repeats != 1:
            raise ValueError(
                f"The questionnaire comes once; got n_repeats {self.n_repeats}. Set design to "
                '"grid", or give each subject several sessions.'
            )
        if (self.plan == "pairs") != (self.pairs is not None):
            raise ValueError(
                'Pairs go with the design "pairs"; got the design '
                f"{self.plan!r} and {'no' if self.pairs is None else 'some'} pairs. Set both."
            )
        self.ends_early = adaptive
        self.world = Questionnaire if adaptive else Grid
        self.size = None if adaptive else "n_repeats"
        plans = {"adaptive": self._questionnaire, "grid": self._grid, "pairs": self._pairs}
        self._questions = plans[self.plan]()
        self._check_sums()
        self._load_words()

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        """Return the experiment with the questions that the trials show.

        That is the questionnaire where all are asked by it or its other items are there, else the
        smallest grid that has them, if the later sum is the same whole number throughout; else the
        list of the pairs.
        """
        plain = cls()
        names = plain.fields.stimulus
        if not set(names) <= set(frame) or not frame["item"].isin((0, 2)).all():
            return plain
        shown = frame[[*names]].apply(pd.to_numeric, errors="coerce").drop_duplicates()
        asked = {tuple(map(float, question)) for question in plain._position_of_question}
        if shown.isna().any().any() or set(shown.itertuples(index=False, name=None)) <= asked:
            return plain
        sooner, begin, later, end = (
            shown[name] for name in ("sooner_amount", "sooner_delay", "later_amount", "later_delay")
        )
        amount = later.iloc[0]
        whole = all((values % 1 == 0).all() for values in (sooner, later, end))
        if whole and amount > 0 and (later == amount).all() and (begin == 0).all():
            shares = np.unique(sooner / amount)
            if shares[0] > 0 and shares[-1] < 1:
                delays = np.unique(end).astype(int).tolist()
                return cls(design="grid", amount=int(amount), losses=False, shares=shares.tolist(),
                           delays=delays)  # fmt: skip
        pairs = np.column_stack([sooner, begin, later, end]).astype(float)
        return cls(design="pairs", pairs=pairs.tolist())

    @property
    def n_trials(self) -> int:
        return len(self._questions["item"]) * self.n_repeats

    @property
    def n_draws(self) -> int:
        """One number per trial for which option is called 1, and for the grid one for the order."""
        return self.n_trials * (1 if self.plan == "adaptive" else 2)

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the questions; later_amounts[..., k] is the later sum at factor k.

        `ladder` says how a trial gets its factor: 0 begins a baseline, and 1 and 2 continue it. 3
        takes the factor that made the participant wait in the first baseline, or the first factor
        if none did.
        """
        n, n_trials = len(uniforms), self.n_trials
        if self.plan == "adaptive":
            order = np.broadcast_to(np.arange(n_trials), (n, n_trials))
        else:
            order = np.argsort(uniforms[:, n_trials:], axis=1) % len(self._questions["item"])
        tables = {name: column[order] for name, column in self._questions.items()}
        tables["first"] = (uniforms[:, :n_trials] < 0.5).astype(np.int64)
        return tables

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        shown = np.column_stack([trials.numbers(name) for name in self.fields.stimulus])
        rules = {
            "adaptive": "follow from the answers before them",
            "grid": "are on the grid",
            "pairs": "ask for pairs of the list",
        }
        yield (
            f"Trials {rules[self.plan]}",
            self._on_path(trials, shown) if self.plan == "adaptive" else self._on_grid(shown),
            self.fields.stimulus,
            "Use the settings that they were made with. Of questions of your own name none "
            "(--set): a grid, or a list of pairs, follows from the trials.",
        )

    def _questionnaire(self) -> dict[str, NDArray[Any]]:
        """Return the 13 questions of a session, [13], and their later sums [13, 5]."""
        factors = np.array(self.factors)
        sums = (self.amount, 10 * self.amount, -self.amount)
        rows: list[tuple[int, int, int, int, int, NDArray[np.float64]]] = []
        for item, amount in enumerate(sums):
            rows += [(item, amount, 0, self.delay, k, amount * factors) for k in range(LADDER)]
        once, twice = self.amount * factors, self.amount * (1.0 + 2.0 * (factors - 1.0))
        rows += [
            (3, self.amount, self.delay, 2 * self.delay, LADDER, once),
            (4, self.amount, 0, 2 * self.delay, LADDER, twice),
            (5, self.amount, 0, self.delay, LADDER, once),
            (6, self.amount, 0, self.delay, LADDER, once),
        ]
        names = ("item", "sooner_amount", "sooner_delay", "later_delay", "ladder")
        columns = dict(zip(names, np.array([row[:-1] for row in rows]).T, strict=True))
        later = np.round(np.array([row[-1] for row in rows])).astype(np.int64)
        return {**columns, "later_amounts": later}

    def _grid(self) -> dict[str, NDArray[Any]]:
        """Return the cells of the grid, [cells], and their later sums [cells, 1]."""
        signs = (1, -1) if self.losses else (1,)
        cells = np.array(
            [
                (0 if sign > 0 else 2, sign * round(share * self.amount), 0, months, LADDER)
                for sign, months, share in product(signs, self.delays, self.shares)
            ]
        )
        names = ("item", "sooner_amount", "sooner_delay", "later_delay", "ladder")
        columns = dict(zip(names, cells.T, strict=True))
        return {**columns, "later_amounts": np.sign(cells[:, 1:2]) * self.amount}

    def _pairs(self) -> dict[str, NDArray[Any]]:
        """Return the pairs of the list, [pairs], and their later sums [pairs, 1]."""
        sooner, begin, later, end = np.array(self.pairs, dtype=float).T
        item = np.where(sooner > 0, 0, 2)
        return {
            "item": item, "sooner_amount": sooner, "sooner_delay": begin, "later_delay": end,
            "ladder": np.full(len(item), LADDER), "later_amounts": later[:, None],
        }  # fmt: skip

    def _check_sums(self) -> None:
        """Raise ValueError if rounding makes two sums of a question equal, or a pair is none."""
        if self.pairs is not None:
            pairs = np.array(self.pairs, dtype=float)
            right = (pairs[:, 0] * pairs[:, 2] > 0) & (pairs[:, 1] >= 0)
            right &= pairs[:, 1] < pairs[:, 3]
            if not right.all():
                raise ValueError(
                    "A pair is [sooner sum, its delay, later sum, its delay]: sums of the same "
                    "sign, and a delay from 0 that is shorter than the other one; got "
                    f"{pairs[~right][0].tolist()}. Correct it, or leave it out."
                )
            return
        later = np.abs(self._questions["later_amounts"])
        sooner = np.abs(self._questions["sooner_amount"])
        apart = (sooner > 0).all() and (later > sooner[:, None]).all()
        if self.plan == "adaptive":
            apart = apart and bool((np.diff(later, axis=1) > 0).all())
        else:
            apart = apart and len({round(share * self.amount) for share in self.shares}) == len(
                self.shares
            )
        if not apart:
            raise ValueError(
                f"Sums are rounded to whole numbers and must differ; with the amount "
                f"{self.amount} some do not. Choose a larger amount."
            )

    def _on_grid(self, shown: NDArray[np.float64]) -> NDArray[np.bool_]:
        q = self._questions
        cells = np.column_stack(
            [
                q["later_amounts"][:, 0] if n == "later_amount" else q[n]
                for n in self.fields.stimulus
            ]
        )
        known = pd.MultiIndex.from_arrays(list(cells.T.astype(float)))
        return np.asarray(pd.MultiIndex.from_arrays(list(shown.T)).isin(known))

    def _on_path(self, trials: Trials, shown: NDArray[np.float64]) -> NDArray[np.bool_]:
        frame, n = trials.frame, self.n_trials
        session = trials.session_codes
        trial = frame["trial"].to_numpy(dtype=np.int64)
        inside = (trial >= 0) & (trial < n)
        actions = np.full((int(session.max()) + 1, n), -1)
        given = frame["action"].to_numpy(dtype=float, na_value=-1.0).astype(np.int64)
        actions[session[inside], trial[inside]] = given[inside]
        factor = questioned_factors(actions)[session, np.where(inside, trial, 0)]
        at = np.where(inside, trial, 0)
        expected = {name: c[at] for name, c in self._questions.items() if name != "later_amounts"}
        expected["later_amount"] = self._questions["later_amounts"][at, np.maximum(factor, 0)]
        wanted = np.column_stack([expected[name] for name in self.fields.stimulus])
        fits: NDArray[np.bool_] = inside & (factor != OVER) & (wanted == shown).all(axis=1)
        return fits

    def _load_words(self) -> None:
        words = self._choose_words()
        self._forms = {name: words[name] for name in _OPTIONS}
        self._now, self._months, self._days = words["now"].text, words["months"], words["days"]
        self._day = words["day"].text
        delays = np.concatenate([self._questions[f"{side}_delay"] for side in ("sooner", "later")])
        self._in_days = bool((delays % 1 != 0).any())
        for name in (*_OPTIONS, "now", "months", "days", "day"):
            if "\n" in words[name].text:
                raise ValueError(
                    f"The template {name!r} is one line; {self.templates} has several."
                )
        self._position_of_question: dict[tuple[int | float, ...], int] = {}
        self._question_of: dict[tuple[str, str], dict[str, int | float]] = {}
        q = self._questions
        for position, later in enumerate(q["later_amounts"].tolist()):
            for k, amount in enumerate(later):
                if q["ladder"][position] not in (ASKED_AT[k], LADDER):
                    continue
                seen: dict[str, int | float] = {
                    name: amount if name == "later_amount" else q[name][position].item()
                    for name in self.fields.stimulus
                }
                sentences = (self._sentence(seen, SOONER), self._sentence(seen, LATER))
                known = self._question_of.setdefault(sentences, seen)
                if known != seen or sentences[::-1] in self._question_of:
                    raise ValueError(
                        f"Each question has different words; {known} and {seen} read alike: "
                        f"{sentences}. Let the templates tell them apart."
                    )
                self._position_of_question.setdefault(tuple(seen.values()), position)

    def _sentence(self, seen: Mapping[str, int | float], action: int) -> str:
        """Return the sentence that describes an option."""
        side = "sooner" if action == SOONER else "later"
        amount, months = abs(float(seen[f"{side}_amount"])), float(seen[f"{side}_delay"])
        item = ITEMS[int(seen["item"])]
        premium = abs(float(seen["later_amount"])) - abs(float(seen["sooner_amount"]))
        if item == "delay_speed_up" and action == LATER:
            form, amount = "wait_for_more", amount - premium
        elif item == "delay_length":
            form, amount = (
                ("pay_to_have_now", amount + premium) if action == SOONER else ("wait", amount)
            )
        else:
            form = "pay" if item == "loss" else "receive"
        said = {"premium": decimal(premium), "months": decimal(months)}
        days = round(months * DAYS)
        if not months:
            when = self._now
        elif self._in_days and abs(months * DAYS - days) < 1e-6:
            when = self._day if days == 1 else self._days.render(days=days)
        else:
            when = self._months.render(months=said["months"])
        return self._forms[form].render(amount=decimal(amount), when=when, **said)

    def _words(self, labels: Any, observation: Observation) -> dict[str, object]:
        if "first" not in observation:
            return {}
        sentences = [self._sentence(observation, action) for action in (SOONER, LATER)]
        first = int(observation["first"])
        return {"one": sentences[first], "two": sentences[1 - first]}

    def _seen(
        self, design: Design, kind: str, filled: Filled, turns: Sequence[Turn]
    ) -> Observation:
        one, two = filled["one"], filled["two"]
        for first, sentences in enumerate(((one, two), (two, one))):
            seen = self._question_of.get(sentences)
            if seen is not None:
                position = self._position_of_question[tuple(seen.values())]
                trial = position if self.plan == "adaptive" else len(turns)
                return {"trial": trial, **seen, "first": first}
        raise ValueError(
            f"The prompt asks for {one!r} or {two!r}, which {self!r} does not. Use the settings "
            "and templates it was rendered with."
        )

    def options(self, labels: Any, observation: Observation) -> list[str]:
        return list(_LABELS[:: -1 if observation["first"] else 1])


def questioned_factors(actions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of the factor that each trial asks for, [..., 13]; OVER if none."""
    trial = np.arange(actions.shape[-1])
    ladder = np.where(trial < BASELINES * LADDER, trial % LADDER, LADDER)
    tables = {
        "ladder": np.broadcast_to(ladder, actions.shape),
        "later_amounts": np.broadcast_to(np.arange(len(CLIMB)), (*actions.shape, len(CLIMB))),
    }
    shown = follow_world(Questionnaire, tables, actions)
    return np.where(shown.get("present", True), shown["later_amount"], OVER)
