"""A paper: cells and known agents (its plan), and parts, each a tidy frame and views of it.

A tidy frame has a row for each participant and whatever else tells values apart, with the columns
value, low, high, standard_error and freedom where there are such. Rows that have a `score` are what
participants are compared by, two at a time; `cell` names the cells that it is computed from, and
`influence`, which is not saved, what each session or context does to the value (see `Side`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from knownminds.environments import ANSWERED, Environment
from knownminds.validation.data.scores_of_trials import INFLUENCE
from knownminds.validation.engine.parts import Drawing, Part
from knownminds.validation.pages.views import KNOWN, WHO, Figure, Grid, TableView, View

CELL, VARIANT = "cell", "variant"
SEVERAL = " + "  # between the cells of a score that is computed from several
Computed = TypeVar("Computed")
SCORES = [WHO, "score", CELL, "value", "standard_error", "freedom", INFLUENCE]
NORMAL = 2 * 1.959964  # standard errors in a normal interval of 95%
# What a record has besides the fields of its experiment.
ANSWER = (
    "environment", "subject", "session", "design_number", "block", "trial", "action", "response",
    "reward", "outcome",
)  # fmt: skip
# A participant's answers may be split by these conditions, besides those that a paper names.
FURTHER = (
    "history", "modality", "noise", "temperature", "effort", "verbosity", "system", "answer_prefix",
    "template",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class About:
    """What a paper's parts can be made of besides trials.

    Parameters
    ----------
    environments : The experiment of each cell with its settings, by name of the cell.
    participants : Everybody, models first, also who has no readable answer at all.
    known : Those among them that are known agents, the references.
    crowd : Those among them that are people.
    truth : Of known agents by name and cell: the model and its parameters, `{"model":
        "random_rater", "bias": 0.5}`.
    own : Of models, the settings that make one a participant of its own; no condition for it.
    features : A CSV file with what is known of the models, in rows `participant`; None without.
    people : A file with answers or values of people, see each paper; None without.
    paraphrases : Number of wordings of each experiment.
    seed : Of what is drawn to compute, such as bootstraps.
    options : Of a paper: how many bootstraps, for instance.
    kept : A folder for what takes long to compute and follows from the plan alone; None for none.
    """

    environments: Mapping[str, Environment]
    participants: tuple[str, ...]
    known: tuple[str, ...] = ()
    crowd: tuple[str, ...] = ()
    truth: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    own: Mapping[str, Sequence[str]] = field(default_factory=dict)
    features: Path | None = None
    people: Path | None = None
    paraphrases: int = 1
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    kept: Path | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Participants that are neither known agents nor people."""
        others = (*self.known, *self.crowd)
        return tuple(name for name in self.participants if name not in others)

    def option(self, name: str, usual: Any) -> Any:
        """Return an option of the paper; `usual` where it was not set."""
        value = self.options.get(name)
        return usual if value is None else value


