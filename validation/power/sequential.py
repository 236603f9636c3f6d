"""Stopping rules: false alarms, power, cost and bias of designs that look several times."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import make
from knownminds.environments.record.text_table import text_table
from knownminds.inference import StoppingRule, SubjectMeasure
from knownminds.validation.engine.engine import read, run
from knownminds.validation.engine.monte_carlo import NOTHING, Score, Tally, share
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import Batch, Cell, Rows, Study

from .aims import LEVEL, sample_tests
from .dials import resolve_measure
from .model_power import ModelPower
from .model_power import summarise as summarise_models
from .operating_characteristics import conditions_lived, sample_of
from .power_study import Power, Sought, sought_in
from .power_study import summarise as summarise_power
from .questions import AskSequential

FOUND = {1: "effect", 0: "", -1: "no effect"}


@dataclass(frozen=True)
class Stopped:
    """What becomes of data sets under a stopping rule, each number with its Monte-Carlo error.

    Parameters
    ----------
    cell : the design at its largest
    effect : true size of the effect
    attempted, failed : data sets; those without a test at some look, which go on to the last
    rejected : share that stops with an effect: power, or false alarms where there is none
    accepted : share that stops for the absence of one (Bayes factors alone)
    fixed : share of the same data sets that the usual test rejects at 5% at the last look, once
    units : mean number of units at the stop
    stops : share of data sets that stop at each look
    bias : mean error of the estimate at the stop
    coverage : of the 95% interval at the stop
    seconds : of computing
    """

    cell: Cell
    effect: float
    attempted: int
    failed: int
    rejected: Score
    accepted: Score
    fixed: Score
    units: Score
    stops: tuple[Score, ...]
    bias: Score
    coverage: Score
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name; scores as NAME and NAME_error."""
        told: dict[str, Any] = {
            "model": self.cell.model,
            "effect": self.effect,
            "attempted": self.attempted,
            "failed": self.failed,
        }
        for name in ("rejected", "accepted", "fixed", "units", "bias", "coverage"):
            score: Score = getattr(self, name)
            told[name], told[f"{name}_error"] = score.value, score.error
        return told | {"stops": [stop.value for stop in self.stops]}


