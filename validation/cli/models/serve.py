"""`knownminds serve`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes
from knownminds.validation.options import (
    UNNAMED,
    Contaminate,
    DesignName,
    Experiment,
    Model,
    NTrials,
    Seed,
    Values,
)
from knownminds.validation.reading import read_contaminants, resolve_experiment


def _key(variable: str | None) -> str | None:
    """Read a key that requests must bear; None if they need none."""
    key = None if variable is None else os.environ.get(variable, "").strip()
    if key == "":
        raise ValueError(f"The key is read from the variable {variable}, which is empty. Set it.")
    return key


@app.command()
def serve(
    environment: Experiment,
    model: Model = UNNAMED,
    values: Values = None,
    trials: NTrials = None,
    design: DesignName = None,
    seed: Seed = 0,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 for a free one.")] = 0,
    name: Annotated[str, typer.Option(help="The model that requests must ask for.")] = "known-mind",
    contaminate: Contaminate = None,
    seed_is_session: Annotated[
        bool,
        typer.Option(help="Whether a request's seed is the session's number, as `run` sends it."),
    ] = True,
    key_variable: Annotated[
        str | None, typer.Option(help="Variable with a key that requests must bear.")
    ] = None,
) -> None:
    """Put a known mind behind an OpenAI-compatible address, until Ctrl-C."""
    from knownminds.llm_adapters.known_minds.serve import Served
    from knownminds.llm_adapters.runs.participant import RUN
    from knownminds.validation.costs.connect import known_agent
    from knownminds.validation.engine.arguments import resolve_model

    agent = resolve_model(model)
    place, truth = resolve_experiment(environment, agent, trials, values, design)
    mind = known_agent(agent, place, truth)

    served = Served(
        place,
        mind,
        seed=seed,
        address=RUN,
        host=host,
        port=port,
        contaminants=read_contaminants(contaminate),
        model=name,
        api_key=_key(key_variable),
        seed_is_session=seed_is_session,
    )
    try:
        notes.print(f"{mind} at {served.base_url} as {name}; Ctrl-C ends it.", soft_wrap=True)
        served.run()
    finally:
        served.close()
    notes.print(f"{served.calls} calls were answered.")
