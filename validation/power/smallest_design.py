"""The smallest design that reaches a power, by stochastic bisection."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from knownminds.validation.engine.engine import Step, computed_steps, stored_steps
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import SIZES
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.study import Rows, Study, question_of, read_study
from knownminds.validation.engine.verdicts import Verdict, reason
from knownminds.validation.pages.views import Curves

from .bisection import ABOUT, Bisection, Curve, check_target, followed, sizes_to_try
from .operating_characteristics import test_batch
from .pilot import Pilot
from .power_study import (
    NOTES,
    EffectSearch,
    effect_search,
    notes_of,
    readings,
    say,
    share_name,
    title_of,
    with_single_sizes,
)
from .questions import Power

REPLICATES = 1000  # of the confirmation


def search(question: Power) -> Result:
    """Answer `power --find`."""
    replicates = question.replicates or REPLICATES
    question = replace(with_single_sizes(question), replicates=replicates)
    check_target(question.target)
    sought = effect_search(question)
    content = question.option_values() | {"effect": sought.effect}
    del content[str(question.find)]
    sought.check_identified([None if question.find == "trials" else question.trials])
    sizes = _sizes(sought)
    start = _study(sought, content, sizes[0], REPLICATES, "start")
    check_step_loop(start)
    return _follow(sought, start, sizes, computed_steps(start, test_batch, question))


def read_search(folder: Path) -> Result:
    """Return what the search in a folder says, as far as it went."""
    start, _ = read_study(folder)
    pilot = Pilot.of(start.cells[0])
    sought = effect_search(question_of(start, Power, pilot=pilot, unconverged=False, run=None))
    return _follow(sought, start, _sizes(sought), stored_steps(folder))


def _sizes(sought: EffectSearch) -> list[int]:
    question = sought.question
    alone = question.find == "subjects" or question.subjects == 1  # a test needs 2 units
    least = 2 if alone and question.find != "trials" else 1
    return sizes_to_try(sought.environment, str(question.find), question.most, least)


def _study(
    sought: EffectSearch, content: dict[str, Any], size: int, data_sets: int, name: str
) -> Study:
    """Return the study of one size; its data sets belong to this name alone."""
    sizes = {name: getattr(sought.question, name) for name in SIZES}
    sizes[str(sought.question.find)] = size
    subjects, sessions, trials = ([sizes[one]] for one in SIZES)
    cells = sought.cells(subjects, sessions, trials, name)
    return Study("power", cells, data_sets, sought.question.seed, "replicate", content)


def _follow(sought: EffectSearch, start: Study, sizes: list[int], rows_of: Step) -> Result:
    """Go the way of the search, and return its result, as far as it went."""
    question, find = sought.question, str(sought.question.find)
    content = dict(start.question)

    def shares(rows: Rows) -> list[tuple[Score, int]]:
        table = say(rows)["Designs"].reset_index()
        return [(table[share_name(table)].iloc[0], table["data sets"].iloc[0])]

    curves = [Curve(sizes, question.target)]
    bisection = Bisection(sizes, question.target, question.replicates or 1, curves)
    steps = followed(bisection, lambda *step: _study(sought, content, *step), rows_of, shares)
    title = title_of(content, find)
    if not steps:
        return Result(title, missing=1, options=content)
    tried = pd.concat(
        [say(rows)["Designs"].reset_index().assign(part=part) for part, _, rows in steps],
        ignore_index=True,
    )
    name = share_name(tried)
    score: Score = tried[name].iloc[-1]
    reached = bisection.verdict != "not reached"
    answer: dict[str, Any] = {find: bisection.size if reached else None, **bisection.answer()}
    answer |= {"target": question.target, name: score}
    held = reason(name, score.value, score.error, question.target)
    fresh = tried[tried["part"] == "fresh run"]
    drawn = Curves(
        "Share of each design that was tried and of the fresh run, with 2 standard errors; "
        "dashed, the target.", (find, name), find, name, series=("part",), joined=False,
        limits=(question.target,), ticks=True, shares=("",),
    )  # fmt: skip
    return start.result(
        title,
        [rows for *_, rows in steps],
        verdicts={
            "the smallest design": Verdict(bisection.verdict, (held,)),
            **readings(fresh.iloc[-1:]),
        },
        tables={
            "Smallest design": pd.DataFrame([answer]).astype(object),
            "Designs that were tried": tried.set_index(["part", *SIZES]),
        },
        figures=drawn.drawings(tried),
        notes=[*notes_of(start.cells[0]), *ABOUT, *NOTES],
        missing=int(bisection.verdict == "not finished"),
    )
