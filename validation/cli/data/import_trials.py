"""`knownminds import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json, tell_trials
from knownminds.validation.options import ExperimentOption, Json
from knownminds.validation.reading import read_mapping, read_settings, read_texts


@app.command("import")
def import_(
    sources: Annotated[
        list[Path], typer.Argument(help="Files, or folders of psych-ds or of Inspect's logs.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="A .csv or .parquet file; without it nothing is written.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--from",
            "--format",
            help="cogbench, causalign, horizon, hbayesdm, hssm, jspsych, psych-101, "
            "psych-ds, inspect, page, csv or parquet; else found.",
        ),
    ] = None,
    environment: ExperimentOption = None,
    columns: Annotated[str | None, typer.Option(help="ours=yours,...")] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="ours=theirs,...; 'COLUMN: text=0,text=1'; 'COLUMN: percent'; a .toml.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="COLUMN=VALUE: only rows that have it are trials.")
    ] = None,
    missing: Annotated[
        list[str] | None, typer.Option(help="What stands for no answer, besides nothing and NA.")
    ] = None,
    subject_from_file: Annotated[
        bool,
        typer.Option("--subject-from-file", help="Each file is of one subject, named as the file."),
    ] = False,
    encoding: Annotated[str | None, typer.Option(help="Of the file, such as cp1252.")] = None,
    save_map: Annotated[
        Path | None, typer.Option(help="A .toml file for the mapping that was used, to be copied.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read other people's data, and say what was understood of every row."""
    from knownminds.validation.data.exchange import import_sources, save_table
    from knownminds.validation.imports.importing import Reading
    from knownminds.validation.imports.mapping import ColumnMap, read_map

    mapping = None
    if map_:
        mapping = read_map(map_).merged(ColumnMap(missing=tuple(missing or ())))
    reading = Reading(
        environment,
        read_settings(values) or {},
        mapping,
        read_texts("--where", where) or {},
        encoding,
        missing or (),
        subject_from_file,
    )
    found = import_sources(sources, format, reading, read_mapping(columns))
    if out is not None:
        save_table(found.trials, out)
    if save_map is not None and found.mapping is not None:
        found.mapping.save(save_map)
    told: dict[str, Any] = {} if found.account is None else {"account": found.account.to_dict()}
    if found.account is not None and not as_json:
        print(found.account)
    if out is not None:
        tell_trials(found.trials, out, as_json, told)
    elif as_json:
        print_json(told)
    else:
        print("Nothing was written; --out trials.parquet writes it.")
