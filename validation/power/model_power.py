"""Power of a comparison of models: how often the true one is best, before anyone is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Agent
from knownminds.environments import Environment
from knownminds.environments.record.text_table import text_table
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.validation.engine.arguments import (
    one_of,
    resolve_environment,
    resolve_model,
)
from knownminds.validation.engine.engine import read, run
from knownminds.validation.engine.monte_carlo import Score, share
from knownminds.validation.engine.population import check_step_loop, draw_subjects, live
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import Batch, Cell, Rows, Study
from knownminds.validation.recovery.model_recovery import (
    CRITERIA,
    best_of,
    check_rivals,
    common_selection,
    truth_by_model,
)

from .pilot import Pilot, check_not_stated, model_of, read_pilot
from .power_study import several
from .questions import MODEL_CRITERIA, SIZES, AskModels

FITS_PER_BATCH = 256


@dataclass(frozen=True)
class Found:
    """What became of the data sets of one model in one design.

    Parameters
    ----------
    cell
        The design, and the model that is true.
    attempted, failed, undecided
        Data sets; those that a model could not be fitted to; those with equal best scores.
    won
        Share of all data sets in which the true model is best: failed and undecided are misses.
    best
        How often each model was.
    messages
        Why data sets failed, each with how often.
    """

    cell: Cell
    attempted: int
    failed: int
    undecided: int
    won: Score
    best: Mapping[str, int]
    messages: Mapping[str, int]
    seconds: float

    @property
    def size(self) -> tuple[int, int, int]:
        """Subjects, sessions and trials."""
        return self.cell.subjects, self.cell.sessions, self.cell.make().n_trials

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name."""
        told: dict[str, Any] = dict(zip(SIZES, self.size, strict=True))
        return told | {
            "true": self.cell.model,
            "power": self.won.value,
            "power_error": self.won.error,
            "attempted": self.attempted,
            "failed": self.failed,
            "undecided": self.undecided,
            **{f"best_{name}": n for name, n in self.best.items()},
        }


