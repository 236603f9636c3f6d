"""The smallest design that reaches a power, by stochastic bisection."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from knownminds.environments import make
from knownminds.validation.engine.arguments import one_of, resolve_environment
from knownminds.validation.engine.engine import Step, computed_steps, stored_steps
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.result import Drawing, Result
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.study import Study, read_study, versions
from knownminds.validation.engine.verdicts import Verdict, reason
from knownminds.validation.pages import figures as draw

from .bisection import ABOUT, Bisection, Curve, check_target
from .operating_characteristics import test_batch
from .pilot import Pilot
from .power_study import (
    NOTES,
    Sought,
    notes_of,
    readings,
    say,
    sought_in,
    title_of,
    with_single_sizes,
)
from .questions import SIZES, Power

REPLICATES = 1000  # of the confirmation


def search(question: Power) -> Result:
    """Answer `power --find`."""
    replicates = question.replicates or REPLICATES
    question = replace(with_single_sizes(question), replicates=replicates)
    one_of("size to find", str(question.find), SIZES)
    check_target(question.target)
    sought = sought_in(question)
    content = question.option_values() | {"effect": sought.effect}
    del content[str(question.find)]
    wanted = _Search(sought, question, content)
    sought.check_identified([None if question.find == "trials" else question.trials])
    start = wanted.study(wanted.sizes[0], REPLICATES, "start")
    check_step_loop(start)
    return wanted.follow(computed_steps(start, test_batch, question))


def read_search(folder: Path) -> Result:
    """Return what the search in a folder says, as far as it went."""
    return _Search.of(read_study(folder)[0]).follow(stored_steps(folder))


def share_name(designs: pd.DataFrame) -> str:
    """Return what the share that reaches the aim is called: the column after "data sets"."""
    columns = list(designs.columns)
    return str(columns[columns.index("data sets") + 1])


@dataclass(frozen=True)
class _Search:
    """What is searched; the path is a function of the results, so that it can be gone again."""

    sought: Sought
    question: Power
    content: dict[str, Any]

    @classmethod
    def of(cls, study: Study) -> _Search:
        """Return the search of the study in its folder."""
        content, cell = dict(study.question), study.cells[0]
        names = {one.name for one in fields(Power)} & set(content)
        options: dict[str, Any] = {
            name: content[name] for name in names if content[name] is not None
        }
        options["environment"] = make(cell.environment, **cell.settings)
        options["truth"] = {k: v for k, v in content["set"].items() if k not in cell.settings}
        options |= {"pilot": Pilot.of(cell), "unconverged": False, "run": None}
        question = Power(**options)
        return cls(sought_in(question), question, content)

    @property
    def find(self) -> str:
        """What is varied."""
        return str(self.question.find)

    @cached_property
    def sizes(self) -> list[int]:
        """The sizes that are considered, ascending."""
        if self.find == "trials":
            sizes = [n for n in range(1, self.question.most + 1) if self._possible(n)]
        else:
            alone = self.find == "subjects" or self.question.subjects == 1  # a test needs 2 units
            sizes = list(range(2 if alone else 1, self.question.most + 1))
        if not sizes:
            raise ValueError(f"No number of {self.find} up to {self.question.most} can be tested.")
        return sizes

    def _possible(self, trials: int) -> bool:
        try:
            resolve_environment(self.sought.environment, trials)
        except ValueError:
            return False
        return True

    def study(self, size: int, data_sets: int, name: str) -> Study:
        """Return the study of one size; its data sets belong to this name alone."""
        sizes = {name: getattr(self.question, name) for name in SIZES} | {self.find: size}
        subjects, sessions, trials = ([sizes[one]] for one in SIZES)
        law = {"part_of_search": name}
        cells = self.sought.cells(subjects, sessions, trials, law)
        return Study("power", cells, data_sets, self.question.seed, "replicate", self.content)

    def follow(self, rows_of: Step) -> Result:
        """Go the way of the search; `rows_of` computes or reads the study of a name."""
        target, tried, seconds = self.question.target, [], 0.0

        def measure(size: int, data_sets: int, name: str) -> list[tuple[Score, int]] | None:
            nonlocal seconds
            rows = rows_of(self.study(size, data_sets, name), name)
            if rows is None:
                return None
            result = say(rows)
            row = result["Designs"].reset_index().to_dict("records")[0]
            part = "fresh run" if name.startswith("confirmation") else "search"
            tried.append({"part": part, **row})
            seconds += result.seconds
            return [(row[share_name(pd.DataFrame([row]))], row["data sets"])]

        curves = [Curve(self.sizes, target)]
        bisection = Bisection(self.sizes, target, self.question.replicates or 1, curves)
        return self._answer(bisection.follow(measure), pd.DataFrame(tried), seconds)

    def _answer(self, search: Bisection, tried: pd.DataFrame, seconds: float) -> Result:
        """Return the result of a search, as far as it went."""
        title = title_of(self.content, self.find)
        if tried.empty:
            return Result(title, missing=1, options=self.content)
        name = share_name(tried)
        low, _, high = search.interval
        answer = {
            self.find: None if search.outcome == "not reached" else search.size,
            **search.answer(),
            "target": self.question.target,
            name: tried[name].iloc[-1],
        }
        share: Score = tried[name].iloc[-1]
        held = reason(name, share.value, share.error, self.question.target)
        word = Verdict(search.outcome, (held,))
        start = self.study(self.sizes[0], 1, "start")
        fresh = tried[tried["part"] == "fresh run"]
        searched = tried.assign(low=low, high=high, target=self.question.target, find=self.find)
        return Result(
            title,
            verdicts={"the smallest design": word, **readings(fresh.iloc[-1:])},
            tables={
                "Smallest design": pd.DataFrame([answer]).astype(object),
                "Designs that were tried": tried.set_index(["part", *SIZES]),
            },
            figures={
                "Left: share of each design that was tried and of the fresh run, with 2 standard "
                "errors; dashed, the target. Right: the way of the search. Shaded: the interval of "
                "the answer.": Drawing(searched, draw_search)
            },
            notes=[*notes_of(start.cells[0]), *ABOUT, *NOTES],
            attempted=int(tried["data sets"].sum()),
            failed=int(tried["failed"].sum()),
            missing=int(search.outcome == "not finished"),
            options=start.options,
            command=start.command_line(),
            seconds=seconds,
            versions=versions(),
        )


def draw_search(tried: pd.DataFrame) -> Figure:
    """Draw a search: share against size, and size against step."""
    figure, (left, right) = draw.panels(2)
    figure.set_size_inches(7.2, 3.2)
    find, name = tried["find"].iloc[0], share_name(tried)
    sizes = list(tried[find])
    for (part, rows), style in zip(tried.groupby("part", sort=False), draw.styles(2), strict=False):
        look = (*style[:2], "none")
        draw.curve(left, list(rows[find]), list(rows[name]), look, str(part))
        draw.line(right, list(rows.index + 1), list(rows[find]), look)
    low, high = max(tried["low"].iloc[0], 1.0), min(tried["high"].iloc[0], 1.5 * max(sizes))
    if low < high:
        left.axvspan(low, high, color=draw.GREEN, alpha=0.2, linewidth=0, zorder=0)
        right.axhspan(low, high, color=draw.GREEN, alpha=0.2, linewidth=0, zorder=0)
    draw.limit(left, tried["target"].iloc[0])
    draw.scale(left, sizes)
    left.set(xlabel=find, ylabel=name, ylim=(0, 1.02))
    right.set(xlabel="step", ylabel=find)
    draw.key(figure, left)
    return figure
