"""`score` of answers to a paper's experiment: the paper's parts, read off files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import ArrowException

from knownminds.environments import (
    ENVIRONMENTS,
    Environment,
    Trials,
    answer_columns,
    environment_of,
)
from knownminds.environments.record.folders import writable, write_text
from knownminds.environments.record.result import plain
from knownminds.inference.magnitudes.magnitude_answers import TASKS
from knownminds.llm_adapters.runs.runner import TRIALS
from knownminds.validation.data.trials_of_runs import ALONE, BY, experiments_of, read_all, runs_in
from knownminds.validation.engine.question import command_line, in_one
from knownminds.validation.engine.result import Part, Result
from knownminds.validation.engine.study import versions
from knownminds.validation.magnitudes.magnitude_frames import LINES

from .comparison import comparison
from .paper import CELL, About
from .registry import paper_of
from .views import WHO

FILE = "paper_score.json"
ANSWERS = "answers.parquet"
# Experiments whose answers are scored by all parts of their paper.
PAPER_OF: Mapping[str, str] = {
    "diagnosis": "diagnosis",
    "collider": "colliders",
    **dict.fromkeys(TASKS, "magnitudes"),
}
# Options that each paper takes.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "diagnosis": ("network", "learner", "permutations", "bootstraps"),
    "colliders": ("over", "reference", "scoring", "released"),
    "magnitudes": ("bootstraps", "mass"),
}
# Options where none is given: more rounds than a benchmark of many participants takes.
USUAL: Mapping[str, Mapping[str, Any]] = {
    "diagnosis": {"learner": "gradient_boosting", "permutations": 1000, "bootstraps": 500},
    "magnitudes": {"lines": LINES},
}
NOTES = ("Trials without a readable answer are left out and counted.",)


@dataclass(frozen=True, eq=False)
class Scored:
    """Answers to a paper's experiment, and how its parts are made of them.

    Parameters
    ----------
    paper
        Its name.
    sources
        The files and folders.
    trials
        The answers, with the columns participant, environment and cell.
    by
        The column that held the participants.
    columns
        Our column names -> the files'.
    seed, options
        Of the paper's parts.
    """

    paper: str
    sources: tuple[str, ...]
    trials: pd.DataFrame
    by: str | None
    columns: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)

    @classmethod
    def read_data(
        cls,
        paper: str,
        data: Sequence[str | Path] | pd.DataFrame,
        *,
        environment: str | None = None,
        columns: Mapping[str, str] | None = None,
        by: str | None = None,
        seed: int = 0,
        **options: Any,
    ) -> Scored:
        """Read answers from files, folders of runs, or a table of trials.

        Parameters
        ----------
        environment
            The experiment, of data that do not name it.
        by
            The column whose values are participants; if None the first that there is of "agent",
            "model" and, of several, "subject".

        Raises
        ------
        ValueError
            If trials or columns are missing.
        """
        sources: tuple[str, ...] = ("trials",)
        if isinstance(data, pd.DataFrame):
            frame = data
        else:
            sources = tuple(str(path) for path in data)
            frame = read_all(data, columns)
        if environment is not None or "environment" not in frame:
            name = environment or next(e for e, p in PAPER_OF.items() if p == paper)
            frame = frame.assign(environment=name)
        frame = _completed(frame.dropna(axis="columns", how="all"))
        for column in _answers_of(frame):
            frame[column] = frame.get(column)
        by = by or _participants(frame)
        if by is not None and by not in frame:
            raise ValueError(
                f"Participants are told apart by a column of the trials; there is no {by!r} among "
                f"{', '.join(map(str, frame.columns))}."
            )
        who = ALONE if by is None else frame[by].astype(str)
        cell = frame[CELL] if CELL in frame else frame["environment"]
        trials = frame.assign(**{WHO: who, CELL: cell}).reset_index(drop=True)
        options = {name: value for name, value in options.items() if value not in (None, False)}
        return cls(paper, sources, trials, by, columns or {}, seed, options)

    @property
    def about(self) -> About:
        """What the parts can be made of besides the trials."""
        places = {
            str(cell): _place(str(own["environment"].iloc[0]), own, self.options)
            for cell, own in self.trials.groupby(CELL, sort=False)
        }
        people = self.options.get("reference")
        return About(
            places={cell: place for cell, place in places.items() if place is not None},
            participants=tuple(dict.fromkeys(self.trials[WHO])),
            people=None if people is None else Path(people),
            seed=self.seed,
            options={**USUAL.get(self.paper, {}), **self.options},
        )

    def result(self) -> Result:
        """Compute the parts of the paper, and compare participants two at a time."""
        paper = paper_of(self.paper)
        parts: list[Part]
        parts, scores = paper.parts(self.trials, self.about)
        if len(scores) and self.trials[WHO].nunique() > 1:
            parts.append(comparison(scores, self.trials, self.about))
        outcomes = self.trials.get("outcome", pd.Series("ok", self.trials.index)).fillna("ok")
        counts = pd.crosstab(self.trials[WHO], outcomes)
        who = list(dict.fromkeys(self.trials[WHO]))
        asked = {"data": list(self.sources), "participants": self.about.participants}
        return Result(
            paper.title,
            tables={"Outcomes": counts.reindex(who).rename_axis(WHO)},
            parts=parts,
            notes=NOTES,
            attempted=len(self.trials),
            rows=self.trials,
            asked={**asked, "by": self.by, "seed": self.seed, **self.options},
            command=command_line(
                "score", *self.sources, by=self.by if self.by != BY else None,
                columns=in_one(dict(self.columns)), seed=self.seed or None, **self.options,
            ),
            versions=self.versions,
        )  # fmt: skip

    def save(self, folder: str | Path) -> None:
        """Keep the answers and the question; `read_result` reads both."""
        names = ("paper", "sources", "by", "columns", "seed", "options", "versions")
        with writable(folder) as path:
            self.trials.to_parquet(path / ANSWERS, index=False)
            content = {name: getattr(self, name) for name in names}
            write_text(path / FILE, json.dumps(plain(content), indent=1))


def read_result(folder: str | Path) -> Result:
    """Compute the parts of what `Scored.save` left; nothing is read anew."""
    place = Path(folder)
    try:
        found = json.loads((place / FILE).read_text(encoding="utf-8"))
        trials = pd.read_parquet((place / ANSWERS).absolute())
        scored = Scored(trials=trials, **(found | {"sources": tuple(found["sources"])}))
    except (OSError, ValueError, TypeError, KeyError, ArrowException) as error:
        raise ValueError(f"{place / FILE} is damaged or not of knownminds ({error}).") from None
    return scored.result()


def paper_for(
    paths: Sequence[str | Path], environment: str | None, columns: Mapping[str, str] | None = None
) -> str | None:
    """Name the paper whose experiments all trials of some files are of; None if there is none."""
    if environment is not None:
        return PAPER_OF.get(environment)
    names: set[str] = set()
    for path in runs_in(paths):
        file = path / TRIALS if path.is_dir() else path
        if not file.is_file():
            return None
        names |= experiments_of(path, columns)
    papers = {PAPER_OF.get(name) for name in names}
    return papers.pop() if len(papers) == 1 else None


def _completed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return trials with the columns that their experiments work out from others."""
    parts = [
        environment_of(Trials(part), str(name)).complete(Trials(part))
        for name, part in frame.reset_index(drop=True).groupby("environment", sort=False)
    ]
    return pd.concat(parts).sort_index()


def _participants(frame: pd.DataFrame) -> str | None:
    """Return the column that tells participants apart; None for a single one."""
    if "agent" in frame:
        return "agent"
    if BY in frame:
        if frame[BY].isna().any():
            raise ValueError(
                f"Every trial names its participant in the column {BY!r}; some do not. "
                "Fill it in, or name another column with --by."
            )
        return BY
    return "subject" if "subject" in frame and frame["subject"].nunique() > 1 else None


def _answers_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns of answers that trials of these experiments have."""
    names = frame["environment"].unique()
    places = [ENVIRONMENTS[name].as_played(frame[frame["environment"] == name]) for name in names]
    return list(dict.fromkeys(name for place in places for name in answer_columns(place)))


def _place(name: str, own: pd.DataFrame, options: Mapping[str, Any]) -> Environment | None:
    """Return the experiment of some trials; of contexts from an unknown network there is none."""
    if name == "diagnosis":
        network = options.get("network")
        return None if network is None else ENVIRONMENTS[name](network=network)
    return ENVIRONMENTS[name].as_played(own)
