"""`knownminds export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes, tell_trials
from knownminds.validation.options import ExperimentOption, Json, Seed
from knownminds.validation.reading import read_mapping, read_settings


@app.command()
def export(
    data: Annotated[Path, typer.Argument(help="A .csv or .parquet file, or the folder of a run.")],
    out: Annotated[Path, typer.Option(help="The file, or for psych-ds and r the folder.")],
    format: Annotated[
        str | None,
        typer.Option(
            help="csv, parquet, psych-101, psych-ds, hbayesdm, hssm or r; else as the name ends."
        ),
    ] = None,
    environment: ExperimentOption = None,
    columns: Annotated[str | None, typer.Option(help="ours=yours,...")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of a psych-ds data set.")] = None,
    description: Annotated[str, typer.Option(help="Of a psych-ds data set.")] = "",
    author: Annotated[list[str] | None, typer.Option(help="Of a psych-ds data set.")] = None,
    licence: Annotated[
        str, typer.Option("--licence", "--license", help="Of a psych-ds data set.")
    ] = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write trials as a table, of others' columns too, as Psych-101 texts or a Psych-DS folder."""
    from knownminds.inference.posteriors.crossed_levels import BETWEEN
    from knownminds.validation.data.exchange import export_trials

    written = export_trials(
        data,
        out,
        format,
        environment=environment,
        columns=read_mapping(columns),
        settings=read_settings(values),
        name=name,
        description=description,
        authors=author or (),
        licence=licence,
        seed=seed,
    )
    tell_trials(written, out, as_json)
    first = str(written.frame["subject"].iloc[0])
    if format == "hbayesdm" and BETWEEN in first:
        notes.print(
            "hBayesDM has no column for sessions and contexts: each is a subjID of its own, named "
            f"as in {first!r}."
        )
