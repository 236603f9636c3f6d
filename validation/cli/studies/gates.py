"""`knownminds gates`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json, progress_bar
from knownminds.validation.options import Json, Seed, Workers


@app.command()
def gates(
    name: Annotated[
        list[str] | None, typer.Argument(help="Models and measures; all if none.")
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(help="recovery, shuffled, calibration or audit; all if none."),
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="A tenth of the size, to see that it works.")
    ] = False,
    seed: Seed = 1,
    store: Annotated[
        Path | None, typer.Option(help="A .json file that keeps each gate; it goes on from there.")
    ] = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Put models through recovery, its control and calibration, measures through audits."""
    from knownminds.validation.gates.gates import gates as run_gates

    with progress_bar("gates") as progress:
        found = run_gates(
            name,
            kinds=gate,
            small=small,
            seed=seed,
            store=store,
            workers=workers,
            progress=progress,
        )
    if as_json:
        print_json(found.to_dict())
    else:
        print(found)
