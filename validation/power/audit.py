"""Audits: what a metric and its test do to agents whose true value is known."""

from __future__ import annotations

from dataclasses import fields
from math import hypot
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.environments import Environment, unknown
from knownminds.inference import MEASURES, Measure
from knownminds.inference.analysis import LEVEL
from knownminds.validation.engine.arguments import (
    changed_settings,
    resolve_environment,
    set_to,
    several,
)
from knownminds.validation.engine.cells import Cell, CellAnalysis, Population
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import load, verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import NOTHING, Score
from knownminds.validation.engine.study import Rows, Study
from knownminds.validation.engine.verdicts import LEAST_SIZE, MOST_SIZE, Verdict, judge_size
from knownminds.validation.pages.views import Curves
from knownminds.validation.studies import AUDITS

from .dials import GroupDial
from .operating_characteristics import characteristics, estimator_of, said, test_batch
from .questions import Audit

FITS_PER_BATCH = 512
EFFECTS = (0.1, 0.2, 0.4)
NAMES = ["model", "subjects", "effect", "trials"]
ALIKE, AROUND = "all at the null value", "differ around it"  # without an effect
NOTES = (
    "Monte-Carlo standard errors in parentheses. Units are the subjects of a data set; of one "
    "subject, its sessions. Data sets without an estimate count as not rejecting, and are left out "
    "of the other scores; units without a value are left out of their data set and counted.",
    f"rejected: share of the data sets whose test rejects at {LEVEL:.0%}. bias and spread: "
    "mean and standard deviation of estimate - truth; standard error: the mean of those that the "
    "analysis itself reports, which should equal the spread. wrong sign, exaggeration: of the "
    "rejecting data sets, share with the wrong sign, and mean |estimate| over mean |effect|, both "
    "from the null value (Gelman and Carlin 2014).",
    f"Size holds: the test rejects in {LEAST_SIZE} to {MOST_SIZE} of the data sets without an "
    "effect (Bradley 1978). Subjects without an effect are all at the null value, or they differ "
    "around it with a mean there: a test that takes their answers as independent passes the first "
    "and not the second.",
)

audit = verb(Audit, __name__)


def compute(question: Audit) -> Result:
    """Answer `audit`."""
    name = question.measure
    if name in MEASURES:
        return run(study(question), test_batch, say, question)
    if name not in AUDITS:
        raise ValueError(unknown("measure", name, [*MEASURES, *AUDITS]))
    taken = {"measure", "replicates", "settings", "seed", *vars(question.running)}
    taken |= set(load(AUDITS[name], "OPTIONS"))
    for one in fields(question):
        if one.name not in taken and getattr(question, one.name) != one.default:
            raise ValueError(
                f"The audit of {name} has a design of its own; got --{one.name}. Leave it out."
            )
    made = load(AUDITS[name], "study")(question)
    return run(made, load(AUDITS[name], "work"), say, question)


def say(rows: Rows) -> Result:
    """Make a result of the rows of an audit, of a measure or one of `AUDITS`."""
    name = rows.study.question["subject_matter"]
    result: Result = load(AUDITS[name], "say")(rows) if name in AUDITS else score_measure(rows)
    options = {"measure": name, **{k: v for k, v in result.options.items() if k != "experiment"}}
    return result.about(options=options)