@dataclass(frozen=True)
class Sequential(Reported):
    """The outcome of a study of a stopping rule.

    Parameters
    ----------
    rule : the rule
    measure, comparison : what is tested
    null, effect : data sets without an effect, and with the one that was asked
    """

    study: Study
    rule: StoppingRule
    measure: str
    comparison: str
    null: Stopped
    effect: Stopped
    versions: Mapping[str, str]

    @property
    def unit(self) -> str:
        """What is counted: sessions of one mind, or subjects."""
        return str(self.study.cells[0].options["unit"])

    @property
    def seconds(self) -> float:
        """Computing time, summed over processes."""
        return self.null.seconds + self.effect.seconds

    def to_frame(self) -> pd.DataFrame:
        """One row without an effect, and one with it."""
        return pd.DataFrame([one.to_dict() for one in (self.null, self.effect)])

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        cell = self.study.cells[0]
        return {
            "environment": cell.environment,
            "model": cell.model,
            "measure": self.measure,
            "comparison": self.comparison,
            "rule": self.rule.told(),
            "levels": list(self.rule.levels) if self.rule.kind == "alpha_spending" else None,
            "nominal": self.rule.nominal,
            "unit": self.unit,
            "replicates": self.study.replicates,
            "seed": self.study.seed,
            "null": self.null.to_dict(),
            "effect": self.effect.to_dict(),
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """One line for each kind of data sets, then what it means."""
        cell = self.study.cells[0]
        lines = [
            f"stopping rule for {self.measure} in {cell.environment}, {cell.model}, "
            f"{self.study.replicates} data sets each: {self.rule}"
        ]
        head = ("effect", "found", "found none", "once, at the end", self.unit, "bias", "95% cov.")
        rows = [
            (f"{one.effect:.3g}", one.rejected, one.accepted, one.fixed, one.units, one.bias,
             one.coverage)
            for one in (self.null, self.effect)
        ]  # fmt: skip
        lines += text_table(head, rows)
        return "\n".join([*lines, *sentences(self), "(Monte-Carlo errors)"])


def sentences(found: Sequential) -> list[str]:
    """Say what the rule does to errors and cost."""
    null, effect, most = found.null, found.effect, found.rule.most
    alarms = null.rejected
    promised = (
        f"False alarms: {alarms} of the data sets without an effect; the rule promises nothing "
        "about them."
    )
    if found.rule.nominal is not None:
        promised = (
            f"False alarms: {alarms} of the data sets without an effect, where the rule promises "
            f"{found.rule.nominal:g}."
        )
    told = [
        promised,
        f"It asks {null.units.value:.1f} of {most} {found.unit} on average where there is none, "
        f"and {effect.units.value:.1f} where it is {effect.effect:g}.",
        f"At the stop the estimate of an effect of {effect.effect:g} is off by {effect.bias} on "
        "average.",
    ]
    for one in (null, effect):
        if one.failed:
            told.append(
                f"{one.failed} of {one.attempted} data sets with an effect of {one.effect:g} had "
                "no test at some look and went on there."
            )
    return told


sequential_design = verb(AskSequential, __name__)


def compute(question: AskSequential) -> Sequential:
    """Answer what `power --stop` is asked."""
    rule = (
        question.stop
        if isinstance(question.stop, StoppingRule)
        else StoppingRule.read(question.stop)
    )
    sought = sought_in(question)
    measure = sought.measure
    if not isinstance(measure, SubjectMeasure):
        raise ValueError(
            f"A stopping rule looks at a value of each session or subject; {measure.name} has its "
            "own test of all answers together. Name another measure."
        )
    if rule.measure and rule.measure != measure.name:
        raise ValueError(
            f"The rule is about {rule.measure}; the effect asked for is of {measure.name}. Name "
            "the same, or leave it out of the rule."
        )
    if sought.estimator != "two_stage":
        raise ValueError("A stopping rule goes with the two_stage estimator; got hierarchical.")
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
    size = (rule.most, question.sessions) if many else (question.subjects, rule.most)
    null = 0.0 if sought.comparison != "one" else measure.null
    options = {"rule": rule.told(), "unit": question.unit}
    cells = tuple(
        _with(_cell(replace(sought, size=effect), size, question.trials, null), options)
        for effect in (null, sought.size)
    )
    sought.check_identified([question.trials])
    asked = question.asked() | {"effect": sought.effect, "trials": cells[0].make().n_trials}
    study = Study("power", cells, question.replicates, question.seed, "replicate", asked)
    check_step_loop(study)
    return run(study, stop_batch, summarise, **question.running)


def _cell(sought: Sought, size: tuple[int, int], trials: int | None, null: float) -> Cell:
    """Write the design down; minds whose dial cannot rest at the null are the rational model's."""
    (cell,) = sought.cells([size[0]], [size[1]], [trials])
    if sought.size != null:
        return cell
    try:
        sought.check_identified([trials])
    except ValueError:
        if sought.comparison != "one" or not sought.measure.rational:
            raise
        return replace(cell, model=sought.measure.rational, law={})
    return cell


def _with(cell: Cell, options: Mapping[str, Any]) -> Cell:
    return replace(cell, options={**cell.options, **options})


def read_sequential(folder: str | os.PathLike[str]) -> Sequential:
    """Read a finished study of a stopping rule from its folder; nothing is computed anew."""
    return read(folder, "power", summarise)


def stop_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Let a batch of data sets be looked at until the rule stops: one row per data set."""
    cell = study.cells[batch.cell]
    model, rule = AGENTS[cell.model], StoppingRule.of(cell.options["rule"])
    environment = make(cell.environment, **cell.settings)
    measure = resolve_measure(cell.options["measure"], model, environment)
    assert isinstance(measure, SubjectMeasure)
    effect, lived = conditions_lived(study, batch, measure)
    samples = [sample_of(cell, measure, one, len(batch), threads) for one in lived]
    return stopped(rule, samples, cell.options["comparison"], measure, effect)


def stopped(
    rule: StoppingRule,
    samples: list[Array],
    comparison: str,
    measure: SubjectMeasure,
    effect: Array,
) -> pd.DataFrame:
    """Look at samples[R, most] (of one condition or two) until the rule stops; one row each."""
    n = len(effect)
    null = measure.null if comparison == "one" else 0.0
    rows = {name: np.full(n, np.nan) for name in ("estimate", "low", "high", "units")}
    look_of, found, broken = np.full(n, -1), np.zeros(n, dtype=int), np.zeros(n, dtype=bool)
    tests = None
    for look, units in enumerate(rule.looks):
        tests = sample_tests(comparison, measure, [sample[:, :units] for sample in samples])
        _, stop, is_effect, is_none = rule.judge(tests, look, null)
        broken |= ~np.isfinite(tests.p_value) & (look_of < 0)
        now = stop & (look_of < 0)
        look_of[now] = look
        found[now] = np.where(is_effect, 1, np.where(is_none, -1, 0))[now]
        for name, values in (("estimate", tests.mean), ("low", tests.low), ("high", tests.high)):
            rows[name][now] = values[now]
        rows["units"][now] = units
    assert tests is not None
    return pd.DataFrame(
        {
            "effect": effect,
            "look": look_of,
            "found": found,
            **rows,
            "at_the_end": tests.p_value < LEVEL,
            "status": np.where(broken, "failed", "ok"),
            "message": np.where(broken, "no test at some look", ""),
        }
    )


def summarise(rows: Rows) -> Sequential:
    """Gather the data sets of a finished study."""
    study = rows.study
    cell = study.cells[1]
    rule = StoppingRule.of(cell.options["rule"])
    null, effect = (_gathered(rows, c, rule) for c in range(2))
    return Sequential(
        study=study,
        rule=rule,
        measure=cell.options["measure"],
        comparison=cell.options["comparison"],
        null=null,
        effect=effect,
        versions=rows.versions,
    )


def summarise_found(rows: Rows) -> Power | Sequential | ModelPower | None:
    """Gather a study of designs, models or a rule; of a rule's, None until both are there."""
    if "rivals" in rows.study.cells[0].options:
        return summarise_models(rows)
    if "rule" not in rows.study.cells[0].options:
        return summarise_power(rows)
    there = [any(len(table) for table in rows.tables(cell=c)) for c in range(2)]
    return summarise(rows) if all(there) else None


def _gathered(rows: Rows, cell: int, rule: StoppingRule) -> Stopped:
    looks = range(len(rule.looks))
    counts: Counter[str] = Counter()
    means = {name: Tally() for name in ("effect", "units", "bias")}
    seconds = 0.0
    for table in rows.tables(cell=cell):
        seconds += float(table["seconds"].sum())
        estimated = table[np.isfinite(table["estimate"])]
        low, high = estimated["low"], estimated["high"]
        truth = estimated["effect"]
        off = estimated["estimate"] - truth
        for name, values in (("effect", table["effect"]), ("units", table["units"]), ("bias", off)):
            means[name].add(values.to_numpy(dtype=float)[:, None])
        told = {
            "all": len(table),
            "failed": int((table["status"] == "failed").sum()),
            "rejected": int((table["found"] == 1).sum()),
            "accepted": int((table["found"] == -1).sum()),
            "fixed": int(table["at_the_end"].sum()),
            "estimated": len(estimated),
            "held": int(((low <= truth) & (truth <= high)).sum()),
        }
        counts.update(told | {f"look {k}": int((table["look"] == k).sum()) for k in looks})
    n = counts["all"]
    return Stopped(
        cell=rows.study.cells[cell],
        effect=_mean(means["effect"]).value,
        attempted=n,
        failed=counts["failed"],
        rejected=share(counts["rejected"], n),
        accepted=share(counts["accepted"], n),
        fixed=share(counts["fixed"], n),
        units=_mean(means["units"]),
        stops=tuple(share(counts[f"look {k}"], n) for k in looks),
        bias=_mean(means["bias"]),
        coverage=share(counts["held"], counts["estimated"]),
        seconds=seconds,
    )


def _mean(tally: Tally) -> Score:
    if tally.n == 0:
        return NOTHING
    return Score(float(tally.mean[0]), tally.error(np.ones(1)))
