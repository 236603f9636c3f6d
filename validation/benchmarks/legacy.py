"""Papers that still have sections of their own: their parts as those of others."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pandas as pd

from knownminds.validation.engine.result import Drawing, Part

from .paper import SCORES, About

TITLES = {
    "cogbench": (
        "CogBench: seven experiments, ten behavioural metrics",
        "Coda-Forno, Binz, Wang and Schulz 2024",
    ),
}


class SectionPaper:
    """A paper whose module has `sections` and `scores`."""

    def __init__(self, name: str) -> None:
        """Load its module."""
        self.name = name
        self.title, self.source = TITLES[name]
        self.module: Any = import_module(f"knownminds.validation.benchmarks.{name}")

    def parts(self, trials: pd.DataFrame, about: About) -> tuple[list[Part], pd.DataFrame]:
        """Return its sections as parts, and the scores."""
        sections = self.module.sections(trials, about)
        scores = [one.scores for one in sections if one.scores is not None]
        parts = [_part(one, name) for one in sections for name in list(one.frames) or [one.name]]
        return parts, pd.concat(scores, ignore_index=True).reindex(columns=SCORES)

    def scores(self, trials: pd.DataFrame, about: About) -> pd.DataFrame:
        """Return its scores."""
        found: pd.DataFrame = self.module.scores(trials, about)
        return found


def _part(section: Any, name: str) -> Part:
    first = name == next(iter(section.frames), section.name)
    rows = section.frames.get(name, pd.DataFrame())
    if not first:
        return Part(name, name.replace("_", " "), "", rows)
    tables = {t: pd.DataFrame(list(cells), columns=list(h)) for t, h, cells in section.tables}
    figures = {
        caption: Drawing(svg.numbers, lambda _, svg=svg: svg.figure)  # type: ignore[misc]
        for caption, svg in section.figures
    }
    return Part(name, section.title, " ".join(section.sentences), rows, tables, figures)
