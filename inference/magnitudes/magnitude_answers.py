"""Answers of magnitude estimation, split by participant, task, condition and modality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import ENVIRONMENTS, Trials, session_stream, unknown
from knownminds.environments.later import pandas as pd
from knownminds.environments.magnitudes.magnitude import CONDITIONS, MODALITIES, WINDOWS, Magnitude
from knownminds.inference.measure import separated_by, with_columns

TASKS = ("marker_location", "line_ratio", "maze_distance", "duration")
MULTIMODAL = TASKS[:3]
TEXT, IMAGE, BOTH = MODALITIES
BASE = CONDITIONS[0]
NEEDED = ("window", "value", "modality", "blur", "condition", "item", "unit", "ceiling", "response")

Key = tuple[str, str, str, str]  # participant, task, condition, modality


@dataclass(frozen=True)
class TaskAnswers:
    """The answers of one participant in one task, condition and modality, [n] each.

    Parameters
    ----------
    value, response : In the task's units; the response is NaN without a readable answer.
    middle : Middle of the range from which the value's window takes its stimuli.
    window : 0 short, 1 medium, 2 long.
    block : Number of the window and session, within which context and state are carried over.
    item, trial : Number of the stimulus within its window, and position in the session.
    blur : Blur of the image, in pixels.
    unit, ceiling : The number by which models divide the task's units, and the highest answer.
    weight : How often each trial counts, [B, n]: row 0 is 1 throughout, the others are bootstraps.
    """

    value: Array
    response: Array
    middle: Array
    window: NDArray[np.int64]
    block: NDArray[np.int64]
    item: NDArray[np.int64]
    trial: NDArray[np.int64]
    blur: Array
    unit: float
    ceiling: float
    weight: Array

    def __len__(self) -> int:
        return len(self.value)

    @property
    def missing(self) -> int:
        """How many trials have no readable answer."""
        return int(np.isnan(self.response).sum())

    @property
    def at_an_end(self) -> int:
        """How many answers are 0 or the ceiling."""
        return int(((self.response <= 0) | (self.response >= self.ceiling)).sum())

    def only(self, chosen: NDArray[Any]) -> TaskAnswers:
        """Return some of the trials."""
        parts = {
            name: getattr(self, name)[chosen]
            for name in ("value", "response", "middle", "window", "block", "item", "trial", "blur")
        }
        return replace(self, weight=self.weight[:, chosen], **parts)


@dataclass(frozen=True)
class MagnitudeAnswers:
    """The answers of a set of runs.

    Parameters
    ----------
    participants : Their names, in order of appearance.
    cells : Answers by participant, task, condition and modality; combinations that were not played
        are absent.
    frame : The rows that the answers were read from, in order, with the columns participant, task,
        condition_name and modality_name.
    """

    participants: tuple[str, ...]
    cells: Mapping[Key, TaskAnswers]
    frame: pd.DataFrame

    @classmethod
    def read(
        cls, trials: Trials | pd.DataFrame, by: str | None = None, rounds: int = 0, seed: int = 0
    ) -> MagnitudeAnswers:
        """Split trials into answers.

        Parameters
        ----------
        trials : Trials of any of the four tasks, with the column environment.
        by : The column whose values are participants; None if all trials are of one.
        rounds, seed : How many bootstraps, and their seed. A bootstrap draws items with replacement
            within each window of each session. So sessions and windows keep their number of trials,
            and the text, the image and both of an item are drawn together.

        Raises
        ------
        ValueError : If a column is missing, or holds a value that no task has.
        """
        frame = (trials.frame if isinstance(trials, Trials) else trials).reset_index(drop=True)
        frame = _labelled(frame, by)
        weight = multiplicities(frame, rounds, seed)
        middle = middles(frame)
        names = ["subject", "session", "window"]
        position = frame.groupby(names, sort=False).ngroup().to_numpy()
        numbers = {name: frame[name].to_numpy(dtype=float, na_value=np.nan) for name in NEEDED}
        cells: dict[Key, TaskAnswers] = {}
        keys = ["participant", "task", "condition_name", "modality_name"]
        trial = frame["trial"].to_numpy(dtype=np.int64)
        for key, index in frame.groupby(keys, sort=False).indices.items():
            rows = np.sort(index)
            cells[key] = TaskAnswers(  # type: ignore[index]
                value=numbers["value"][rows],
                response=numbers["response"][rows],
                middle=middle[rows],
                window=numbers["window"][rows].astype(np.int64),
                block=position[rows],
                item=numbers["item"][rows].astype(np.int64),
                trial=trial[rows],
                blur=numbers["blur"][rows],
                unit=float(numbers["unit"][rows[0]]),
                ceiling=float(numbers["ceiling"][rows[0]]),
                weight=weight[:, rows],
            )
        return cls(tuple(map(str, frame["participant"].unique())), cells, frame)

    def of(self, participant: str) -> Iterator[tuple[Key, TaskAnswers]]:
        """Yield the cells of a participant in the order of tasks, conditions, modalities."""
        for task in TASKS:
            for condition in CONDITIONS:
                for modality in MODALITIES:
                    key = (participant, task, condition, modality)
                    if key in self.cells:
                        yield key, self.cells[key]


def multiplicities(frame: pd.DataFrame, rounds: int, seed: int) -> Array:
    """Return how often each row counts in the data (row 0) and each bootstrap, [1 + rounds, n]."""
    weight = np.ones((1 + rounds, len(frame)))
    if rounds == 0:
        return weight
    window = ["participant", "task", "condition_name", "subject", "session", "window"]
    item = frame.groupby([*window, "item"], sort=False).ngroup().to_numpy()
    first = np.unique(item, return_index=True)[1]
    stratum = frame.groupby(window, sort=False).ngroup().to_numpy()[first]
    drawn = np.zeros((rounds, len(first)))
    rng = session_stream(seed, 7)
    for k in range(int(stratum.max()) + 1):
        mine = np.flatnonzero(stratum == k)
        drawn[:, mine] = rng.multinomial(len(mine), np.full(len(mine), 1 / len(mine)), rounds)
    weight[1:] = drawn[:, item]
    return weight


def middles(frame: pd.DataFrame) -> Array:
    """Return the middle of the range of each row's window, [n].

    If the unit of a row is known by a shipped range, it is the middle of that range. For other
    ranges, and for trials without a named task, it is the middle between the least and the greatest
    stimulus shown.
    """
    kind = [name for name in ("environment", "window") if name in frame]
    value = frame.groupby(kind, sort=False)["value"]
    middle = (0.5 * (value.transform("min") + value.transform("max"))).to_numpy(
        dtype=float, copy=True
    )
    if "environment" not in frame or "unit" not in frame:
        return middle
    unit, window = frame["unit"].to_numpy(dtype=float), frame["window"].to_numpy(dtype=float)
    for task in frame["environment"].unique():
        environment = ENVIRONMENTS.get(str(task))
        if environment is None or not issubclass(environment, Magnitude):
            continue
        ends = np.array([environment.default_ranges[name] for name in WINDOWS])
        shipped = (frame["environment"] == task).to_numpy() & np.isin(window, np.arange(len(ends)))
        shipped &= np.isclose(unit, ends.min() + ends.max(), rtol=1e-9)
        middle[shipped] = ends.mean(axis=1)[window[shipped].astype(np.int64)]
    return middle


def _labelled(frame: pd.DataFrame, by: str | None) -> pd.DataFrame:
    """Check the columns and replace numbers by names."""
    with_columns(frame, "Magnitude estimation", ("environment", *NEEDED))
    for task in frame["environment"].unique():
        if task not in TASKS:
            raise ValueError(unknown("task of magnitude estimation", str(task), TASKS))
    return frame.assign(
        participant=separated_by(frame, by),
        task=frame["environment"],
        condition_name=_named(frame, "condition", CONDITIONS),
        modality_name=_named(frame, "modality", MODALITIES),
    )


def _named(frame: pd.DataFrame, column: str, names: tuple[str, ...]) -> NDArray[np.object_]:
    codes = frame[column].to_numpy(dtype=float, na_value=np.nan)
    wrong = np.flatnonzero(~np.isin(codes, np.arange(len(names))))
    if len(wrong):
        text = ", ".join(f"{k} {name}" for k, name in enumerate(names))
        raise ValueError(
            f"The column {column!r} holds one of {text}; row {wrong[0] + 1} has "
            f"{codes[wrong[0]]:g}. Recode it."
        )
    values: NDArray[np.object_] = np.array(names, dtype=object)[codes.astype(np.int64)]
    return values
