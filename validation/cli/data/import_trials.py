"""`knownminds import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import tell_trials
from knownminds.validation.options import ExperimentOption, Json
from knownminds.validation.reading import read_mapping, read_settings


@app.command("import")
def import_(
    sources: Annotated[
        list[Path], typer.Argument(help="Files, or folders of psych-ds or of Inspect's logs.")
    ],
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file.")],
    format: Annotated[
        str | None, typer.Option(help="psych-101, psych-ds, inspect, csv or parquet; else found.")
    ] = None,
    environment: ExperimentOption = None,
    columns: Annotated[str | None, typer.Option(help="ours=yours,...")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read trials from Psych-101 texts, Psych-DS folders or Inspect's logs into a table."""
    from knownminds.validation.data.exchange import import_trials, save_table

    found = import_trials(
        sources,
        format,
        environment=environment,
        columns=read_mapping(columns),
        settings=read_settings(values),
    )
    save_table(found, out)
    tell_trials(found, out, as_json)
