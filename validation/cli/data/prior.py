"""`knownminds prior`."""

from __future__ import annotations

from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import check_own_folder
from knownminds.validation.cli.study import leave
from knownminds.validation.options import (
    UNNAMED,
    DesignName,
    Experiment,
    Json,
    Model,
    NTrials,
    Out,
    Seed,
    Values,
)
from knownminds.validation.reading import resolve_experiment


@app.command()
def prior(
    environment: Experiment,
    model: Model = UNNAMED,
    minds: Annotated[int, typer.Option(help="How many, with a session each.", max=100_000)] = 500,
    trials: NTrials = None,
    design: DesignName = None,
    seed: Seed = 0,
    values: Values = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Let minds of a model's priors live an experiment, and see what they do."""
    from knownminds.validation.data.prior import prior as answer
    from knownminds.validation.engine.arguments import resolve_model

    agent = resolve_model(model)
    place, truth = resolve_experiment(environment, agent, trials, values, design)
    if out is not None:
        check_own_folder("prior", out)
    result = answer(place, agent, minds=minds, truth=truth, seed=seed)
    if out is not None:
        result.save(out)
    leave(result, {"out": out, "as_json": as_json})
