"""Trials of several experiments and conditions as those of participants who lived all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from knownminds.agents import Model
from knownminds.environments import Trials, environment_of

from .trials_of_runs import ALONE, BY, copied_sessions, load, read_all, read_one, runs_in

if TYPE_CHECKING:
    from .questions import AskFit

# What tells the sessions of a participant apart; a cell is an experiment in a condition.
_SESSION = ("environment", "condition", "modality", "subject", "session")
_ALONE_IN_ONE = ("environment", "settings", "separate", "against", "rivals")


def check_over(question: AskFit) -> None:
    """Raise ValueError at options that belong to the fit of a single experiment."""
    for name in _ALONE_IN_ONE:
        if getattr(question, name):
            option = {"settings": "set"}.get(name, name)
            raise ValueError(
                f"--{option} belongs to the fit of one experiment; a fit over cells takes each "
                "experiment and condition as the trials name it. Leave one of both out."
            )
    if question.model is None:
        raise ValueError("A fit over cells needs a model that plays all; name it with --model.")


def trials_over_cells(question: AskFit, agent: type[Model]) -> tuple[str, Trials]:
    """Return the trials of all files, each participant a subject with the sessions of all cells.

    Participants are told apart by --unit, or else by the first of these columns that all trials
    have: participant, model, subject.

    Raises
    ------
    ValueError : If trials do not name their experiment, the model does not play it, or a column of
        --unit is missing or has empty cells.
    """
    data = question.data
    paths = [] if isinstance(data, Trials) else [data] if isinstance(data, str | Path) else data
    files = runs_in(paths)
    parts = [load(file, question.columns) for file in files] or [read_one(data, None)[1]]
    source = " ".join(map(str, paths)) or "trials"
    frame = read_all(files, question.columns) if len(files) > 1 else parts[0].frame
    if "environment" not in frame or frame["environment"].isna().any():
        raise ValueError(
            "Trials of several experiments name theirs in a column 'environment'; some of "
            f"{source} do not. Add the column, or fit the experiments one by one."
        )
    who = _participants(frame, question.unit)
    names = [name for name in _SESSION if name in frame]
    session = frame[names].astype(object).fillna("").astype(str).agg("/".join, axis=1)
    position = frame.groupby([who, session], sort=False).cumcount()
    for part in parts:
        _check_plays(agent, part)
    return source, Trials.from_frame(frame.assign(subject=who, session=session, trial=position))


def _check_plays(agent: type[Model], trials: Trials) -> None:
    """Raise ValueError if the model does not play an experiment of these trials."""
    for name, rows in trials.frame.groupby("environment", sort=False):
        rows.attrs = dict(trials.frame.attrs)
        agent.check_plays(environment_of(Trials(rows.reset_index(drop=True)), str(name)))


def _participants(frame: pd.DataFrame, unit: Sequence[str] | None) -> pd.Series[str]:
    """Name the participant of each trial."""
    named = list(unit or ())
    missing = [name for name in named if name not in frame]
    if missing:
        raise ValueError(
            f"--unit names columns of the trials; there is no {missing[0]!r} among "
            f"{', '.join(map(str, frame.columns))}."
        )
    empty = [name for name in named if frame[name].isna().any()]
    if empty:
        raise ValueError(
            f"--unit names the participant of each trial; {empty[0]!r} is empty in "
            f"{frame[empty[0]].isna().sum()} of {len(frame)} trials. Fill it in, or name another."
        )
    if not named:
        known = [name for name in (ALONE, BY) if name in frame and frame[name].notna().all()]
        named = [*known, "subject"][:1]
    return frame[named].astype(str).agg(" | ".join, axis=1)


def copies_over_cells(trials: Trials) -> list[str]:
    """Return a sentence on copied sessions for each experiment, see `copied_sessions`."""
    said = []
    for name, rows in trials.frame.groupby("environment", sort=False):
        rows.attrs = dict(trials.frame.attrs)
        one = Trials(rows.reset_index(drop=True))
        said += copied_sessions(environment_of(one, str(name)), one)
    return said


def told_over_cells(trials: Trials) -> str:
    """Return a sentence on participants, sessions and experiments."""
    places = ", ".join(map(str, trials.frame["environment"].unique()))
    cells = trials.frame.groupby("subject", sort=False)["session"].nunique()
    each = f"{cells.min()}" if cells.min() == cells.max() else f"{cells.min()} to {cells.max()}"
    return (
        f"One set of parameters for each of {len(cells)} participants, over {each} sessions of "
        f"{places}. What so many trials support, knownminds audit observer says of the observer of "
        "all magnitudes; predictive checks are of one experiment."
    )
