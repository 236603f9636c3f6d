"""Texts about chance that break off right before the outcome; questions about probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.conditions import shipped_words
from knownminds.environments.fields import WORDS, Field, Fields, Numbers, OneOf, SomeOf, setting
from knownminds.environments.later import pandas as pd
from knownminds.environments.questions import Questions
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.replies import Replies
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import Answer, parse_beginning, parse_label
from knownminds.environments.words.prompt import OTHER_WORDS, Message, Prompt, load_templates
from knownminds.environments.words.screen import Screen

from .chance import Chance

Form = Literal["question", "continuation", "stated"]
Distractors = Literal["published", "plausible"]
Asking = Literal["whole", "gap"]
FORMS: tuple[str, ...] = get_args(Form)
DISTRACTORS: tuple[str, ...] = get_args(Distractors)
ASKINGS: tuple[str, ...] = get_args(Asking)
NONE = -1  # stands for the previous outcome, or the queried one, where there is none

LETTERS = ("A", "B", "C", "D", "E")
FACTORS = (Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3))
CORRECT = FACTORS.index(Fraction(1))
DECIMALS = 3
# The orders in which the four wrong options can follow each other.
ARRANGEMENTS = tuple(permutations(k for k in range(len(FACTORS)) if k != CORRECT))

# Each mark may draw a sampler to an outcome, whatever its probability.
MARKS = ("first", "middle", "round", "repeat", "heads", "left")
MOST_OUTCOMES = 34  # of 3 dice with 12 faces
# People choose among the outcomes and write nothing; they are asked this.
COMPLETED = "Which of these completes the last sentence?"
IN_THE_GAP = "How probable is it that what belongs in the gap is {}?"
Values = tuple[int, ...]  # a context, by the columns of its scenario


@dataclass(frozen=True)
class Context:
    """A chance set-up, described up to the point where its text breaks off.

    Parameters
    ----------
    scenario : the name of the experiment
    values : the context, by the columns of that experiment
    chance : the exact probability of each outcome; the order is that of the actions
    previous : the earlier outcome that the text mentions, as it is said; None if there is none
    marks : whether each outcome has each of `MARKS`, [outcomes, marks]: the first possible outcome
        (of two named options, the one named first); the middle one; a multiple of ten; the same as
        `previous`; called heads; called left
    """

    scenario: str
    values: Values
    chance: Chance
    previous: int | None
    marks: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Make the shared arrays read-only."""
        self.marks.flags.writeable = False

    @classmethod
    def of_numbers(
        cls, scenario: str, values: Values, chance: Chance, previous: int | None
    ) -> Context:
        """Return a context whose outcomes are numbers."""
        said = np.array(chance.outcomes)
        marks = marks_of_places(chance, previous)
        marks[:, MARKS.index("round")] = said % 10 == 0
        # An outcome of 0 is no round number.
        marks[said == 0, MARKS.index("round")] = False
        return cls(scenario, values, chance, previous, marks)


def marks_of_places(chance: Chance, previous: int | None) -> NDArray[np.bool_]:
    """Return the marks that outcomes have by their position alone, [outcomes, marks]."""
    said = np.array(chance.outcomes)
    possible = said[[share > 0 for share in chance.shares]]
    marks = np.zeros((len(said), len(MARKS)), dtype=bool)
    marks[:, MARKS.index("first")] = said == possible[0]
    if len(possible) > 2:  # two outcomes have no middle
        marks[:, MARKS.index("middle")] = said == (possible[0] + possible[-1]) // 2
    if previous is not None:
        marks[:, MARKS.index("repeat")] = said == previous
    return marks


def options_of(share: Fraction, distractors: str = "published") -> tuple[Fraction, ...] | None:
    """Return five probabilities to choose from, with the right one in the middle, to 3 decimals.

    "published": a third, a half, twice and three times the right one, even if that is more than 1.
    "plausible": the same factors on its odds, so that all lie between 0 and 1. None if five such
    numbers cannot be told apart, or if a plausible one would be 0 or 1.
    """
    if distractors == "published":
        exact = [factor * share for factor in FACTORS]
    else:
        # The odds f p / (1 - p) belong to the probability f p / (1 - p + f p).
        exact = [f * share / (1 - share + f * share) for f in FACTORS] if share else [share]
    shown = tuple(round(x, DECIMALS) for x in exact)
    if len(set(shown)) < len(FACTORS) or min(shown) <= 0:
        return None
    return shown if distractors == "published" or max(shown) < 1 else None


