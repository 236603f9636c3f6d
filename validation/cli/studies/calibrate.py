"""`knownminds calibrate`."""

from __future__ import annotations

from typing import Annotated

import typer

from knownminds.validation.cli.study import Ask, study
from knownminds.validation.options import (
    DesignName,
    Experiment,
    Fixed,
    Model,
    NTrials,
    Seed,
    Sessions,
    Values,
)
from knownminds.validation.reading import read_numbers, resolve_experiment


@study
def calibrate(
    environment: Experiment,
    model: Model = "rescorla_wagner_dual",
    replicates: Annotated[
        int, typer.Option(help="Posteriors; fewer than some 25 to 45 are not judged.")
    ] = 200,
    subjects: Annotated[
        int | None, typer.Option(help="Subjects of a group (hierarchical); 20 if not given.")
    ] = None,
    sessions: Sessions = 1,
    trials: NTrials = None,
    design: DesignName = None,
    method: Annotated[str, typer.Option(help="map (single posteriors) or hierarchical.")] = "map",
    seed: Seed = 0,
    values: Values = None,
    fixed: Fixed = None,
) -> Ask:
    """Ask whether posteriors are right: simulation-based calibration."""
    from knownminds.validation.calibration.calibration import calibrate as run_calibrate
    from knownminds.validation.engine.arguments import resolve_model

    agent = resolve_model(model)
    place, truth = resolve_experiment(environment, agent, trials, values, design)
    if truth:
        raise ValueError(
            f"Calibration draws the truth from the prior; got --set {next(iter(truth))}. "
            "Hold a parameter in truth and fit with --fix."
        )
    return lambda running: run_calibrate(
        place,
        agent,
        replicates=replicates,
        subjects=subjects,
        sessions=sessions,
        method=method,  # type: ignore[arg-type]  # checked there, with the nearest name
        seed=seed,
        fixed=read_numbers("--fix", fixed),
        **running,
    )
