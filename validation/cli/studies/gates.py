"""`knownminds gates`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json, progress_bar, tell
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
    out: Annotated[
        Path | None, typer.Option(help="A .csv file for the table, with date and version.")
    ] = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Put models through recovery, its control and calibration, measures through audits."""
    from knownminds.environments.record.folders import check_writable
    from knownminds.validation.gates.gates import gates as compute
    from knownminds.validation.gates.gates import write_gates

    if out is not None:
        check_writable(out)
    with progress_bar("gates") as progress:
        result = compute(
            name, kinds=gate, small=small, seed=seed, workers=workers, progress=progress
        )
    if out is not None:
        write_gates(result, out)
    if as_json:
        print_json(result.to_dict())
    else:
        tell(result)
