"""The trials of several runs and files, as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from knownminds.environments import Trials
from knownminds.llm_adapters.runs.runner import TRIALS

BY = "model"  # the column in which a run says who answered
SUFFIXES = (".parquet", ".csv")
ALONE = "participant"  # the name of the only one, where trials name none


def runs_in(paths: Sequence[str | Path]) -> list[Path]:
    """Return the runs and trial files among the paths and directly in their folders.

    Raises
    ------
    ValueError
        If a path is not there, or a folder holds no trials.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir() and not (path / TRIALS).is_file():
            inside = [
                entry
                for entry in sorted(path.iterdir())
                if (entry / TRIALS).is_file() or entry.suffix in SUFFIXES
            ]
            if not inside:
                raise ValueError(
                    f"A folder of runs holds folders with a {TRIALS}, or .csv and .parquet files "
                    f"of trials; {path} has none. Name the folder that `run --out` was given."
                )
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise ValueError(f"Trials are read from a file or a run's folder; there is no {path}.")
    return found


def read_one(data: Trials | str | Path, columns: Mapping[str, str] | None) -> tuple[str, Trials]:
    """Return trials, or those of a file or a run's folder, and what they are called."""
    if isinstance(data, Trials):
        return "trials", data
    file = Path(data)
    return file.name, Trials.load(file / TRIALS if file.is_dir() else file, columns=columns)


def read_all(paths: Sequence[str | Path], columns: Mapping[str, str] | None) -> pd.DataFrame:
    """Return the trials of several runs and files, in one table.

    Sessions of different files stay apart where they would have the same address.
    """
    parts = []
    for path in runs_in(paths):
        file = path / TRIALS if path.is_dir() else path
        part = Trials.load(file, columns=columns).frame
        parts.append(part.assign(file=str(path)))
    frame = pd.concat(parts, ignore_index=True)
    address = [
        name
        for name in (BY, "environment", "condition", "modality", "subject", "session")
        if name in frame
    ]
    copy = frame.groupby(address, sort=False, dropna=False)["file"].transform(
        lambda files: pd.factorize(files)[0]
    )
    again = copy.to_numpy() > 0
    if again.any():
        session = frame["session"].astype("str").to_numpy(dtype=object)
        session[again] = session[again] + "+" + copy[again].astype(str).to_numpy(dtype=object)
        frame["session"] = session
    return frame.drop(columns="file")
