"""Stopping rules: false alarms, power, cost and bias of designs that look several times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import make
from knownminds.inference import StoppingRule, SubjectMeasure
from knownminds.inference.analysis import LEVEL, Analysis
from knownminds.inference.measure import Tests
from knownminds.validation.engine import scores
from knownminds.validation.engine.cells import Cell, Population
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import SIZES
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.engine.verdicts import Verdict, judge_size, not_judged
from knownminds.validation.pages.views import Curves

from .dials import resolve_measure
from .operating_characteristics import analysis_of, conditions_lived, said, samples_of
from .power_study import REPLICATES, EffectSearch, effect_search, reading, with_single_sizes
from .questions import Power

NOTES = (
    "Monte-Carlo standard errors in parentheses. found: share of data sets that stop with an "
    "effect (false alarms where there is none); found none: that stop for its absence. once, "
    "at the end: the same data sets, tested a single time at 5% at the last look. units: at the "
    "stop, on average. covers: share of the intervals at the stop that hold the truth. Where the "
    "rule promises a level, their mass is 1 minus the level of the look, and at least 95%, so that "
    "all looks together hold the truth as often as promised. Elsewhere they are 95% intervals of a "
    "single look, and may cover less. A data set without a test at some look is counted as failed, "
    "and goes on there.",
)


def stopping(question: Power) -> Result:
    """Answer `power --stop`."""
    question = with_single_sizes(question)
    rule = (
        question.stop
        if isinstance(question.stop, StoppingRule)
        else StoppingRule.read(question.stop or "")
    )
    sought = effect_search(question)
    measure = sought.measure
    if not isinstance(measure, SubjectMeasure):
        raise ValueError(
            f"A stopping rule looks at a value of each session or subject; {measure.name} tests "
            "all answers together. Name another measure."
        )
    if rule.measure and rule.measure != measure.name:
        raise ValueError(
            f"The rule is about {rule.measure}; the stated effect is of {measure.name}. Name "
            "the same, or leave it out of the rule."
        )
    if question.estimator == "hierarchical":
        raise ValueError("A stopping rule looks at values of units; leave --estimator out.")
    if sought.aim.options:
        raise ValueError(
            "A stopping rule says itself what ends a study; leave --width and --rope out."
        )
    if question.effect_sd:
        raise ValueError("A stopping rule is studied at one size of the effect; leave its sd out.")
    many = question.unit == "subjects"
    least = {name: getattr(question, name) for name in ("subjects", "sessions")}
    if least[question.unit] != 1:
        raise ValueError(
            f"With a stopping rule the numbers of {question.unit} are its looks; got "
            f"--{question.unit} {least[question.unit]}. Leave it out."
        )
    single: dict[str, Any] = {name: getattr(question, name) for name in SIZES}
    size = (rule.looks[-1], single["sessions"]) if many else (single["subjects"], rule.looks[-1])
    null = 0.0 if question.comparison != "one" else measure.null
    written = (
        _cell(replace(sought, size=effect), size, single["trials"], null)
        for effect in (null, sought.size)
    )
    cells = tuple(
        replace(one, analysis=replace(one.analysis, rule=rule.as_dict(), unit=question.unit))
        for one in written
    )
    sought.check_identified([single["trials"]])
    given = question.option_values() | {"effect": sought.effect, "trials": cells[0].make().n_trials}
    replicates = question.replicates or REPLICATES
    given |= {"replicates": replicates, question.unit: None}
    study = Study("power", cells, replicates, question.seed, "replicate", given)
    check_step_loop(study)
    return run(study, stop_batch, say, question)


def _cell(sought: EffectSearch, size: tuple[int, int], trials: int | None, null: float) -> Cell:
    """Write the design down; agents whose dial cannot rest at the null are the rational model's."""
    (cell,) = sought.cells([size[0]], [size[1]], [trials])
    if sought.size != null:
        return cell
    try:
        sought.check_identified([trials])
    except ValueError:
        if sought.question.comparison != "one" or not sought.measure.rational:
            raise
        return replace(cell, model=sought.measure.rational, population=Population())
    return cell


