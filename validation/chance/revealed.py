"""What models reveal of their beliefs about chance, beside what they state."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException

from knownminds.agents.parameters import Array
from knownminds.environments.record.folders import writable, write_text
from knownminds.environments.record.tabled_result import plain
from knownminds.inference.chance.revealed_belief import RevealedBeliefs
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import versions

FILE = "revealed.json"
BELIEFS, REWORDED, ANSWERS = "beliefs.parquet", "reworded.parquet", "stated.parquet"
Who = tuple[str, str]  # a participant, and the form of its questions


@dataclass(frozen=True, eq=False)
class Revealed:
    """What participants reveal of their beliefs, and what they state.

    Parameters
    ----------
    beliefs : By participant and form ("question" or "continuation"), over its contexts.
    stated : One row per participant and question or outcome that the question is about:
        participant, scenario, context, outcome, truth, stated (its probability as it was stated)
        and error (1 where a wrong letter was chosen, or its probability).
    cells : By scenario and form, a cell of the plan.
    naive, known : What the tokens of each outcome alone would say, and the beliefs of an agent
        whose beliefs are known, [rows of the beliefs]; NaN where not known.
    reworded : Of participants with several wordings, the beliefs in all of them, as
        `joined_wordings` makes them; everything else is of the first one.
    options : The options.
    seconds : Of computing.
    """

    beliefs: Mapping[Who, RevealedBeliefs]
    stated: pd.DataFrame
    cells: Mapping[tuple[str, str], str] = field(default_factory=dict)
    naive: Mapping[Who, Array] = field(default_factory=dict)
    known: Mapping[Who, Array] = field(default_factory=dict)
    reworded: Mapping[str, RevealedBeliefs] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    seconds: float = 0.0

    @property
    def participants(self) -> tuple[str, ...]:
        """Their names; the first is what others are compared with."""
        return tuple(dict.fromkeys(who for who, _ in self.beliefs))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Keep beliefs, stated answers and options; `read_revealed` reads them."""
        with writable(folder) as path:
            (path / FILE).unlink(missing_ok=True)  # by which the folder is known: it comes last
            more = {
                kind: np.concatenate([getattr(self, kind)[who] for who in self.beliefs])
                for kind in ("naive", "known")
            }
            parts = [(*who, read) for who, read in self.beliefs.items()]
            _stacked(parts).assign(**more).to_parquet(path / BELIEFS, index=False)
            self.stated.to_parquet(path / ANSWERS, index=False)
            if self.reworded:
                again = [(who, "", read) for who, read in self.reworded.items()]
                _stacked(again).to_parquet(path / REWORDED, index=False)
            content = {name: getattr(self, name) for name in ("options", "versions", "seconds")}
            write_text(path / FILE, json.dumps(plain(content), indent=1))


@dataclass(frozen=True, repr=False)
class RevealAnswer(Result):
    """The parts of the paper on revealed beliefs, and the beliefs that they are made of.

    Parameters
    ----------
    revealed : Beliefs and stated answers; saved beside the page.
    """

    revealed: Revealed = field(default_factory=lambda: Revealed({}, pd.DataFrame()), compare=False)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write beliefs and stated answers, the page and all its files; return the page."""
        self.revealed.save(folder)
        return super().save(folder)


def read_revealed(folder: str | os.PathLike[str]) -> Revealed:
    """Read what `reveal` left in a folder, without a call.

    Raises
    ------
    ValueError : If the folder holds no such result.
    """
    path = Path(folder)
    try:
        content = json.loads((path / FILE).read_text(encoding="utf-8"))
        table = pd.read_parquet((path / BELIEFS).absolute())
        stated = pd.read_parquet((path / ANSWERS).absolute())
        several = (path / REWORDED).absolute()
        again = pd.read_parquet(several) if several.exists() else pd.DataFrame({"model": []})
    except (OSError, json.JSONDecodeError, ArrowException) as error:
        raise ValueError(
            f"Beliefs are read from a folder of `knownminds reveal`; {path} cannot be read: {error}"
        ) from None
    parts = {
        (str(who), str(form)): rows
        for (who, form), rows in table.groupby(["model", "form"], sort=False)
    }
    return Revealed(
        beliefs={who: RevealedBeliefs.of_frame(rows) for who, rows in parts.items()},
        stated=stated,
        naive={who: rows["naive"].to_numpy(dtype=float) for who, rows in parts.items()},
        known={who: rows["known"].to_numpy(dtype=float) for who, rows in parts.items()},
        reworded={
            str(who): RevealedBeliefs.of_frame(rows)
            for who, rows in again.groupby("model", sort=False)
        },
        **content,
    )


def _stacked(parts: Sequence[tuple[str, str, RevealedBeliefs]]) -> pd.DataFrame:
    """Return the tables of several beliefs one below the other."""
    frames = [read.to_frame().assign(model=who, form=form) for who, form, read in parts]
    return pd.concat(frames, ignore_index=True)
