"""Audits: what a metric and its test do to minds whose true value is known."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.environments import Environment, make, unknown
from knownminds.environments.record.text_table import text_table
from knownminds.inference import MEASURES, Measure
from knownminds.validation.engine.arguments import resolve_environment, settings_asked
from knownminds.validation.engine.engine import read, run
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.sensitivity import (
    found_difference,
    found_share,
    trials_for_share,
)
from knownminds.validation.engine.study import Cell, Rows, Study
from knownminds.validation.engine.verdicts import NOTICED, Verdict, judge_size
from knownminds.validation.studies import AUDITS, load

from .aims import LEVEL
from .dials import GroupDial
from .operating_characteristics import Characteristics, characteristics, test_batch
from .power_study import several
from .questions import AskAudit

FITS_PER_BATCH = 512
EFFECTS = (0.1, 0.2, 0.4)


@dataclass(frozen=True)
class Audit(Reported):
    """The outcome of an audit.

    Parameters
    ----------
    null
        Under minds that have the measure's null value, one entry per number of trials.
    violators
        Under minds that deviate, one entry per size of the deviation and number of trials.
    verdicts
        On the size of the test, by number of trials.
    """

    study: Study
    measure: Measure
    null: tuple[Characteristics, ...]
    violators: tuple[Characteristics, ...]
    verdicts: Mapping[int, Verdict]
    versions: Mapping[str, str]

    @property
    def entries(self) -> tuple[Characteristics, ...]:
        """All entries, the null ones first."""
        return (*self.null, *self.violators)

    @property
    def missed(self) -> list[str]:
        """Sentences on which false alarms and biases so many data sets would have found."""
        return [about_missed(entry) for entry in self.null if entry.bias.error > 0]

    @property
    def seconds(self) -> float:
        """Computing time, summed over processes."""
        return sum(entry.seconds for entry in self.entries)

    def to_frame(self) -> pd.DataFrame:
        """One row per kind of mind and number of trials."""
        return pd.DataFrame([entry.to_dict() for entry in self.entries])

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        cell = self.study.cells[0]
        size = [
            {
                "trials": entry.trials,
                "size": entry.rejected.value,
                "size_error": entry.rejected.error,
                "verdict": self.verdicts[entry.trials].word,
                "reasons": list(self.verdicts[entry.trials].reasons),
            }
            for entry in self.null
        ]
        return {
            "measure": self.measure.name,
            "environment": cell.environment,
            "null_model": self.measure.rational,
            "violator": self.measure.violator,
            "subjects": cell.subjects,
            "sessions": cell.sessions,
            "replicates": self.study.replicates,
            "seed": self.study.seed,
            "level": 0.05,
            "attempted": sum(entry.attempted for entry in self.entries),
            "failed": sum(entry.failed for entry in self.entries),
            "size": size,
            "entries": self.to_frame().to_dict("records"),
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """One line per kind of mind and number of trials, then the verdicts."""
        cell = self.study.cells[0]
        lines = [
            f"audit of {self.measure.name} in {cell.environment}, {cell.subjects} subjects x "
            f"{cell.sessions} sessions"
        ]
        head = ("effect, trials, minds", "rejected (5%)", "bias", "sd", "own s.e.", "95% cov.")
        rows = [
            (f"{one.effect:.3g}, {one.trials}, {one.cell.model}", one.rejected, one.bias,
             one.spread, one.standard_error, one.coverage)
            for one in self.entries
        ]  # fmt: skip
        lines += text_table(head, rows)
        for trials, verdict in self.verdicts.items():
            lines.append(f"{trials} trials: {verdict}")
        lines += self.missed
        return "\n".join([*lines, "(Monte-Carlo errors)"])


def about_missed(entry: Characteristics) -> str:
    """Say which errors the data sets without an effect would have found."""
    n = entry.attempted
    often, rarely = found_share(n, LEVEL), found_share(n, LEVEL, above=False)
    more = trials_for_share((often + LEVEL) / 2, LEVEL)
    bias = found_difference(entry.bias.error)
    if isnan(rarely):
        return (
            f"With {n} data sets of {entry.trials} trials a test that rejects too often, in "
            f"{often:.1%} or more, is found with a chance of {NOTICED:.0%}, and so is a bias of "
            f"{bias:.3g}; half as many false alarms beyond 5% take about {more:,} data sets."
        )
    return (
        f"With {n} data sets of {entry.trials} trials a test that rejects in {often:.1%} or more, "
        f"or in {rarely:.1%} or less, is found with a chance of {NOTICED:.0%}, and so is a bias of "
        f"{bias:.3g}; half as many false alarms beyond 5% take about {more:,} data sets."
    )


audit = verb(AskAudit, __name__)


def compute(question: AskAudit) -> Audit:
    """Answer what `audit` is asked of a measure."""
    measure, subjects, sessions = question.measure, question.subjects, question.sessions
    if measure not in MEASURES:
        raise ValueError(unknown("measure", measure, MEASURES))
    found = MEASURES[measure]
    environment = resolve_environment(
        question.environment or make(found.environments[0], **found.settings)
    )
    found = found.in_place(environment)
    if subjects < found.least_subjects:
        least = found.least_subjects
        raise ValueError(f"The test is over subjects and needs at least {least}; got {subjects}.")
    wanted = usual_effects(found) if question.effects is None else question.effects
    for effect in wanted:
        if not np.isfinite(effect):
            raise ValueError(f"The size of an effect is a number; got {effect:g}.")
    trials = several(question.trials)
    if len(trials) == 0:
        raise ValueError("An audit needs a number of trials; got none.")
    cells = [
        _cell(found, resolve_environment(environment, n), None, subjects, sessions)
        for n in trials
        if found.rational
    ]
    cells += [
        _cell(found, resolve_environment(environment, n), float(effect), subjects, sessions)
        for effect in wanted
        for n in trials
    ]
    if not cells:
        raise ValueError(f"{measure} has no null value: an audit needs an effect; got none.")
    asked = question.asked() | {
        "environment": environment.name,
        "effect": list(map(float, wanted)),
        "trials": [resolve_environment(environment, n).n_trials for n in trials],
        "set": settings_asked(environment),
    }
    replicates, seed = question.replicates, question.seed
    study = Study("audit", tuple(cells), replicates, seed, "replicate", asked)
    check_step_loop(study)
    return run(study, test_batch, summarise, **question.running)


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


def read_audit(folder: str | os.PathLike[str]) -> Any:
    """Read a finished audit, of a measure or one of `AUDITS`; nothing is computed anew."""
    return read(folder, "audit", summarise_found)


def summarise_found(rows: Rows) -> Any:
    """Gather a finished audit of whatever it is about."""
    about = AUDITS.get(rows.study.question["subject_matter"])
    return summarise(rows) if about is None else load(f"{about}:summarise")(rows)


def summarise_begun(rows: Rows) -> Any:
    """Gather what there is of an audit; None while there are no minds without an effect."""
    if all("effect" in cell.law for cell in rows.study.cells):
        return None
    return summarise_found(rows)


def summarise(rows: Rows) -> Audit:
    """Gather the kinds of minds of a finished audit."""
    study = rows.study
    measure = MEASURES[study.cells[0].options["measure"]]
    entries = [characteristics(rows, c) for c in range(len(study.cells))]
    null = tuple(entry for entry in entries if "effect" not in entry.cell.law)
    return Audit(
        study=study,
        measure=measure,
        null=null,
        violators=tuple(entry for entry in entries if "effect" in entry.cell.law),
        verdicts={
            entry.trials: judge_size(
                entry.rejected.value, entry.attempted, failed=entry.failed / entry.attempted
            )
            for entry in null
        },
        versions=rows.versions,
    )


def _cell(
    measure: Measure, environment: Environment, effect: float | None, subjects: int, sessions: int
) -> Cell:
    """Write down one kind of mind in one design; no effect means the rational model."""
    model = AGENTS[measure.rational if effect is None else measure.violator]
    model.check_plays(environment)
    law: dict[str, Any] = {}
    if effect is not None:
        parameters = model.parameters
        mean, spread = parameters.mean, parameters.sd
        GroupDial(measure, model, mean, spread).turn_to(np.array([effect]))
        law = {
            "group_mean": dict(zip(parameters.names, mean.tolist(), strict=True)),
            "group_sd": dict(zip(parameters.names, spread.tolist(), strict=True)),
            "effect": effect,
        }
    return Cell(
        environment.name,
        environment.settings,
        model.name,
        law=law,
        sessions=sessions,
        subjects=subjects,
        options={"measure": measure.name, "comparison": "one"},
        batch=max(1, FITS_PER_BATCH // subjects),
    )