@dataclass(frozen=True, eq=False)
class Answers:
    """The trials of all participants, and what is known of them.

    Parameters
    ----------
    trials : One row per trial: the experiments' columns, the conditions, participant, cell, variant
        and known_agent; columns of other experiments are empty.
    """

    trials: pd.DataFrame
    about: About
    _computed: dict[Any, Any] = field(default_factory=dict, repr=False)

    def once(self, compute: Callable[[Answers], Computed]) -> Computed:
        """Return what a function computes of the answers; it is computed a single time."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        computed: Computed = self._computed[compute]
        return computed


# A part: the tidy frame, then its views; texts among them are added to its paragraph.
Shown = tuple[pd.DataFrame | View | str, ...]
Show = Callable[[Answers], Shown]


@dataclass(frozen=True)
class Chapter:
    """A part of a paper before it is computed.

    Parameters
    ----------
    show : Its docstring is the paragraph; its name is that of the file of its rows.
    compared : Whether its scores are those by which participants are compared.
    optional : Whether it is left out where its frame has no row.
    """

    title: str
    show: Show
    compared: bool
    optional: bool

    def part(self, shown: Shown, known: Sequence[str] = ()) -> Part:
        """Return the part of what was computed: its frame, tables and drawings."""
        paragraph = inspect.getdoc(self.show) or ""
        return part_of(self.show.__name__, self.title, paragraph, shown, known)


def marked(frame: pd.DataFrame, known: Sequence[str]) -> pd.DataFrame:
    """Return a frame of participants that says which are known agents, so that figures show it."""
    if not known or WHO not in frame:
        return frame
    return frame.assign(**{KNOWN: frame[WHO].isin(list(known))})


def part_of(name: str, title: str, paragraph: str, shown: Shown, known: Sequence[str] = ()) -> Part:
    """Return a part from its frame and views; what has no row to show is left out."""
    frame, *views = shown
    assert isinstance(frame, pd.DataFrame)
    texts = [paragraph, *(view for view in views if isinstance(view, str))]
    tables: dict[str, pd.DataFrame] = {}
    figures: dict[str, Drawing] = {}
    for view in views:
        if isinstance(view, TableView):
            tables |= view.tables(frame)
        elif isinstance(view, Figure):
            of = view.of
            drawn = view if of is None else replace(view, of=marked(of, known))
            figures |= drawn.drawings(marked(frame, known))
    saved = frame.drop(columns=INFLUENCE, errors="ignore")
    return Part(name, title, " ".join(" ".join(texts).split()), saved, tables, figures)


class Paper:
    """A paper; its cells stand in plans/NAME.toml, its parts are added in their order.

    Parameters
    ----------
    name : On the command line, and of its plan.
    title, source : The head of its page; whom it is from.
    people : Whether it sets models beside people, of whom values can be given.
    """

    def __init__(self, name: str, title: str, source: str, people: bool = False) -> None:
        self.name, self.title, self.source, self.people = name, title, source, people
        self.chapters: list[Chapter] = []
        self.further: list[Callable[[Answers], pd.DataFrame]] = []
        self._ready: Callable[[pd.DataFrame, About], pd.DataFrame] = lambda trials, about: trials

    def prepare(
        self, ready: Callable[[pd.DataFrame, About], pd.DataFrame]
    ) -> Callable[[pd.DataFrame, About], pd.DataFrame]:
        """Take a function that adds the columns by which answers are separated."""
        self._ready = ready
        return ready

    def part(
        self, title: str, *, compared: bool = True, optional: bool = False
    ) -> Callable[[Show], Show]:
        """Take a function as the next part, see `Chapter`."""

        def take(show: Show) -> Show:
            self.chapters.append(Chapter(title, show, compared, optional))
            return show

        return take

    def also(self, compute: Callable[[Answers], pd.DataFrame]) -> Callable[..., pd.DataFrame]:
        """Take a function that returns scores for claims; participants are not compared by them."""
        self.further.append(compute)
        return compute

    def parts(
        self, trials: pd.DataFrame, about: About
    ) -> tuple[list[Part], pd.DataFrame, pd.DataFrame]:
        """Return all parts, the scores by which participants are compared, and further scores.

        Raises
        ------
        ValueError : If the trials are of other experiments, or lack a column.
        """
        answers = Answers(self._ready(trials, about), about)
        every = self._shown(answers)
        scores = scores_in(shown[0] for chapter, shown in every if chapter.compared)
        further = scores_in(compute(answers) for compute in self.further)
        return [chapter.part(shown, about.known) for chapter, shown in every], scores, further

    def parts_of(self, answers: Answers) -> list[Part]:
        """Return all parts of answers that are prepared."""
        known = answers.about.known
        return [chapter.part(shown, known) for chapter, shown in self._shown(answers)]

    def _shown(self, answers: Answers) -> list[tuple[Chapter, Shown]]:
        """Compute all parts, and leave out those that may lack and have no row."""
        every = [(chapter, chapter.show(answers)) for chapter in self.chapters]
        return [one for one in every if len(one[1][0]) or not one[0].optional]  # type: ignore[arg-type]

    def scores(self, trials: pd.DataFrame, about: About) -> pd.DataFrame:
        """Return the scores alone, see `scores_in`."""
        answers = Answers(self._ready(trials, about), about)
        compared = (chapter for chapter in self.chapters if chapter.compared)
        return scores_in(chapter.show(answers)[0] for chapter in compared)

    def claimed(self, trials: pd.DataFrame, about: About) -> pd.DataFrame:
        """Return the scores that claims are judged by, see `scores_in`."""
        answers = Answers(self._ready(trials, about), about)
        compared = [chapter.show(answers)[0] for chapter in self.chapters if chapter.compared]
        return scores_in([*compared, *(compute(answers) for compute in self.further)])


def scores_in(frames: Iterable[Any]) -> pd.DataFrame:
    """Return the rows of frames that have a score, with the columns `SCORES`.

    An error that a row does not have is that of a normal with its interval of 95%.
    """
    parts = []
    for frame in frames:
        if "score" not in frame or not len(frame):
            continue
        rows = frame[frame["score"].notna()]
        error = rows.get("standard_error", pd.Series(np.nan, rows.index)).astype(float)
        if "low" in rows:
            error = error.fillna((rows["high"] - rows["low"]).astype(float) / NORMAL)
        parts.append(rows.assign(standard_error=error).reindex(columns=SCORES))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=SCORES)


def readable(trials: pd.DataFrame) -> pd.Series[bool]:
    """Say which trials have an answer that could be read, [rows]."""
    if "outcome" in trials:
        return trials["outcome"].isin(ANSWERED)
    return trials[[c for c in ("action", "response") if c in trials]].notna().any(axis=1)


def trials_of(page: str, trials: pd.DataFrame, experiments: Iterable[str]) -> pd.DataFrame:
    """Return the trials of the experiments that a page is about; ValueError if there are none."""
    experiment = trials["environment"] if "environment" in trials else trials["experiment"]
    answers = trials[experiment.isin(list(experiments))]
    if not len(answers):
        raise ValueError(
            f"The page of {page} reads trials of {', '.join(experiments)}; there are none."
        )
    return answers.assign(environment=experiment)


def own_columns(part: pd.DataFrame, environment: Environment) -> pd.DataFrame:
    """Return what scores are read off a cell's trials: no conditions, no other experiment's.

    Who was asked in one wording alone has no number of a design, where others have one.
    """
    columns = (*ANSWER, *(field.name for field in environment.fields))
    own = part[[c for c in dict.fromkeys(columns) if c in part]].reset_index(drop=True)
    if "design_number" in own:
        own["design_number"] = own["design_number"].fillna(own["session"])
    return own


def counted_answers(trials: pd.DataFrame, *conditions: str) -> tuple[pd.DataFrame, Grid]:
    """Return how many questions were put and answers read by participant and condition.

    The last of the conditions heads the columns.
    """
    keys = [WHO, *conditions]
    whole = trials.assign(read=readable(trials).to_numpy())
    rows = whole.groupby(keys, sort=False)["read"].agg(questions="size", read="sum").reset_index()
    rows["read"] = rows["read"].astype(int)

    def cell(row: Mapping[Any, Any]) -> str:
        return f"{row['read']:,} of {row['questions']:,}" if row["read"] else "no readable answer"

    title = "Answers that could be read, of all questions"
    return rows, Grid(title, keys[-1], keys[:-1], cell)


def told_apart(trials: pd.DataFrame, about: About, also: Iterable[str] = ()) -> list[str]:
    """Return the further conditions that vary within a participant, beside a paper's `also`.

    Participants who answered in one way alone (each at one temperature, say) are kept apart by
    their names; those who answered in several ways are split by these columns. Wordings that
    were asked for with --paraphrases are one.
    """
    known = [WHO, *also]
    apart = FURTHER if about.paraphrases == 1 else [n for n in FURTHER if n != "template"]
    names = [name for name in apart if name in trials and name not in known]
    names = [name for name in names if trials[name].nunique(dropna=False) > 1]
    by = trials.groupby(known)
    return [name for name in names if (by[name].nunique(dropna=False) > 1).any()]


def joined(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Put frames below each other; those without rows play no part."""
    kept = [part for part in parts if len(part)]
    return pd.concat(kept, ignore_index=True) if kept else pd.DataFrame()