def study(question: Audit) -> Study:
    """Check the options, and write down its designs."""
    measure = MEASURES[question.measure]
    environment = question.environment
    if not isinstance(environment, Environment):
        name = environment or measure.environments[0]
        environment = set_to(resolve_environment(name), measure.settings)
    environment = set_to(resolve_environment(environment), question.settings)
    measure = measure.in_place(environment)
    subjects, sessions = question.subjects, question.sessions
    if subjects < measure.least_subjects:
        least = measure.least_subjects
        raise ValueError(f"The test is over subjects and needs at least {least}; got {subjects}.")
    effects = usual_effects(measure) if question.effects is None else question.effects
    for effect in effects:
        if not np.isfinite(effect):
            raise ValueError(f"The size of an effect is a number; got {effect:g}.")
    designs = [resolve_environment(environment, n) for n in several(question.trials)]
    if not designs:
        raise ValueError("An audit needs a number of trials; got none.")
    cells = [_cell(measure, one, None, subjects, sessions) for one in designs if measure.rational]
    around = [measure.null] if subjects > 1 and can_differ_around(measure) else []
    cells += [
        _cell(measure, one, float(effect), subjects, sessions)
        for effect in dict.fromkeys([*around, *effects])
        for one in designs
    ]
    if not cells:
        raise ValueError(f"{measure.name} has no null value: an audit needs an effect; got none.")
    options = question.option_values() | {
        "environment": environment.name,
        "effect": list(map(float, effects)),
        "trials": [one.n_trials for one in designs],
        "set": changed_settings(environment),
    }
    made = Study("audit", tuple(cells), question.replicates, question.seed, "replicate", options)
    check_step_loop(made)
    return made


def can_differ_around(measure: Measure) -> bool:
    """Say whether violators drawn from the priors can have the null value as their mean."""
    model = AGENTS[measure.violator]
    dial = GroupDial(measure, model, model.parameters.mean, model.parameters.sd)
    try:
        dial.turn_to(np.array([measure.null]))
    except ValueError:
        return False
    return bool(measure.rational)


def usual_effects(measure: Measure) -> tuple[float, ...]:
    """Return effects that violators drawn from the priors can have: `EFFECTS`, if they can.

    Of a measure that is counted in larger units than shares, they are parts of what it can be.
    """
    parameters = AGENTS[measure.violator].parameters
    dial = GroupDial(measure, AGENTS[measure.violator], parameters.mean, parameters.sd)
    turns, values = dial.curve
    if measure.rational:
        # A group whose dial cannot be turned below 0 deviates a little before it is turned.
        least = measure.null if measure.dial.lowest is None else max(float(values[0]), measure.null)
        most = float(values.max()) - least
        span = measure.bounds[1] - measure.bounds[0]
        in_shares = not np.isfinite(span) or span <= 2.0
        if in_shares and measure.dial.lowest is None and most > 1.1 * max(EFFECTS):
            return EFFECTS
        return tuple(float(f"{least + share * most:.2g}") for share in (0.2, 0.4, 0.8))
    middle, ends = (turns[0] + turns[-1]) / 2, (turns[-1] - turns[0]) / 8
    where = (middle - ends, middle, middle + ends)
    return tuple(float(f"{np.interp(turn, turns, values):.3g}") for turn in where)


