"""Calibration around a data set: truths that might have made it, ranked given it and more data.

Truths are drawn from the posterior given the data, each lives the experiment once more, and is
ranked among draws of the posterior given both. If inference is right the ranks are uniform, as they
are around the prior, but here in the region where the data lie (Säilynoja, Schmitt, Bürkner and
Vehtari 2025).
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import AGENTS, Agent
from knownminds.environments import Environment, Trials, session_stream
from knownminds.inference.fits.model_data import ModelData, Unknowns, answered_by
from knownminds.inference.posteriors.posterior import Posterior, posterior
from knownminds.validation.engine.population import Lived, Subjects
from knownminds.validation.engine.study import Batch, Cell, Study

TRIALS = "trials.parquet"  # of the folder of a run
_TRUTHS = 2**31 + 1  # last part of the address of the numbers that choose truths


def around_options(
    file: str | os.PathLike[str] | None, environment: Environment, model: type[Agent]
) -> dict[str, Any]:
    """Return the data set as an option of a cell, checked; none without one."""
    if file is None:
        return {}
    place = Path(file) / TRIALS if Path(file).is_dir() else Path(file)
    if not place.is_file():
        raise ValueError(
            f"Calibration goes around trials in a file, or in the folder of a run; {place} is not "
            "there. Name one."
        )
    told = {"file": str(place), "hash": sha256(place.read_bytes()).hexdigest()[:16]}
    ModelData.read(model, Trials.load(place, environment=environment))
    return {"around": told}


def truths_around(study: Study, batch: Batch, subjects: Subjects) -> tuple[Subjects, list[str]]:
    """Return subjects drawn from the posteriors of those observed, and whether these are sound.

    Replicate j is around the data of subject j modulo their number.
    """
    cell = study.cells[batch.cell]
    own = _posterior(study.seed, *_key(cell))
    unknowns = Unknowns.of(AGENTS[cell.model], cell.options["fixed"])
    replicates = np.arange(batch.first, batch.last)
    of = replicates % len(own.subjects)
    # Draws of all subjects rest on one low-discrepancy set; truths need draws of their own.
    rngs = [session_stream(study.seed, cell.data_key, int(j), _TRUTHS) for j in replicates]
    draw = np.array([rng.integers(len(own.z_draws)) for rng in rngs])
    theta = np.broadcast_to(unknowns.full, subjects.theta.shape).copy()
    theta[:, unknowns.columns] = own.draws[draw, of]
    return replace(subjects, theta=theta), [own.status[i] for i in of]


def with_observed(study: Study, batch: Batch, lived: Lived) -> ModelData:
    """Return what each replicate has lived together with the data that it is around."""
    cell = study.cells[batch.cell]
    model = AGENTS[cell.model]
    trials, data = _observed(*_key(cell)[:4])
    frame = trials.frame
    codes = _code(frame["subject"].to_numpy(), np.array(data.subjects))
    n = len(batch)
    rows, subject = [], []
    for i, replicate in enumerate(range(batch.first, batch.last)):
        mine = np.flatnonzero(codes == replicate % len(data.subjects))
        rows.append(mine)
        subject.append(np.full(len(mine), i))
    seen, who = np.concatenate(rows), np.concatenate(subject)
    session = np.unique(frame["session"].to_numpy(dtype=str), return_inverse=True)[1]

    def both(name: str) -> NDArray[Any]:
        before = frame[name].to_numpy(dtype=float, na_value=np.nan)[seen]
        return np.concatenate([before, np.asarray(lived.columns[name], dtype=float)])

    flat = {name: both(name) for name in model.columns}
    separate = [np.concatenate([session[seen], session.max() + 1 + lived.session])]
    separate += [both(name).astype(np.int64) for name in model.separate if name in lived.columns]
    whole = np.concatenate([who, lived.subject])
    given = [np.isfinite(flat[name]) & (flat[name] != -1) for name in answered_by(model)]
    joined = np.logical_or if model.given == "either" else np.logical_and
    answered = joined.reduce(given)
    if model.selection is not None:
        answered &= both(model.selection.column) == model.selection.value
    names = list(map(str, range(n)))
    actions = lived.environment.n_actions
    return ModelData.of_columns(model, names, whole, separate, flat, actions, answered)


def _code(values: NDArray[Any], names: NDArray[Any]) -> NDArray[np.int64]:
    place = {str(name): k for k, name in enumerate(names)}
    return np.array([place[str(value)] for value in values], dtype=np.int64)


_environments: dict[str, Environment] = {}


def _key(cell: Cell) -> tuple[str, str, str, str, tuple[tuple[str, float], ...]]:
    around = cell.options["around"]
    _environments.setdefault(cell.content_key, cell.make())
    fixed = tuple(sorted(cell.options["fixed"].items()))
    return around["file"], around["hash"], cell.content_key, cell.model, fixed


@lru_cache(maxsize=4)
def _observed(file: str, known: str, place: str, model: str) -> tuple[Trials, ModelData]:
    now = sha256(Path(file).read_bytes()).hexdigest()[:16]
    if now != known:
        raise ValueError(f"The study was begun around other trials than {file} holds now.")
    environment = _environments[place]
    trials = Trials.load(file, environment=environment)
    return trials, ModelData.read(AGENTS[model], trials, environment.n_actions)


@lru_cache(maxsize=4)
def _posterior(
    seed: int,
    file: str,
    known: str,
    place: str,
    model: str,
    fixed: tuple[tuple[str, float], ...],
) -> Posterior:
    _, data = _observed(file, known, place, model)
    return posterior(AGENTS[model], data, fixed=dict(fixed), seed=seed + 1)