class ContextGrid(Questions):
    """An experiment that goes once through a grid of contexts, each with an outcome to tell.

    A subclass lists in `factors` the columns that describe a context: for each its lowest and
    highest value in the original, and what it means. The fields of the experiment follow from
    these.
    """

    usual_model = "belief_sampler"

    factors: ClassVar[Mapping[str, tuple[int, int, str]]]
    scenario: ClassVar[int]  # the first digit of `cell`
    digits: ClassVar[tuple[int, ...]]  # how many digits each column takes in `cell`
    least: ClassVar[Mapping[str, int]] = {}  # lowest values of columns that go below -1
    recorded: ClassVar[Mapping[str, str]]  # the column that records a setting, by its name
    kind_names: ClassVar[tuple[str, ...]]  # of contexts, by the number in the column `kind`
    # Columns that a context shares with its baseline; everything else is absent in the baseline.
    shared: ClassVar[tuple[str, ...]]

    form: Form = setting(
        "question",
        OneOf(FORMS),
        '"question" asks for the outcome that completes the text, and the reply has to be that '
        'outcome. "continuation" has the text as a message that the participant has begun, which '
        "breaks off right before the outcome: for models that can be made to go on with it, as a "
        "local model can; the answer is what its continuation begins with. "
        '"stated" asks for the probability of one outcome, drawn anew for each session, with five '
        "options to choose from; the action is then the position of the letter, and the truth has "
        "the probability 1 at the right one.",
    )
    distractors: Distractors = setting(
        "published",
        OneOf(DISTRACTORS, "are"),
        'The wrong options of the form "stated". "published": a third, a half, twice and three '
        "times the right probability, also where that is above 1 and gives the answer away. "
        '"plausible": the same factors on the odds, which stay between 0 and 1. Outcomes whose '
        "five options are not different numbers to 3 decimals (between 0 and 1 where they are to "
        "be plausible) are not queried, and contexts without any other are left out.",
    )
    templates: str | None = setting(None, WORDS, OTHER_WORDS)
    asking: Asking = setting(
        "whole",
        OneOf(ASKINGS),
        'How the form "stated" asks. "whole", as the original does: the situation in whole '
        "sentences up to before the outcome, then a question that names the event, then the "
        'options. "gap": the text that breaks off, and a question about what belongs there.',
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the table of fields from `factors`."""
        if "factors" in vars(cls):
            room = 10 ** sum(cls.digits)
            cells = cls.scenario * room, (cls.scenario + 1) * room - 1
            last = len(LETTERS) - 1, len(ARRANGEMENTS) - 1
            cls.fields = Fields(
                *(Field(name, _held(name), help) for name, (_, _, help) in cls.factors.items()),
                Field("cell", cells, "a number for all of these"),
                Field("asked", (NONE, MOST_OUTCOMES - 1), "outcome that is asked about, or -1"),
                Field("correct", (NONE, last[0]), "position of the right letter, or -1"),
                Field("arrangement", (NONE, last[1]), "order of the wrong options", "wording"),
            )
        super().__init_subclass__(**kwargs)

    @classmethod
    def grid(cls, **how: Any) -> tuple[Self, ...]:
        """Return the experiments that together have all contexts; `how` has further settings."""
        return (cls(**how),)

    @classmethod
    def in_words(cls, values: Mapping[str, int]) -> str:
        """Return what a context is about in words that a person would use, given its columns."""
        return ", ".join(f"{name} {value}" for name, value in values.items())

    @classmethod
    def size_of(cls, values: Mapping[str, int]) -> str:
        """Return by what contexts of a kind differ most, in a few words; "" for nothing."""
        return ""

    @abstractmethod
    def _all(self) -> Iterable[Values]:
        """Return the contexts that these settings ask for, by the columns of `factors`."""

    def prepare(self) -> None:
        form, distractors = self.form, self.distractors
        self._grid = {values: self.context_at(values) for values in self._all()}
        self._options: dict[Values, dict[int, tuple[Fraction, ...]]] = {}
        if form == "stated":
            for values, context in self._grid.items():
                offered = (
                    (k, options_of(p, distractors)) for k, p in enumerate(context.chance.shares)
                )
                self._options[values] = {k: options for k, options in offered if options}
            self._grid = {v: context for v, context in self._grid.items() if self._options[v]}
            if not self._grid:
                raise ValueError(
                    f"No outcome of {type(self).__name__} has five {distractors} options that "
                    'differ. Take a larger part of the grid, or distractors="published".'
                )
            self.n_actions = len(LETTERS)
            self.performance_bounds = (0.0, 1.0)  # no outcome is right or wrong
        else:
            self.performance_bounds = None
            self.n_actions = len(next(iter(self._grid.values())).chance.outcomes)
        self._load_words()

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        """Return the experiment whose grid is the part of the whole that the trials ask about."""
        if not set(cls.factors) <= set(frame):
            return cls()
        values = cls._asked(frame)
        form: Form = "stated" if max(values.get("correct", ()), default=NONE) >= 0 else "question"
        settings: dict[str, Any] = {"form": form, **cls._settings_of(values)}
        return cls(**settings)

    @classmethod
    def _asked(cls, frame: pd.DataFrame) -> dict[str, set[int]]:
        """Return the values that each column of the trials has, by the name of the column."""
        return {
            name: set(pd.to_numeric(frame[name], errors="coerce").dropna().astype(int).tolist())
            for name in (*cls.factors, "correct")
            if name in frame
        }

    @classmethod
    def _settings_of(cls, values: Mapping[str, set[int]]) -> dict[str, Any]:
        """Return the settings that follow from the values in each column, by `recorded`.

        A value that no setting can have is left out, so that `check` names the trial.
        """
        settings: dict[str, Any] = {}
        for name, column in cls.recorded.items():
            rule, numbers = cls.setting_table[name].rule, values[column]
            if isinstance(rule, OneOf):
                sizes = [size for size in rule.known if size in numbers]
                if len(sizes) > 1:
                    raise ValueError(
                        f"An experiment has one number of {column}; these trials have "
                        f"{', '.join(map(str, sizes))}. Take one after the other, or give all of "
                        "them to `maximum_a_posteriori` or `hierarchical`, which fit trials of "
                        "several experiments."
                    )
                settings |= {name: sizes[0]} if sizes else {}
            elif isinstance(rule, SomeOf):
                members = [member for k, member in enumerate(rule.known) if k in numbers]
                settings |= {name: members} if members else {}
            else:
                least, most, _ = cls.factors[column]
                weights = sorted(weight for weight in numbers if least <= weight <= most)
                settings |= {name: weights} if weights else {}
        return settings

    @classmethod
    @abstractmethod
    def context_at(cls, values: Values) -> Context:
        """Return the context that these values of `factors` describe."""

    @abstractmethod
    def _parts(self, values: Values) -> tuple[Sequence[str], str, dict[str, Any]]:
        """Return the templates of the set-up and of the draw, and the words that fill them."""

    def _text(self, values: Values) -> str:
        """Put the context into words, up to where it breaks off."""
        setup, kind, words = self._parts(values)
        return " ".join(self._words[part].render(**words) for part in (*setup, kind))

    def _said(self, values: Values, outcome: int) -> tuple[str, str]:
        """Return a context in words, and the question for the probability of an outcome.

        If asked as a "whole", the first is the situation in whole sentences and the second is a
        question. Otherwise the text breaks off, and the second is the name of the outcome.
        """
        if outcome == NONE:
            return self._text(values), ""
        name = self._names(values)[outcome]
        if self.asking == "gap":
            return self._text(values), name
        setup, kind, words = self._parts(values)
        story = " ".join(self._words[part].render(**words) for part in (*setup, f"told_{kind}"))
        return story, self._words[f"asked_{kind}"].render(**words, outcome=name)

    def _names(self, values: Values) -> Sequence[str]:
        """Return the word for each outcome; by default its number."""
        return [str(outcome) for outcome in self._grid[values].chance.outcomes]

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The contexts of the grid, in its order."""
        return tuple(self._grid.values())

    @property
    def n_trials(self) -> int:
        return len(self._grid)

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return 1 for the right letter, 0 for another, NaN without an answer, [rows]."""
        action = trials.frame["action"].to_numpy(dtype=float, na_value=np.nan)
        correct = trials.frame["correct"].to_numpy(dtype=float)
        return np.where(np.isnan(action) | (correct < 0), np.nan, (action == correct) * 1.0)

    @property
    def n_draws(self) -> int:
        """One number per context to put them in order, and two more if a question asks about it."""
        return self.n_trials * (3 if self.form == "stated" else 1)

    @classmethod
    def cells(cls, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of each context, [contexts], from its columns, [contexts, columns].

        Its digits are the number of the scenario and then the columns. Each column is raised by
        one, so that there is room for -1 (or by more, where the column's `least` is lower).
        """
        cell = np.full(len(values), cls.scenario, dtype=np.int64)
        columns = np.asarray(values, dtype=np.int64).T
        for name, column, digits in zip(cls.factors, columns, cls.digits, strict=True):
            cell = cell * 10**digits + column - cls.least.get(name, NONE)
        return cell

    @classmethod
    def values_of(cls, cell: int) -> Values:
        """Return the columns of the context with this number."""
        values = []
        for name, digits in zip(reversed(list(cls.factors)), reversed(cls.digits), strict=True):
            cell, rest = divmod(cell, 10**digits)
            values.append(rest + cls.least.get(name, NONE))
        if cell != cls.scenario:
            raise ValueError(f"Contexts of {cls.name} begin with {cls.scenario}; got {cell}.")
        return tuple(reversed(values))

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the contexts in their order, and the questions."""
        n = self.n_trials
        order = np.argsort(uniforms[:, :n], axis=1)
        columns = np.array(list(self._grid), dtype=np.int64)
        tables = {name: c[order] for name, c in zip(self.factors, columns.T, strict=True)}
        tables["cell"] = self.cells(columns)[order]
        if self.form != "stated":
            none = np.full_like(order, NONE)
            return tables | {"asked": none, "correct": none, "arrangement": none}
        count, places = self._askable
        which = (uniforms[:, n : 2 * n] * count[order]).astype(np.int64)
        drawn = (uniforms[:, 2 * n :] * len(LETTERS) * len(ARRANGEMENTS)).astype(np.int64)
        correct, arrangement = np.divmod(drawn, len(ARRANGEMENTS))
        outcome = places[order, which]
        return tables | {"asked": outcome, "correct": correct, "arrangement": arrangement}

    @cached_property
    def _askable(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many outcomes of each context can be queried, and which."""
        every = [list(self._options[values]) for values in self._grid]
        count = np.array([len(places) for places in every])
        padded = np.full((len(every), count.max()), NONE)
        for row, places in zip(padded, every, strict=True):
            row[: len(places)] = places
        return count, padded

    def truth(self, observation: Observation) -> NDArray[np.float64]:
        """Return the exact probability of each action's outcome, [n_actions].

        If a question asks for a probability, the right letter has 1.
        """
        context = self._grid[self._values(observation)]
        if self.form != "stated":
            return context.chance.probabilities
        right = np.zeros(len(LETTERS))
        right[int(observation["correct"])] = 1.0
        return right

    def options(self, observation: Observation) -> tuple[str, ...]:
        """Return the five probabilities to choose from, as they are shown; () if there are none."""
        if self.form != "stated":
            return ()
        values, outcome = self._values(observation), int(observation["asked"])
        offered = self._options[values].get(outcome)
        if offered is None:
            raise ValueError(f"{self!r} asks for no probability of outcome {outcome} of {values}.")
        order = list(ARRANGEMENTS[int(observation["arrangement"])])
        order.insert(int(observation["correct"]), CORRECT)
        return tuple(f"{float(offered[k]):.{DECIMALS}f}" for k in order)

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        text, question = self._said(self._values(observation), int(observation["asked"]))
        if self.form == "continuation":
            return Prompt((Message("assistant", text),))
        if self.form == "question":
            return Prompt((Message("user", self._words["question"].render(context=text)),))
        shown = zip(LETTERS, self.options(observation), strict=True)
        options = "\n".join(f"{letter}) {option}" for letter, option in shown)
        template, name = ("whole", "question") if self.asking == "whole" else ("stated", "outcome")
        words = {"context": text, name: question, "options": options}
        return Prompt((Message("user", self._words[template].render(**words)),))

    def screen(self, labels: Any, observation: Observation) -> Screen:
        """Return the context and its question, with outcomes or probabilities to choose from."""
        if self.form == "continuation":
            raise ValueError(
                "Texts that break off are continued by language models alone; people choose. Set "
                "form to question or stated."
            )
        text, question = self._said(self._values(observation), int(observation["asked"]))
        if self.form == "question":
            names = self._names(self._values(observation))
            return Screen("", f"{text} …\n\n{COMPLETED}", tuple(names))
        if self.asking == "gap":
            text, question = f"{text} …", IN_THE_GAP.format(question)
        return Screen("", f"{text}\n\n{question}", self.options(observation))

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read the outcome, or the letter, which may be followed by its option.

        An outcome or letter that is not on offer is malformed.

        In the form "continuation" only the beginning of the text is read, however it goes on.
        """
        if self.form == "continuation":
            return parse_beginning(text, self._labels(observation))
        return parse_label(text, self._labels(observation), texts=self.options(observation))

    @property
    def replies(self) -> Replies:
        return _Continuations(self)

    def say(self, labels: Any, action: int, observation: Observation) -> str:
        return self._labels(observation)[action]

    def complete(self, trials: Trials) -> pd.DataFrame:
        frame = trials.frame
        if not set(self.factors) <= set(frame):
            return frame
        # This comes before actions are checked, since their number depends on the settings.
        contexts = pd.MultiIndex.from_arrays([trials.numbers(name) for name in self.factors])
        trials.require(
            f"Trials of {self.name} ask contexts of the grid of {self!r}",
            contexts.isin(pd.MultiIndex.from_tuples(list(self._grid))),
            self.factors,
            "Use the settings that they were made with, or leave such rows out.",
        )
        added: dict[str, Any] = {}
        if "cell" not in frame:
            added["cell"] = self.cells(frame[list(self.factors)].to_numpy().astype(np.int64))
        if self.form != "stated":
            added |= {name: NONE for name in ("asked", "correct") if name not in frame}
        return frame.assign(**added) if added else frame

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        values = trials.frame[list(self.factors)].to_numpy().astype(np.int64)
        yield (
            "The cell of a trial follows from its context",
            trials.numbers("cell") == self.cells(values),
            ("cell", *self.factors),
            "Leave the column out.",
        )
        outcome, correct = trials.numbers("asked"), trials.numbers("correct")
        if self.form == "stated":
            rule = "A question asks for an outcome of its context, and one letter is right"
            known = [(*v, k) for v in self._grid for k in self._options[v]]
            given = pd.MultiIndex.from_arrays([*values.T, outcome])
            right = given.isin(pd.MultiIndex.from_tuples(known))
            right &= np.isin(correct, range(len(LETTERS)))
        else:
            rule = "Asked and correct are -1 where no probability is queried"
            right = (outcome == NONE) & (correct == NONE)
        yield (
            rule,
            right,
            ("asked", "correct"),
            "Use the form and distractors that they were made with, or leave such rows out.",
        )

    def _load_words(self) -> None:
        self._words = load_templates(self.templates, shipped_words(self))
        meant: dict[tuple[str, str], tuple[Values, int]] = {}
        for values in self._grid:
            names = self._names(values)
            if len(set(names)) < len(names):
                raise ValueError(
                    f"Outcomes have different names; those of {self._told(values)} are "
                    f"{', '.join(names)}. Let the templates tell them apart."
                )
            for outcome in self._options.get(values, (NONE,)):
                said = self._said(values, outcome)
                same = meant.setdefault(said, (values, outcome))
                if same != (values, outcome):
                    raise ValueError(
                        f"Each context has different words; {self._told(same[0])} and "
                        f"{self._told(values)} both read {' '.join(said).strip()!r}. Let the "
                        "templates tell them apart."
                    )

    def _labels(self, observation: Observation) -> Sequence[str]:
        if self.form == "stated":
            return LETTERS
        return self._names(self._values(observation))

    def _values(self, observation: Observation) -> Values:
        values = tuple(int(observation[name]) for name in self.factors)
        if values not in self._grid:
            raise ValueError(f"{self._told(values)} is no context of {self!r}.")
        return values

    def _told(self, values: Values) -> str:
        return ", ".join(f"{n} {v}" for n, v in zip(self.factors, values, strict=True))


def _held(column: str) -> Callable[[ContextGrid], tuple[int, int]]:
    """Return the range of a column over all settings, except for larger weights."""

    def ends(environment: ContextGrid) -> tuple[int, int]:
        low, high, _ = environment.factors[column]
        values = [each[list(environment.factors).index(column)] for each in environment._grid]
        return min([low, *values]), max([high, *values])

    return ends


class _Continuations(Replies):
    """Replies that may be readable although they were cut off."""

    environment: ContextGrid

    def cut(self, text: str, observation: Observation) -> Answer:
        """Read the beginning of a cut-off continuation if it is certain; of a reply, nothing."""
        if self.environment.form == "continuation":
            return parse_beginning(text, self.environment._labels(observation), cut=True)
        return super().cut(text, observation)


def weights_to(most: int) -> Numbers:
    """Return the rule for weights, which are sorted from small to large."""
    return Numbers(
        f"are whole numbers from 1 to {most}",
        lambda weights: (weights >= 1) & (weights <= most),
        decimals=0,
        sort=True,
    )
