"""What there is: experiments by paper, models and measures."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make, unknown
from knownminds.inference import MEASURES
from knownminds.members import elsewhere
from knownminds.validation.benchmarks.registry import PAPERS, plan_of
from knownminds.validation.engine.screen import folded_table, width_of_screen

if TYPE_CHECKING:
    from .questions import ListAll

FURTHER = "of no paper"  # in the place of a paper


@dataclass(frozen=True)
class Listing:
    """A page of all there is: no row is left out. Tables are rows, since pandas is slow to load.

    Parameters
    ----------
    title, tables, notes : As those of a `Result`.
    """

    title: str
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        shown = [rows for rows in self.tables.values() if rows]
        cells = [[list(map(str, row.values())) for row in rows] for rows in shown]
        tables = [
            folded_table(list(rows[0]), each) for rows, each in zip(shown, cells, strict=True)
        ]
        width = width_of_screen()
        notes = [fill(text, width, break_on_hyphens=False) for text in self.notes]
        return "\n\n".join([self.title, *tables, *notes])

    def to_dict(self) -> dict[str, Any]:
        """Return what a `Result` has."""
        import pandas as pd

        from knownminds.validation.engine.result import Result

        tables = {title: pd.DataFrame(rows) for title, rows in self.tables.items()}
        return Result(self.title, tables=tables, notes=self.notes).to_dict()


def compute(question: ListAll) -> Listing:
    """Answer `list`: a row for each member, with its summary where they are of one kind."""
    kinds = {
        "environment": question.environment,
        "models": question.models,
        "measures": question.measures,
    }
    asked = [name for name, wanted in kinds.items() if wanted]
    if len(asked) > 1:
        raise ValueError(f"One list at a time: got {' and '.join(asked)}. Leave one out.")
    if question.environment is not None:
        return _of_environment(question.environment)
    if question.models or question.measures:
        registry: Mapping[str, Any] = AGENTS if question.models else MEASURES
        table = _summaries("model" if question.models else "measure", registry, registry)
        return Listing(f"{len(table)} {asked[0]}", tables={asked[0].capitalize(): table})
    rows = [
        {"paper": paper, "experiment": name, **_counts(name)} for name, paper in _papers().items()
    ]
    return Listing(
        f"{len(ENVIRONMENTS)} experiments, {len(AGENTS)} models, {len(MEASURES)} measures",
        tables={"Experiments": rows},
        notes=[
            "list --environment NAME shows the models and measures of an experiment, list --models "
            "and list --measures all of them, show NAME one thing.",
            *(
                f"{count} more are in {package}, which is not installed: pip install {package}"
                for package, count in Counter(elsewhere().values()).items()
            ),
        ],
    )


def _papers() -> dict[str, str]:
    """Return the paper of each experiment, papers in their order; experiments of none come last."""
    papers: dict[str, str] = {}
    for paper in PAPERS:
        plan = tomllib.loads(plan_of(paper).read_text(encoding="utf-8"))
        for name, cell in plan["experiments"].items():
            papers.setdefault(cell.get("environment", name), paper)
    known = {name: paper for name, paper in papers.items() if name in ENVIRONMENTS}
    return known | {name: FURTHER for name in ENVIRONMENTS if name not in known}


def _counts(name: str) -> dict[str, int]:
    return {"models": len(_models(name)), "measures": len(_measures(name))}


def _models(environment: str) -> list[str]:
    made = make(environment)
    return [name for name, model in AGENTS.items() if model.plays(made)]


def _measures(environment: str) -> list[str]:
    return [name for name, measure in MEASURES.items() if environment in measure.environments]


def _of_environment(name: str) -> Listing:
    """Return the models that play an experiment, and the measures that are read off it."""
    if name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", name, ENVIRONMENTS))
    return Listing(
        f"{name}: {ENVIRONMENTS[name].summary}",
        tables={
            "Models": _summaries("model", _models(name), AGENTS),
            "Measures": _summaries("measure", _measures(name), MEASURES),
        },
    )


def _summaries(
    kind: str, names: Iterable[str], registry: Mapping[str, Any]
) -> list[dict[str, str]]:
    return [{kind: name, "summary": registry[name].summary} for name in names]