def stop_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let a batch of data sets be looked at until the rule stops: one row per data set."""
    cell = study.cells[batch.cell]
    model, rule = AGENTS[cell.model], StoppingRule.of(cell.analysis.rule)
    environment = make(cell.environment, **cell.settings)
    measure = resolve_measure(cell.analysis.measure, model, environment)
    analysis = analysis_of(cell, measure)
    effect, sessions = conditions_lived(study, batch, measure)
    if analysis.estimator == "together":

        def tests_of(units: int) -> Tests:
            so_far = [one.first_sessions(units) for one in sessions]
            return analysis.tests(samples_of(analysis, so_far, len(batch), threads))

    else:
        samples = samples_of(analysis, sessions, len(batch), threads)

        def tests_of(units: int) -> Tests:
            return analysis.tests([sample[:, :units] for sample in samples])

    return stopped(replace(analysis, stop=rule), tests_of, effect)


def stopped(analysis: Analysis, tests_of: Callable[[int], Tests], effect: Array) -> pd.DataFrame:
    """Look at R data sets until the rule stops, one row each; `tests_of` tests some units."""
    rule, n = analysis.stop, len(effect)
    assert rule is not None
    rows = {name: np.full(n, np.nan) for name in ("estimate", "low", "high", "units")}
    look_of, decisions, broken = np.full(n, -1), np.zeros(n, dtype=int), np.zeros(n, dtype=bool)
    tests = None
    for look, units in enumerate(rule.looks):
        tests = analysis.at_look(tests_of(units), look)
        _, stop, is_effect, is_none = rule.judge(tests, look, analysis.null)
        broken |= ~np.isfinite(tests.p_value) & (look_of < 0)
        now = stop & (look_of < 0)
        look_of[now] = look
        decisions[now] = np.where(is_effect, 1, np.where(is_none, -1, 0))[now]
        for name, values in (("estimate", tests.mean), ("low", tests.low), ("high", tests.high)):
            rows[name][now] = values[now]
        rows["units"][now] = units
    assert tests is not None
    return pd.DataFrame(
        {
            "effect": effect,
            "look": look_of,
            "found": decisions,
            **rows,
            "at_the_end": tests.p_value < LEVEL,
            "status": np.where(broken, "failed", "ok"),
            "message": np.where(broken, "no test at some look", ""),
        }
    )


def say(rows: Rows) -> Result:
    """Say what the rule does to data sets without an effect and with it."""
    study = rows.study
    rule = StoppingRule.of(study.cells[0].analysis.rule)
    unit = study.cells[0].analysis.unit
    levels = [np.nan] * len(rule.looks) if rule.nominal is None else rule.levels
    looks = pd.DataFrame({unit: rule.looks, "level": levels})
    table = []
    verdicts: dict[str, Verdict] = {}
    for number, name in enumerate(("no effect", "effect")):
        frame = rows.of(number)
        if len(frame) == 0:
            continue
        n, estimated = len(frame), frame[np.isfinite(frame["estimate"])]
        truth = estimated["effect"]
        held = (estimated["low"] <= truth) & (truth <= estimated["high"])
        counts = [int((frame["look"] == k).sum()) for k in range(len(rule.looks))]
        shares: list[Any] = [scores.share(k, n) for k in counts]
        looks[f"stops, {name}"] = shares
        failed = int((frame["status"] == "failed").sum())
        covers = scores.share(int(held.sum()), len(estimated))
        if name == "effect":
            verdicts["size of the effect"] = reading(covers)
        else:
            verdicts["false alarms"] = _alarms(rule, int((frame["found"] == 1).sum()), n, failed)
        table.append(
            {
                "data sets with": name,
                "effect": float(frame["effect"].mean()),
                "found": scores.share(int((frame["found"] == 1).sum()), n),
                "found none": scores.share(int((frame["found"] == -1).sum()), n),
                "once, at the end": scores.share(int(frame["at_the_end"].sum()), n),
                "units": scores.mean(frame["units"]),
                "bias": scores.mean(estimated["estimate"] - truth),
                "covers": covers,
                "promised": rule.nominal if name == "no effect" else np.nan,
                "failed": failed,
            }
        )
    title = f"How does the stopping rule behave for {study.cells[-1].analysis.measure}?"
    if not table:
        return rows.result(title)
    names = [str(name) for name in looks if str(name).startswith("stops, ")]
    stops = looks.melt(unit, names, "data sets", "stopped").assign(
        stopped=lambda rows: rows["stopped"].map(float).groupby(rows["data sets"]).cumsum()
    )
    curves = Curves(
        "Share of data sets that have stopped by each look.", (unit, "stopped"), unit, "stopped",
        series=("data sets",), shares=("",),
    )  # fmt: skip
    return rows.result(
        title,
        verdicts=verdicts,
        tables={
            "Data sets": pd.DataFrame(table).set_index("data sets with"),
            "Looks": looks.set_index(unit),
            "Rule": pd.DataFrame({"rule": [str(rule)]}),
        },
        of="data sets",
        figures=curves.drawings(stops),
        notes=NOTES,
        options={**study.options, "analysis": said(study.cells[-1:])},
    )


def _alarms(rule: StoppingRule, found: int, n: int, failed: int) -> Verdict:
    """Judge the false alarms over all looks against what the rule promises."""
    if rule.nominal is not None:
        at_most = rule.kind == "e_process"  # which keeps alpha at any number of looks
        return judge_size(found / n, n, failed=failed / n, level=rule.nominal, at_most=at_most)
    return not_judged(f"found {scores.share(found, n)}", "the rule promises no share")
