"""Calibration against a simulator that the model's author wrote apart from the model.

Kernel, step loop and calibration of a model share its definition, so that a wrong equation agrees
with itself. Here the sessions come from another program. If it follows the same equation, ranks of
the true values are uniform; where they are not, one of both is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from knownminds.agents import AGENTS, Model
from knownminds.environments import Environment, session_stream
from knownminds.environments.session import Session
from knownminds.validation.engine.members import load_file
from knownminds.validation.engine.population import PlayedSessions, Subjects, addresses_of
from knownminds.validation.engine.study import Batch, Study

NAME = "simulate"  # of the function in the author's file
Simulator = Callable[[Mapping[str, float], Session, np.random.Generator], None]


def simulator_options(
    file: str | os.PathLike[str] | None, environment: Environment, model: type[Model]
) -> dict[str, Any]:
    """Return the author's file as an option of a cell, tried on a session; none without one.

    Raises
    ------
    ValueError : If the file or its function is not there, or the function does not play a session.
    """
    if file is None:
        return {}
    simulate, parameters = simulator_of(file), model.parameters
    theta = parameters.constrain(np.array([parameters.mean]))[0]
    rng = session_stream(0)
    _play(simulate, dict(zip(parameters.names, theta, strict=True)), environment, rng, str(file))
    digest = sha256(Path(file).read_bytes()).hexdigest()[:16]
    return {"simulator": {"file": str(file), "hash": digest}}


def simulator_of(file: str | os.PathLike[str]) -> Simulator:
    """Return the function `simulate` of a file.

    Raises
    ------
    ValueError : If there is no such file or function.
    """
    found: Simulator | None = getattr(load_file(os.fspath(file)), NAME, None)
    if not callable(found):
        raise ValueError(
            f"A simulator is a Python file with a function {NAME}(parameters, session, rng), which "
            f"plays a session to its end; {file} has none. Write it."
        )
    return found


def live_in_simulator(study: Study, batch: Batch, subjects: Subjects) -> PlayedSessions:
    """Let the author's simulator play all sessions of a batch, in the designs they always have."""
    cell = study.cells[batch.cell]
    environment, names = cell.make(), AGENTS[cell.model].parameters.names
    file, n = cell.analysis.simulator["file"], len(subjects.theta)
    simulate = simulator_of(file)
    rows: list[dict[str, Any]] = []
    for row, address in enumerate(addresses_of(cell, subjects).tolist()):
        number, subject = divmod(row, n)
        theta = dict(zip(names, subjects.theta[subject].tolist(), strict=True))
        played = _play(simulate, theta, environment, session_stream(study.seed, *address), file)
        rows += [{**one, "subject": subject, "session": number} for one in played]
    return PlayedSessions.of_rows(environment, rows, n)


def _play(
    simulate: Simulator,
    parameters: Mapping[str, float],
    environment: Environment,
    rng: np.random.Generator,
    file: str,
) -> list[dict[str, Any]]:
    """Let a simulator play a session; return the rows."""
    session = Session(environment, environment.draw(rng))
    try:
        simulate(parameters, session, rng)
    except (Exception, SystemExit) as error:  # whatever an author's code may raise
        raise ValueError(
            f"A simulator plays every session that it is given; {NAME} of {file} ended with "
            f"{type(error).__name__}: {str(error).rstrip('.')}. Mend it."
        ) from error
    if not session.over:
        raise ValueError(
            f"A simulator plays a session to its end; {NAME} of {file} left {environment.name} "
            f"after {len(session.rows)} trials. Go on until session.over, or loop over the session."
        )
    return session.rows