@dataclass(frozen=True)
class ModelPower(Reported):
    """The outcome of a study of a comparison of models: one entry per design and true model."""

    study: Study
    models: tuple[str, ...]
    criterion: str
    found: tuple[Found, ...]
    versions: Mapping[str, str]

    @property
    def seconds(self) -> float:
        """Computing time, summed over processes."""
        return sum(one.seconds for one in self.found)

    @property
    def pilot(self) -> Pilot | None:
        """The pilot from which minds of one of the models are drawn."""
        return next(filter(None, (Pilot.of(one.cell) for one in self.found)), None)

    @property
    def designs(self) -> dict[tuple[int, int, int], list[Found]]:
        """What became of each model, by subjects, sessions and trials."""
        sizes: dict[tuple[int, int, int], list[Found]] = {}
        for one in self.found:
            sizes.setdefault(one.size, []).append(one)
        return sizes

    def to_frame(self) -> pd.DataFrame:
        """One row per design and true model; `power` is the share that it wins."""
        return pd.DataFrame([one.to_dict() for one in self.found])

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        return {
            "environment": self.study.cells[0].environment,
            "models": list(self.models),
            "criterion": self.criterion,
            "replicates": self.study.replicates,
            "seed": self.study.seed,
            "attempted": sum(one.attempted for one in self.found),
            "failed": sum(one.failed for one in self.found),
            "designs": self.to_frame().to_dict("records"),
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """One line per design and true model, then what it means."""
        title, _ = CRITERIA[self.criterion]
        lines = [
            f"power to tell {' and '.join(self.models)} apart by {title}, "
            f"{self.study.replicates} data sets each"
        ]
        rows = [
            (
                " x ".join(map(str, one.size)),
                one.cell.model,
                one.won,
                ", ".join(f"{name} {n}" for name, n in one.best.items()),
            )
            for one in self.found
        ]
        lines += text_table(("subjects x sessions x trials", "true", "wins", "best"), rows)
        return "\n".join([*lines, *sentences(self), "(Monte-Carlo errors)"])


def sentences(found: ModelPower) -> list[str]:
    """Say which design suffices, and from where minds come."""
    told = []
    enough = {
        size: min(one.won.value for one in own)
        for size, own in found.designs.items()
        if min(one.won.value for one in own) >= USUAL
    }
    if enough:
        size = min(enough, key=lambda size: (int(np.prod(size)), size))
        told.append(
            f"Of these designs, {' x '.join(map(str, size))} (subjects, sessions, trials) has the "
            f"fewest trials in which each model is best for at least {USUAL:.0%} of its own data "
            f"sets: {enough[size]:.3f} at least."
        )
    else:
        told.append(
            f"In none of these designs each model is best for {USUAL:.0%} of its own data sets."
        )
    lost = sum(one.failed + one.undecided for one in found.found)
    if lost:
        n = sum(one.attempted for one in found.found)
        told.append(f"{lost} of {n} data sets failed or were undecided, and count as misses.")
    pilot = found.pilot
    if pilot is not None:
        told += [f"{pilot.model} alone has a pilot: other models have their priors."]
        told += pilot.sentences
    return told


USUAL = 0.8

model_power = verb(AskModels, __name__)


def compute(question: AskModels) -> ModelPower:
    """Answer what `power --against` is asked."""
    one_of("criterion", question.criterion, MODEL_CRITERIA)
    rivals = [resolve_model(name) for name in (question.model, *question.against)]
    environment = resolve_environment(question.environment)
    check_rivals(rivals, environment)
    held = truth_by_model(rivals, question.truth)
    pilot = _pilot(question, environment, rivals)
    options = {
        "rivals": [model.name for model in rivals],
        "criterion": question.criterion,
    }
    sizes = {name: several(getattr(question, name)) for name in SIZES}
    cells = []
    for n, k, length in product(*(sizes[name] for name in SIZES)):
        if min(n, k) < 1:
            raise ValueError(f"Subjects and sessions are at least 1; got {n}, {k}.")
        there = resolve_environment(environment, length)
        cells += [
            Cell(
                there.name,
                there.settings,
                model.name,
                held[model.name],
                law=pilot.law() if pilot is not None and pilot.model == model.name else {},
                sessions=k,
                subjects=n,
                options=options,
                batch=max(1, FITS_PER_BATCH // n),
            )
            for model in rivals
        ]
    if not cells:
        raise ValueError("A design needs subjects, sessions and trials; got none of one of them.")
    asked = question.asked() | sizes | {"trials": sorted({c.make().n_trials for c in cells})}
    study = Study("power", tuple(cells), question.replicates, question.seed, "replicate", asked)
    check_step_loop(study)
    return run(study, choose_batch, summarise, **question.running)


def _pilot(
    question: AskModels, environment: Environment, rivals: Sequence[type[Agent]]
) -> Pilot | None:
    """Read the pilot, a fit of one of the models."""
    if question.pilot is None:
        if question.unconverged:
            raise ValueError("--unconverged is said of a pilot; add --from FIT.")
        return None
    check_not_stated({"--set": question.truth})
    fitted = model_of(question.pilot)
    model = next((one for one in rivals if one.name == fitted), rivals[0])
    return read_pilot(question.pilot, environment.name, model, question.unconverged)


def choose_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Simulate the data sets of a batch and find the best model of each: one row per data set."""
    cell = study.cells[batch.cell]
    lived = live(study, batch, draw_subjects(study, batch))
    rivals = [AGENTS[name] for name in cell.options["rivals"]]
    selection = common_selection(rivals, all_trials=False)
    totals, messages = [], np.full(len(batch), "", dtype=object)
    for model in rivals:
        data = lived.data(model, selection=selection)
        fit = maximum_likelihood(model, data, workers=threads)
        failed = np.array(fit.status) == "failed"
        score = np.where(failed, np.nan, getattr(fit, cell.options["criterion"]))
        totals.append(score.reshape(len(batch), cell.subjects).sum(axis=1))
        for i in np.flatnonzero(failed)[::-1]:
            messages[i // cell.subjects] = f"{model.name}: {fit.message[i]}"
    score = np.stack(totals, axis=1)
    larger = CRITERIA[cell.options["criterion"]][1]
    return pd.DataFrame(
        {f"score_{model.name}": score[:, k] for k, model in enumerate(rivals)}
        | {
            "best": best_of(score, larger=larger),
            "status": np.where(messages == "", "ok", "failed"),
            "message": messages.astype(str),
        }
    )


def read_model_power(folder: str | os.PathLike[str]) -> ModelPower:
    """Read a finished study from its folder; nothing is computed anew."""
    return read(folder, "power", summarise)


def summarise(rows: Rows) -> ModelPower:
    """Count the winners of a finished study."""
    options = rows.study.cells[0].options
    return ModelPower(
        study=rows.study,
        models=tuple(options["rivals"]),
        criterion=options["criterion"],
        found=tuple(_counted(rows, c) for c in range(len(rows.study.cells))),
        versions=rows.versions,
    )


def _counted(rows: Rows, number: int) -> Found:
    cell = rows.study.cells[number]
    models = list(cell.options["rivals"])
    best = np.zeros(len(models), dtype=np.int64)
    n, failed, seconds = 0, 0, 0.0
    messages: dict[str, int] = {}
    for table in rows.tables(cell=number):
        seconds += float(table["seconds"].sum())
        n += len(table)
        broken = table["status"] == "failed"
        failed += int(broken.sum())
        for message, count in table.loc[broken, "message"].value_counts().items():
            messages[str(message)] = messages.get(str(message), 0) + int(count)
        if "best" in table:  # not in a batch that failed as a whole
            winners = table["best"].fillna(-1).to_numpy(dtype=np.int64)
            best += np.bincount(winners[winners >= 0], minlength=len(models))
    attempted = rows.study.units(number)
    return Found(
        cell=cell,
        attempted=attempted,
        failed=failed,
        undecided=n - failed - int(best.sum()),
        won=share(int(best[models.index(cell.model)]), attempted),
        best=dict(zip(models, best.tolist(), strict=True)),
        messages=messages,
        seconds=seconds,
    )