def _cell(
    measure: Measure, environment: Environment, effect: float | None, subjects: int, sessions: int
) -> Cell:
    """Write down one kind of agent in one design; no effect means the rational model."""
    model = AGENTS[measure.rational if effect is None else measure.violator]
    model.check_plays(environment)
    population = Population()
    if effect is not None:
        parameters = model.parameters
        mean, spread = parameters.mean, parameters.sd
        GroupDial(measure, model, mean, spread).turn_to(np.array([effect]))
        population = Population(
            group_mean=dict(zip(parameters.names, mean.tolist(), strict=True)),
            group_sd=dict(zip(parameters.names, spread.tolist(), strict=True)),
            effect=effect,
        )
    return Cell(
        environment.name,
        environment.settings,
        model.name,
        population=population,
        sessions=sessions,
        subjects=subjects,
        method=estimator_of(measure, subjects),
        analysis=CellAnalysis(measure=measure.name, comparison="one"),
        batch=max(1, FITS_PER_BATCH // subjects),
    )


def score_measure(rows: Rows) -> Result:
    """Score the audit of a measure, each kind of agent and number of trials by itself."""
    cells = rows.study.cells
    measure = MEASURES[cells[0].analysis.measure]
    table, sizes = [], []
    verdicts: dict[str, Verdict] = {}
    for number, cell in enumerate(cells):
        frame = rows.of(number)
        if len(frame) == 0:
            continue
        trials, failed = cell.make().n_trials, float((frame["status"] == "failed").mean())
        scored = characteristics(cell, frame)
        scored["rejected"] = scored.pop("power")
        effect = cell.population.effect
        without = effect is None or effect == measure.null
        group = (ALIKE if effect is None else AROUND) if without else ""
        table.append({"model": cell.model, "subjects": group, "trials": trials, **scored})
        if not without:
            continue
        verdict = judge_size(scored["rejected"].value, len(frame), failed=failed)
        low, high = by_chance(len(frame))
        name = f"{trials} trials"
        verdicts[name if group == ALIKE else f"{name}, subjects {group}"] = verdict
        sizes.append(
            {
                "subjects": group,
                "trials": trials,
                "rejected": scored["rejected"],
                "least by chance": low,
                "most by chance": high,
                "data sets": len(frame),
                "verdict": verdict.word,
            }
        )
    nobody = []
    if AROUND not in {row["subjects"] for row in table} and measure.rational:
        nobody = ["No group whose subjects differ around the null value was audited."]
    tables = {
        "Size of the test": pd.DataFrame(sizes),
        "Operating characteristics": pd.DataFrame(table),
    }
    named = {
        title: table.set_index([name for name in NAMES if name in table])
        for title, table in tables.items()
        if len(table)
    }
    return rows.result(
        f"What does {measure.name} do to agents whose true value is known?",
        verdicts=verdicts,
        of="data sets",
        tables=named,
        figures=_figures(*tables.values()),
        notes=[f"{measure.name}: {measure.summary} ({measure.source}).", *NOTES, *nobody],
        options={**rows.study.options, "analysis": said(rows.study.cells)},
    )


def by_chance(n: int) -> tuple[float, float]:
    """Return the ends of the band in which an exact test of n data sets lies in 95%."""
    half = 1.96 * (LEVEL * (1 - LEVEL) / n) ** 0.5
    return max(LEVEL - half, 0.0), LEVEL + half


def _figures(sizes: pd.DataFrame, table: pd.DataFrame) -> dict[str, Drawing]:
    """Return how often tests reject without an effect, and all characteristics by the effect."""
    by_size = Curves(
        "Share of the data sets without an effect in which the test rejects, with 2 standard "
        f"errors. Line: the {LEVEL:.0%} that are promised; shaded: 95% of exact tests by chance.",
        ("trials", "rejected without an effect"), "trials", "rejected", series=("subjects",),
        zone=by_chance(int(sizes["data sets"].iloc[0])) if len(sizes) else None,
        limits=(LEVEL,), ticks=True,
    )  # fmt: skip
    honesty = "standard error / spread"
    references = {"rejected": (LEVEL,), "bias": (0.0,), honesty: (1.0,), "95% covers": (0.95,)}
    by_effect = Curves(
        "By the true value (at the left, agents without the effect): share of data sets that "
        "reject, bias, reported standard error over the spread, and coverage of 95% intervals; "
        "with 2 standard errors.", ("true value", ""), "effect", tuple(references),
        series=("trials",), limits=references, shares=("rejected",),
    )  # fmt: skip
    figures = by_size.drawings(sizes)
    if len(sizes) < len(table):
        known = table[table["effect"].notna() & (table["subjects"] != AROUND)].sort_values("effect")
        pairs = zip(known["standard error"], known["spread"], strict=True)
        ratios: Any = [_honesty(*pair) for pair in pairs]
        known = known.assign(**{honesty: ratios})
        figures |= by_effect.drawings(known)
    return figures


def _honesty(score: Score, actual: Score) -> Score:
    """Reported standard error over the actual one; both have errors, taken as independent."""
    if not score.value > 0 or not actual.value > 0:
        return NOTHING
    ratio = score.value / actual.value
    return Score(ratio, ratio * hypot(score.error / score.value, actual.error / actual.value))
