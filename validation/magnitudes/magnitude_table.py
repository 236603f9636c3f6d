"""All of magnitude estimation for a set of runs: accuracy, observers, cues, consistency."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException

from knownminds.environments import CONDITIONS, MODALITIES, Rate, Trials, outcome_rates
from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import writable, write_text
from knownminds.inference.magnitudes.consistency_score import (
    REPLICATES,
    SHIFT,
    prior_weight,
)
from knownminds.inference.magnitudes.cue_combination import REFERENCES, CueCombination
from knownminds.inference.magnitudes.evidence_calibration import calibrated_evidence
from knownminds.inference.magnitudes.factor_evidence import FACTORS, factor_evidence
from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
    MULTIMODAL,
    TASKS,
    Key,
    MagnitudeAnswers,
)
from knownminds.inference.magnitudes.magnitude_composite import (
    MASS,
    ROUNDS,
    Accuracy,
    MagnitudeComposite,
    cue_combination,
    magnitude_composite,
)
from knownminds.inference.magnitudes.normalised_error import bias_and_variance, normalised_error
from knownminds.inference.magnitudes.observer_fits import fit_observers
from knownminds.inference.resampling import percentile_interval
from knownminds.llm_adapters.runs.runner import TRIALS
from knownminds.validation.data.trials_of_runs import (
    ALONE,
    BY,
    experiments_of,
    read_all,
    runs_in,
)
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import versions
from knownminds.validation.pages.page import counted

FILE = "magnitude.json"
KEPT = "magnitude_trials.parquet"  # all trials in one table: names may occur once per condition
CELL = ["participant", "task", "condition", "modality"]
LETTERS = 32  # of a participant's name that are printed
LEVEL = 0.05
LINES = 39  # straight lines beside each evidence: two of 40 at or above it make p .05
LACKS = 2  # missing things that are printed for each part
# Columns of the frames that may have no row.
MAYBE = {
    "cues": [
        *("participant", "task", "condition", "reference", "n", "left_out", "matched"),
        *("text_weight", "weight_low", "weight_high", "error", "reference_error"),
        *("efficiency", "low", "high", "reason"),
    ],
    "known": [
        *("participant", "score", "low", "high", "observer", "expected", "sd", "reaching"),
    ],
    "fits": [*CELL, "variant", "aic", "status", "parameters"],
    "evidence": [*CELL, "evidence", "low", "high", "p", "lines"],
}
FRAMES = ("composite", "cells", "cues", "consistency", "known", "fits", "evidence")


@dataclass(frozen=True, eq=False)
class MagnitudeTable(Reported):
    """What a set of runs says of its participants.

    Parameters
    ----------
    sources
        The files and folders.
    by
        The column whose values are participants; "" if there is one participant.
    composite
        One row per participant and part (A, E, C, S): value, low, high, missing.
    cells
        One row per participant, task, condition and modality: n, missing (answers), at_an_end,
        error (NRMSE) with low and high, bias and variance (its parts, squared), prior_weight with
        prior_low and prior_high, and the evidence for each factor.
    cues
        One row per participant, task, condition and reference: n, left_out, text_weight, error (of
        the combined answers), reference_error, efficiency (RRE) with low and high, reason.
    consistency
        One row per participant and comparison: prior weights, shift, score.
    known
        One row per participant and known mind: expected score, sd, and the share that scores at
        least what the participant does.
    fits
        One row per cell and variant of an observer: aic, status, parameters.
    evidence
        One row per participant and task, of the base condition: evidence for a Bayesian observer,
        low and high (5% and 95% of that of straight lines), p, lines (how many there were).
    trials
        What all was read from.
    outcomes
        By task, how often each outcome of an answer occurred.
    """

    sources: tuple[str, ...]
    by: str
    composite: pd.DataFrame
    cells: pd.DataFrame
    cues: pd.DataFrame
    consistency: pd.DataFrame
    known: pd.DataFrame
    fits: pd.DataFrame
    evidence: pd.DataFrame
    trials: pd.DataFrame
    outcomes: Mapping[str, tuple[Rate, ...]]
    options: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def participants(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.composite["participant"].unique())

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that were played."""
        played = set(self.cells["task"])
        return tuple(task for task in TASKS if task in played)

    @property
    def labels(self) -> dict[str, str]:
        """Short names of the participants, all different, by name."""
        found: dict[str, str] = {}
        for name in self.participants:
            short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
            same = sum(label.startswith(short) for label in found.values())
            found[name] = f"{short} ({same + 1})" if same and short != name else short
        return found

    def labelled(self) -> MagnitudeTable:
        """Return the table with short names for its participants."""
        labels = self.labels
        if all(name == label for name, label in labels.items()):
            return self
        frames = {}
        for name in FRAMES:
            frame = getattr(self, name)
            frames[name] = frame.assign(participant=frame["participant"].map(labels))
        named = self.trials[self.by].astype("str").map(labels)
        return replace(self, **frames, trials=self.trials.assign(**{self.by: named}))

    def part(self, participant: str, letter: str) -> tuple[float, float, float]:
        """Return a part of a participant's composite and the ends of its interval."""
        frame = self.composite
        own = frame[(frame["participant"] == participant) & (frame["part"] == letter)]
        value, low, high = own[["value", "low", "high"]].to_numpy(dtype=float)[0].tolist()
        return value, low, high

    def summary(self) -> pd.DataFrame:
        """One row per participant: the parts, and what they are made of, task by task.

        NRMSE, RRE and evidence are those of the base condition, with text and image where a task
        has both.
        """
        rows = []
        for who in self.participants:
            parts = self.composite[self.composite["participant"] == who]
            row: dict[str, Any] = {"participant": who}
            for letter in "SAEC":
                names = (letter, f"{letter}_low", f"{letter}_high")
                row |= dict(zip(names, self.part(who, letter), strict=True))
            base = self.cells[(self.cells["participant"] == who) & self._main(self.cells)]
            for cell in base.to_dict("records"):
                row[f"NRMSE_{cell['task']}"] = cell["error"]
                for factor in FACTORS:
                    row[f"{factor}_{cell['task']}"] = cell[factor]
            cues = self.cues[(self.cues["participant"] == who) & (self.cues["condition"] == BASE)]
            for cue in cues.to_dict("records"):
                row[f"RRE_{cue['reference']}_{cue['task']}"] = cue["efficiency"]
            shifts = self.consistency[self.consistency["participant"] == who]
            for task, some in shifts.groupby("task", sort=False):
                row[f"BCS_{task}"] = some["score"].sum(skipna=False)
            row["BCS"] = shifts["score"].sum(skipna=False) if len(shifts) else np.nan
            row["missing"] = "; ".join(why for why in parts["missing"] if why)
            rows.append(row)
        return pd.DataFrame(rows)

    def _main(self, frame: pd.DataFrame) -> Any:
        """Say which rows are of the base condition, with all that a task shows."""
        whole = np.where(frame["task"].isin(MULTIMODAL), MODALITIES[2], MODALITIES[0])
        return (frame["condition"] == BASE) & (frame["modality"] == whole)

    def to_frame(self) -> pd.DataFrame:
        """One row per participant, see `summary`."""
        return self.summary()

    def bayesian_tasks(self, participant: str) -> tuple[int, int]:
        """Return in how many tasks a participant shows more than lines do, and of how many."""
        own = self.evidence[self.evidence["participant"] == participant]["p"].dropna()
        return int((own <= LEVEL).sum()), len(own)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        return {
            "sources": list(self.sources),
            "by": self.by,
            **{name: getattr(self, name).to_dict("records") for name in FRAMES},
            "outcomes": {
                task: {rate.outcome: rate.count for rate in rates}
                for task, rates in self.outcomes.items()
            },
            "options": dict(self.options),
            "versions": dict(self.versions),
        }

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write magnitude.json, a CSV file per table and the trials; `read_magnitude` reads it."""
        with writable(folder) as path:
            for name in FRAMES:
                frame = getattr(self, name)
                if name == "fits":
                    frame = frame.assign(parameters=frame["parameters"].map(json.dumps))
                write_text(path / f"{name}.csv", csv_text(frame))
            write_text(path / "summary.csv", csv_text(self.summary()))
            self.trials.to_parquet(path / KEPT, index=False)
            write_text(path / FILE, json.dumps(self.to_dict(), indent=1))

    def __str__(self) -> str:
        """The table of the participants, and what is missing."""
        return self.labelled()._told()

    def _told(self) -> str:
        wide = max(len(name) for name in (*self.participants, ALONE)) + 2
        mass, rounds = self.options["mass"], self.options["rounds"]
        lines = [f"magnitude estimation, {counted(len(self.trials), 'trial')}", ""]
        if rounds:
            lines[1:1] = [f"{mass:.0%} intervals of {rounds} bootstraps that keep the sessions"]
        lines += self._composite_lines(wide)
        lines += ["", *self._cell_lines(wide)]
        if len(self.evidence):
            lines += ["", *self._evidence_lines(wide)]
        lines += ["", *self._cue_lines(wide), "", *self._consistency_lines(wide)]
        left = self.cells[["missing", "at_an_end"]].sum()
        lines += [
            "",
            f"Trials without a readable answer, left out and counted: {left['missing']:,.0f}. "
            f"Answers at an end of the scale: {left['at_an_end']:,.0f}.",
        ]
        return "\n".join(lines)

    def _composite_lines(self, wide: int) -> list[str]:
        head = f"{'participant':<{wide}}" + "".join(
            f"{name:>26}" for name in ("S composite", "A accuracy", "E efficiency", "C consistency")
        )
        lines = [head]
        for who in self.participants:
            cells = [_with_interval(*self.part(who, letter), 3) for letter in "SAEC"]
            lines.append(f"{who:<{wide}}" + "".join(f"{cell:>26}" for cell in cells))
        for who in self.participants:
            own = self.composite[self.composite["participant"] == who]
            for row in own.to_dict("records"):
                if row["missing"] and row["part"] != "S":
                    lines.append(f"{who} has no {row['part']}: {shortened(row['missing'])}")
        return lines

    def _cell_lines(self, wide: int) -> list[str]:
        lines = [
            f"condition {BASE}: NRMSE (0 perfect, 1 the middle of each window), prior weight of a "
            "static Bayesian observer, evidence for factors",
            f"{'':<{wide}}{'task':<18}{'answers to':<14}{'NRMSE':>24}{'prior weight':>22}"
            + "".join(f"{factor:>12}" for factor in FACTORS),
        ]
        for row in self.cells[self.cells["condition"] == BASE].to_dict("records"):
            error = _with_interval(row["error"], row["low"], row["high"], 3)
            weight = _with_interval(row["prior_weight"], row["prior_low"], row["prior_high"], 2)
            factors = (row[factor] for factor in FACTORS)
            lines.append(
                f"{row['participant']:<{wide}}{row['task']:<18}{row['modality']:<14}"
                f"{error:>24}{weight:>22}"
                + "".join(f"{'-' if np.isnan(v) else f'{v:.2f}':>12}" for v in factors)
            )
        return lines if len(lines) > 2 else [f"condition {BASE}: not played"]

    def _evidence_lines(self, wide: int) -> list[str]:
        lines = [
            f"condition {BASE}: evidence for a Bayesian observer beside that of straight lines "
            "with the participant's noise",
            f"{'':<{wide}}{'task':<18}{'evidence':>10}{'lines, 5% to 95%':>20}{'p':>8}",
        ]
        for row in self.evidence.to_dict("records"):
            lines.append(
                f"{row['participant']:<{wide}}{row['task']:<18}{row['evidence']:>10.2f}"
                f"{row['low']:>12.2f} to {row['high']:.2f}{row['p']:>8.3f}"
            )
        return lines

    def _cue_lines(self, wide: int) -> list[str]:
        base = self.cues[self.cues["condition"] == BASE]
        lines = [f"RRE, error of a reference over that of the answers, condition {BASE}"]
        lines.append(f"{'':<{wide}}{'task':<18}" + "".join(f"{r:>18}" for r in REFERENCES))
        for (who, task), some in base.groupby(["participant", "task"], sort=False):
            own = some.set_index("reference")["efficiency"]
            told = "".join(
                f"{'-' if np.isnan(own[r]) else f'{own[r]:.3f}':>18}" for r in REFERENCES
            )
            lines.append(f"{who:<{wide}}{task:<18}{told}")
        if not len(base):
            return [f"RRE, condition {BASE}: none, no task was played in all modalities"]
        return lines

    def _consistency_lines(self, wide: int) -> list[str]:
        tasks = list(MULTIMODAL)
        lines = ["Bayesian consistency score (-15 to 15; 5 comparisons a task)"]
        lines.append(
            f"{'':<{wide}}" + "".join(f"{t:>18}" for t in (*tasks, "all"))
            + "   known minds in this design: expected (sd), share scoring at least as much"
        )  # fmt: skip
        for who in self.participants:
            own = self.consistency[self.consistency["participant"] == who]
            sums = [own[own["task"] == t]["score"].sum(skipna=False, min_count=1) for t in tasks]
            total = own["score"].sum(skipna=False, min_count=1)
            minds = self.known[self.known["participant"] == who].to_dict("records")
            told = "; ".join(
                f"{m['observer']} {m['expected']:+.1f} ({m['sd']:.1f}) {m['reaching']:.0%}"
                for m in minds
            )
            cells = "".join(f"{'-' if np.isnan(v) else f'{v:+.0f}':>18}" for v in (*sums, total))
            lines.append(f"{who:<{wide}}{cells}   {told or 'none, for lack of a comparison'}")
        return lines


def magnitude_table(
    data: Sequence[str | Path] | Trials | pd.DataFrame,
    *,
    by: str | None = None,
    environment: str | None = None,
    columns: Mapping[str, str] | None = None,
    rounds: int = ROUNDS,
    mass: float = MASS,
    accuracy: Accuracy = "combined",
    shared: bool = False,
    replicates: int = REPLICATES,
    lines: int = LINES,
    seed: int = 0,
    workers: int | None = None,
) -> MagnitudeTable:
    """Compute the whole table of magnitude estimation for a set of runs.

    Parameters
    ----------
    data
        Folders of runs, folders that hold such folders, .csv and .parquet files; or trials.
    by
        The column whose values are participants. If None, "model" where the trials have it.
    environment
        The task, of data that do not name it.
    columns
        Our column names -> the files'.
    rounds, mass
        Number of bootstraps, and mass of their percentile intervals.
    accuracy
        Whose NRMSE is the accuracy of a task with two modalities: that of the answers to both
        ("combined"), or the mean over text, image and both ("mean").
    shared
        Whether the static observer behind the consistency score has one prior mean for all
        windows.
    replicates, lines
        How many of each known mind, and how many straight lines stand beside each participant's
        evidence (`calibrated_evidence`).
    seed
        Of bootstraps, known minds and lines.

    Raises
    ------
    ValueError
        If trials are of other tasks, lack a column, or participants cannot be told apart.
    """
    if rounds < 0:
        raise ValueError(f"The number of bootstraps is at least 0; got {rounds}.")
    sources, frame = _gathered(data, columns)
    if environment is not None:
        frame = frame.assign(environment=environment)
    others = [] if "environment" not in frame else set(frame["environment"]) - set(TASKS)
    if others:
        raise ValueError(
            f"Runs are scored together if they are of magnitude estimation, {', '.join(TASKS)}; "
            f"these are of {', '.join(map(str, sorted(others)))}. Name one run, or put the trials "
            "into one file."
        )
    by = _participants_column(frame, by, sources)
    answers = MagnitudeAnswers.read(frame, by, rounds=rounds, seed=seed)
    how: dict[str, Any] = {
        "mass": mass,
        "accuracy": accuracy,
        "shared": shared,
        "shift": SHIFT,
        "replicates": replicates,
        "seed": seed,
    }
    composites = {who: magnitude_composite(answers, who, **how) for who in answers.participants}
    fits = _fits(answers, workers)
    beside = _evidence(answers, lines, seed, workers) if lines else pd.DataFrame()
    played = frame.groupby("environment", sort=False)
    return MagnitudeTable(
        sources=sources,
        by=by or "",
        composite=pd.concat([c.to_frame() for c in composites.values()], ignore_index=True),
        cells=_cells(answers, fits, mass, shared),
        cues=_cues(answers, mass),
        consistency=pd.concat(
            [c.consistency.to_frame().assign(participant=who) for who, c in composites.items()],
            ignore_index=True,
        ),
        known=_known(composites),
        fits=fits,
        evidence=beside if len(beside) else pd.DataFrame(columns=MAYBE["evidence"]),
        trials=answers.frame.drop(columns=["task", "condition_name", "modality_name"]),
        outcomes={str(k): outcome_rates(Trials.from_frame(_apart(v))) for k, v in played},
        options={
            "rounds": rounds,
            **how,
            "lines": lines,
            "environment": environment,
            "columns": dict(columns or {}),
        },
        versions=versions(),
    )


def read_magnitude(folder: str | Path) -> MagnitudeTable:
    """Read what `MagnitudeTable.save` wrote."""
    place = Path(folder)
    try:
        found = json.loads((place / FILE).read_text(encoding="utf-8"))
        frames = {
            name: _numeric(pd.DataFrame(rows, columns=None if rows else MAYBE[name]))
            # Tables of before 0.2.0 have no evidence of lines.
            for name, rows in ((name, found.get(name, [])) for name in FRAMES)
        }
        return MagnitudeTable(
            sources=tuple(found["sources"]),
            by=found["by"],
            **frames,
            trials=pd.read_parquet((place / KEPT).absolute()),
            outcomes={task: outcome_rates(counts) for task, counts in found["outcomes"].items()},
            options=found["options"],
            versions=found["versions"],
        )
    except (OSError, ValueError, KeyError, TypeError, ArrowException) as error:
        raise ValueError(f"{place / FILE} is damaged or not of knownminds ({error}).") from None


def of_one_measured_file(
    paths: Sequence[str | Path],
    measures: Sequence[str] | None,
    columns: Mapping[str, str] | None = None,
) -> bool:
    """Say whether `score` reads measures off trials, rather than the table off a set of runs.

    A set has several runs of magnitude estimation, or one file whose trials of that are of several
    tasks, conditions or participants, or of a single subject, over which measures have no test.
    """
    if measures:
        return True
    runs = runs_in(paths)
    if len(runs) > 1:
        return not all(experiments_of(run, columns) <= set(TASKS) for run in runs)
    file = runs[0] / TRIALS if runs[0].is_dir() else runs[0]
    if not file.is_file():
        return True  # which then says what it lacks
    if not experiments_of(file, columns) <= set(TASKS):
        return True
    frame = Trials.load(file, columns=columns).frame
    names = ["environment", *(name for name in ("condition", BY) if name in frame)]
    return len(frame[names].drop_duplicates()) == 1 and frame["subject"].nunique() > 1


def _gathered(
    data: Sequence[str | Path] | Trials | pd.DataFrame, columns: Mapping[str, str] | None
) -> tuple[tuple[str, ...], pd.DataFrame]:
    if isinstance(data, Trials):
        return ("trials",), data.frame
    if isinstance(data, pd.DataFrame):
        return ("trials",), data
    return tuple(str(path) for path in data), read_all(data, columns)


def _participants_column(
    frame: pd.DataFrame, by: str | None, sources: tuple[str, ...]
) -> str | None:
    if by is not None:
        return by
    if BY not in frame:
        if len(sources) > 1:
            raise ValueError(
                f"Participants are told apart by the column {BY!r}, which runs have; these trials "
                f"have only {', '.join(frame.columns)}. Name another with --by."
            )
        return None
    if frame[BY].isna().any():
        raise ValueError(
            f"Every trial names its participant in the column {BY!r}; some do not. "
            "Fill it in, or name another column with --by."
        )
    return BY


def _apart(frame: pd.DataFrame) -> pd.DataFrame:
    """Number trials anew, so that sessions of several conditions make one record."""
    return frame.assign(trial=np.arange(len(frame)), subject="0", session="0")


def _fits(answers: MagnitudeAnswers, workers: int | None) -> pd.DataFrame:
    """Fit all variants of the observers to every cell."""
    usable, keys = _by_cell(answers.frame)
    if not len(usable):
        return pd.DataFrame(columns=MAYBE["fits"])
    rows: list[dict[str, Any]] = []
    fitted = fit_observers(Trials.from_frame(usable), workers=workers)
    for variant, fit in fitted.items():
        for i, subject in enumerate(fit.subjects):
            values = dict(zip(fit.names, fit.estimate[i].tolist(), strict=True))
            rows.append(
                {
                    **dict(zip(CELL, keys[int(subject)], strict=True)),
                    "variant": variant,
                    "aic": float(fit.aic[i]) if fit.status[i] != "failed" else np.nan,
                    "status": fit.status[i],
                    "parameters": values,
                }
            )
    return pd.DataFrame(rows)


def _by_cell(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[Key]]:
    """Return the trials of cells with two answers or more, each cell a subject, and their names."""
    names = ["participant", "task", "condition_name", "modality_name"]
    cell = frame.groupby(names, sort=False).ngroup()
    keys = list(frame.drop_duplicates(names)[names].itertuples(index=False, name=None))
    answered = frame["response"].notna().groupby(cell).sum()
    enough = cell.map(answered >= 2).to_numpy(dtype=bool)
    sessions = frame["subject"].astype("str") + "/" + frame["session"].astype("str")
    return frame.assign(subject=cell.astype(str), session=sessions)[enough], keys


def _evidence(
    answers: MagnitudeAnswers, lines: int, seed: int, workers: int | None
) -> pd.DataFrame:
    """Hold evidence for a Bayesian observer in the base condition against that of lines."""
    frame = answers.frame
    whole = np.where(frame["task"].isin(MULTIMODAL), MODALITIES[2], MODALITIES[0])
    base = (frame["condition_name"] == BASE) & (frame["modality_name"] == whole)
    usable, keys = _by_cell(frame[base])
    if not len(usable):
        return pd.DataFrame()
    found = calibrated_evidence(
        Trials.from_frame(usable), replicates=lines, seed=seed, workers=workers
    ).to_frame()
    named = pd.DataFrame([keys[int(subject)] for subject in found["subject"]], columns=CELL)
    told = found.rename(columns={"null_low": "low", "null_high": "high", "p_value": "p"})
    return pd.concat([named, told], axis=1).assign(lines=float(lines))[MAYBE["evidence"]]


def _cells(
    answers: MagnitudeAnswers, fits: pd.DataFrame, mass: float, shared: bool
) -> pd.DataFrame:
    aics = fits.pivot_table(index=CELL, columns="variant", values="aic", dropna=False)
    evidence: dict[Key, dict[str, float]] = {}
    if len(aics):
        known = {str(name): aics[name].to_numpy(dtype=float) for name in aics}
        found = factor_evidence(known)
        for i, key in enumerate(aics.index):
            evidence[key] = {factor: float(found.evidence[factor][i]) for factor in FACTORS}
    nothing = dict.fromkeys(FACTORS, np.nan)
    rows: list[dict[str, Any]] = []
    for who in answers.participants:
        for key, cell in answers.of(who):
            error, weight = normalised_error(cell), prior_weight(cell, shared=shared)
            low, high = percentile_interval(error, mass)
            prior_low, prior_high = percentile_interval(weight, mass)
            bias, variance = bias_and_variance(cell)
            rows.append(
                {
                    **dict(zip(CELL, key, strict=True)),
                    "n": len(cell),
                    "missing": cell.missing,
                    "at_an_end": cell.at_an_end,
                    "error": float(error[0]),
                    "low": low,
                    "high": high,
                    "bias": bias,
                    "variance": variance,
                    "prior_weight": float(weight[0]),
                    "prior_low": prior_low,
                    "prior_high": prior_high,
                    **evidence.get(key, nothing),
                }
            )
    return pd.DataFrame(rows)


def _cues(answers: MagnitudeAnswers, mass: float) -> pd.DataFrame:
    rows = []
    for who in answers.participants:
        for task in MULTIMODAL:
            for condition in CONDITIONS:
                found = cue_combination(answers, who, task, condition)
                if found is not None:
                    rows += _cue_rows(who, task, condition, found, mass)
    return pd.DataFrame(rows, columns=MAYBE["cues"])


def _cue_rows(
    who: str, task: str, condition: str, found: CueCombination, mass: float
) -> list[dict[str, Any]]:
    rows = []
    for name in REFERENCES:
        low, high = percentile_interval(found.efficiency[name], mass)
        weight_low, weight_high = percentile_interval(found.text_weight[name], mass)
        rows.append(
            {
                "participant": who,
                "task": task,
                "condition": condition,
                "reference": name,
                "n": found.n,
                "left_out": found.left_out,
                "matched": found.matched,
                "text_weight": float(found.text_weight[name][0]),
                "weight_low": weight_low,
                "weight_high": weight_high,
                "error": float(found.error[0]),
                "reference_error": float(found.reference_error[name][0]),
                "efficiency": float(found.efficiency[name][0]),
                "low": low,
                "high": high,
                "reason": found.reason,
            }
        )
    return rows


def _known(composites: Mapping[str, MagnitudeComposite]) -> pd.DataFrame:
    rows = [
        {
            "participant": who,
            "score": float(c.consistency.total[0]),
            "low": c.consistency.low,
            "high": c.consistency.high,
            "observer": mind.observer,
            "expected": mind.expected,
            "sd": mind.sd,
            "reaching": mind.reaching(float(c.consistency.total[0])),
        }
        for who, c in composites.items()
        for mind in c.consistency.known
    ]
    return pd.DataFrame(rows, columns=MAYBE["known"])


def _numeric(frame: pd.DataFrame) -> pd.DataFrame:
    """Give columns of numbers their kind again, where JSON had null."""
    texts = {*CELL, "part", "name", "missing", "reference", "matched", "reason", "ablation"}
    texts |= {"observer", "variant", "status", "parameters"}
    for column in frame:
        if column not in texts or (column == "missing" and "error" in frame):
            whole = column in ("n", "missing", "at_an_end", "left_out")
            frame[column] = frame[column].astype("int64" if whole else float)
    return frame


def shortened(missing: str) -> str:
    """Return the first of the things that are missing, and how many there are more."""
    lacks = missing.split("; ")
    more = [f"and {len(lacks) - LACKS} more"] if len(lacks) > LACKS else []
    return "; ".join([*lacks[:LACKS], *more])


def _with_interval(value: float, low: float, high: float, digits: int) -> str:
    if np.isnan(value):
        return "-"
    told = f"{value:.{digits}f}"
    return told if np.isnan(low) else f"{told} ({low:.{digits}f} to {high:.{digits}f})"
