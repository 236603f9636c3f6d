"""Calibration around a data set: truths that might have made it, ranked given it and more data.

Truths are drawn from the posterior given the data, each takes the experiment once more, and is
ranked among draws of the posterior given both. If inference is right the ranks are uniform, as they
are around the prior, but here in the region where the data lie (Säilynoja, Schmitt, Bürkner and
Vehtari 2025).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Model
from knownminds.environments import ENVIRONMENTS, Environment, Trials, session_stream
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.posterior import Posterior, posterior
from knownminds.validation.engine.cells import Cell
from knownminds.validation.engine.population import PlayedSessions, Subjects
from knownminds.validation.engine.study import Batch, Study

TRIALS = "trials.parquet"  # of the folder of a run
_TRUTHS = 2**31 + 1  # last part of the address of the numbers that choose truths


def around_options(
    file: str | os.PathLike[str] | None, environment: Environment, model: type[Model]
) -> dict[str, Any]:
    """Return the data set as an option of a cell, checked; none without one.

    Raises
    ------
    ValueError : If the file is not there, or the model cannot read its trials.
    """
    if file is None:
        return {}
    path = Path(file) / TRIALS if Path(file).is_dir() else Path(file)
    if not path.is_file():
        raise ValueError(
            f"Calibration goes around trials in a file, or in the folder of a run; {path} is not "
            "there. Name one."
        )
    ModelData.read(model, Trials.load(path, environment=environment))
    return {"around": {"file": str(path), "hash": _hash(path)}}


def truths_around(study: Study, batch: Batch, subjects: Subjects) -> tuple[Subjects, list[str]]:
    """Return subjects drawn from the posteriors of those observed, and the status of each of these.

    Replicate j is around the data of subject j modulo their number.
    """
    cell = study.cells[batch.cell]
    posterior_of = _around(study, cell).posterior
    unknowns = Unknowns.of(AGENTS[cell.model], cell.analysis.fixed)
    replicates = np.arange(batch.first, batch.last)
    of = replicates % len(posterior_of.subjects)
    # Draws of all subjects rest on one low-discrepancy set; truths need draws of their own.
    rngs = [session_stream(study.seed, cell.data_key, int(j), _TRUTHS) for j in replicates]
    draw = np.array([rng.integers(len(posterior_of.z_draws)) for rng in rngs])
    theta = np.broadcast_to(unknowns.full, subjects.theta.shape).copy()
    theta[:, unknowns.columns] = posterior_of.draws[draw, of]
    return replace(subjects, theta=theta), [posterior_of.status[i] for i in of]


def with_observed(study: Study, batch: Batch, simulated: PlayedSessions) -> ModelData:
    """Return the simulated sessions of each replicate together with the data it is around."""
    cell = study.cells[batch.cell]
    observed = _around(study, cell)
    new = simulated.trials().frame
    before = observed.trials.frame
    columns = [name for name in new if name in before]
    of_subject = [before.loc[before["subject"] == name, columns] for name in observed.subjects]
    parts = [
        of_subject[j % len(of_subject)].assign(subject=str(i))
        for i, j in enumerate(range(batch.first, batch.last))
    ]
    whole = pd.concat(
        [frame.assign(session=name + frame["session"].astype(str))
         for name, frame in (("observed ", pd.concat(parts)), ("simulated ", new[columns]))],
        ignore_index=True,
    )  # fmt: skip
    trials = Trials.from_frame(whole, environment=simulated.environment)
    return ModelData.read(AGENTS[cell.model], trials, simulated.environment.n_actions)


@dataclass(frozen=True)
class _Observed:
    """The data that a study is around: trials, names of the subjects, and their posteriors."""

    trials: Trials
    subjects: list[str]
    posterior: Posterior


def _around(study: Study, cell: Cell) -> _Observed:
    kinds = AGENTS[cell.model], ENVIRONMENTS[cell.environment]
    return _observed(json.dumps(cell.content()), study.seed, *kinds)


@lru_cache(maxsize=4)  # by the classes, since another one may bear the same name
def _observed(cell_text: str, seed: int, model: type[Model], kind: type[Environment]) -> _Observed:
    """Read the data of a cell, given as JSON, and sample the posteriors of its subjects."""
    cell = Cell.of(json.loads(cell_text))
    file, environment = Path(cell.analysis.around["file"]), cell.make()
    if _hash(file) != cell.analysis.around["hash"]:
        raise ValueError(f"The study was begun around other trials than {file} holds now.")
    trials = Trials.load(file, environment=environment)
    data = ModelData.read(model, trials, environment.n_actions)
    sample = posterior(model, data, fixed=cell.analysis.fixed, seed=seed + 1)
    return _Observed(trials, list(trials.frame["subject"].unique()), sample)


def _hash(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()[:16]
