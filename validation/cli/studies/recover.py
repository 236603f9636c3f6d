"""`knownminds recover`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from knownminds.validation.cli.options import (
    AllTrials,
    DesignName,
    Experiment,
    FitLapse,
    Fixed,
    Lapse,
    Method,
    Model,
    Seed,
    SeveralSessions,
    SeveralTrials,
    Values,
)
from knownminds.validation.cli.reading import NOT_GIVEN, read_numbers, resolve_experiment
from knownminds.validation.cli.study import Ask, study


@study
def recover(
    environment: Experiment,
    model: Model = "rescorla_wagner_dual",
    subjects: Annotated[
        list[int] | None, typer.Option(help="How many; several give a surface.")
    ] = None,
    replicates: Annotated[int, typer.Option(help="Independent repetitions.")] = 1,
    sessions: SeveralSessions = None,
    trials: SeveralTrials = None,
    design: DesignName = None,
    method: Method = "map",
    seed: Seed = 0,
    values: Values = None,
    fixed: Fixed = None,
    lapse: Lapse = 0.0,
    fit_lapse: FitLapse = False,
    all_trials: AllTrials = False,
    intervals: Annotated[str, typer.Option(help="Of map: posterior, or laplace.")] = "posterior",
    population: Annotated[
        str, typer.Option(help="Subjects from the model's prior, or each replicate a group.")
    ] = "prior",
) -> Ask:
    """Ask whether a design gives a model's parameters back; several sizes give a surface."""
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.recovery.parameter_recovery import recover as run_recover
    from knownminds.validation.recovery.recovery_surface import recovery_surface

    agent = resolve_model(model)
    place, truth = resolve_experiment(environment, agent, None, values, design)
    grid: list[list[Any]] = [subjects or [100], sessions or [1], list(trials or NOT_GIVEN)]
    given: dict[str, Any] = {
        "replicates": replicates,
        "method": method,
        "seed": seed,
        "truth": truth,
        "lapse": lapse,
        "fixed": read_numbers("--fix", fixed),
        "fit_lapse": fit_lapse,
        "all_trials": all_trials,
        "intervals": intervals,
        "population": population,
    }
    if all(len(sizes) == 1 for sizes in grid):
        one: dict[str, Any] = {"subjects": grid[0][0], "sessions": grid[1][0], "trials": grid[2][0]}
        return lambda running: run_recover(place, agent, **one, **given, **running)
    several: dict[str, Any] = dict(zip(("subjects", "sessions", "trials"), grid, strict=True))
    return lambda running: recovery_surface(place, agent, **several, **given, **running)
