"""`knownminds channel`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from knownminds.validation.cli.study import Ask, study
from knownminds.validation.options import (
    DesignName,
    Experiment,
    FitLapse,
    Fixed,
    Lapse,
    Model,
    NTrials,
    Seed,
    Sessions,
    Subjects,
    Values,
)
from knownminds.validation.reading import read_numbers, resolve_experiment


@study
def channel(
    environment: Experiment,
    model: Model = "rescorla_wagner_dual",
    contaminate: Annotated[
        list[str] | None,
        typer.Option(help='Rates of one set, "refusal=0.05,malformed=0.05"; or "none".'),
    ] = None,
    subjects: Subjects = 40,
    sessions: Sessions = 1,
    trials: NTrials = None,
    design: DesignName = None,
    method: Annotated[str, typer.Option(help="map or mle.")] = "map",
    seed: Seed = 0,
    values: Values = None,
    fixed: Fixed = None,
    lapse: Lapse = 0.0,
    fit_lapse: FitLapse = False,
) -> Ask:
    """Ask whether known minds come through words as they are, and bounds hold what is lost."""
    from knownminds.validation.channel.channel_study import channel as run_channel
    from knownminds.validation.engine.arguments import resolve_model

    agent = resolve_model(model)
    place, truth = resolve_experiment(environment, agent, trials, values, design)
    given: dict[str, Any] = {"contaminants": contaminate} if contaminate else {}
    return lambda running: run_channel(
        place,
        agent,
        subjects=subjects,
        sessions=sessions,
        method=method,
        seed=seed,
        truth=truth,
        lapse=lapse,
        fixed=read_numbers("--fix", fixed),
        fit_lapse=fit_lapse,
        **given,
        **running,
    )
