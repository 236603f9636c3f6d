"""`knownminds confuse`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from knownminds.validation.cli.options import (
    AllTrials,
    DesignName,
    Experiment,
    FitLapse,
    Lapse,
    NTrials,
    Seed,
    Sessions,
    Values,
)
from knownminds.validation.cli.reading import resolve_experiment
from knownminds.validation.cli.study import Ask, study
from knownminds.validation.completion import completes


def _players(environment: str) -> list[str]:
    """Names of all models that can play an experiment."""
    from knownminds.agents import AGENTS
    from knownminds.environments import make

    place = make(environment)
    return [name for name, model in AGENTS.items() if model.plays(place)]


@study
def confuse(
    environment: Experiment,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A rival; at least two. All that can play if none.",
            autocompletion=completes("models"),
        ),
    ] = None,
    criterion: Annotated[
        list[str] | None, typer.Option(help="aic, bic, cv or loo; several are compared.")
    ] = None,
    subjects: Annotated[int, typer.Option(help="Subjects per data set.")] = 1,
    replicates: Annotated[int, typer.Option(help="Data sets per model.")] = 200,
    sessions: Sessions = 1,
    trials: NTrials = None,
    design: DesignName = None,
    seed: Seed = 0,
    values: Values = None,
    lapse: Lapse = 0.0,
    fit_lapse: FitLapse = False,
    all_trials: AllTrials = False,
) -> Ask:
    """Ask whether a design tells rival models apart: confusion and inversion matrices."""
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.recovery.model_recovery import confuse as run_confuse

    rivals = [resolve_model(name) for name in model or _players(environment)]
    place, truth = resolve_experiment(environment, rivals, trials, values, design)
    given: dict[str, Any] = {"criteria": criterion} if criterion else {}
    return lambda running: run_confuse(
        place,
        rivals,
        subjects=subjects,
        replicates=replicates,
        sessions=sessions,
        seed=seed,
        truth=truth,
        lapse=lapse,
        fit_lapse=fit_lapse,
        all_trials=all_trials,
        **given,
        **running,
    )
