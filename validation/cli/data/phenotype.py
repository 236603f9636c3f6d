"""`knownminds phenotype`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import check_own_folder, notes, print_json
from knownminds.validation.options import ExperimentOption, Json, Out, Seed
from knownminds.validation.reading import read_mapping, read_settings


@app.command()
def phenotype(
    data: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files or runs of any experiments; without one, our own named characters."
        ),
    ] = None,
    by: Annotated[str, typer.Option(help="The column that tells participants apart.")] = "model",
    reference: Annotated[
        Path | None, typer.Option(help="A CSV file with the columns metric and value.")
    ] = None,
    environment: ExperimentOption = None,
    columns: Annotated[str | None, typer.Option(help="ours=yours,...")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    released: Annotated[
        bool, typer.Option("--released", help="Without signs, as the published code has it.")
    ] = False,
    seed: Seed = 0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Set participants side by side: 0 is random answers, 1 the reference, for each metric."""
    from knownminds.environments.record.folders import writable
    from knownminds.validation.data.phenotype import gallery
    from knownminds.validation.data.phenotype import phenotype as run_phenotype
    from knownminds.validation.data.scores_of_trials import played_in, records_of
    from knownminds.validation.report import write_report

    asked = {
        "data": [str(file) for file in data or ()],
        "by": by if by != "model" else "",
        "reference": str(reference or ""),
        "environment": environment,
        "columns": columns,
        "set": list(values or ()),
        "released": released,
        "seed": seed or None,
    }
    if out is not None:
        check_own_folder("phenotype", out)
    if not data:
        found = gallery(seed=seed)
    elif reference is None:
        raise ValueError(
            "A phenotype is scaled by a reference, and none is shipped; got no --reference. "
            "Give a CSV file with the columns metric and value."
        )
    else:
        told = read_settings(values)
        people = records_of(
            data, by, environment=environment, columns=read_mapping(columns), settings=told
        )
        found = run_phenotype(
            people,
            reference=reference,
            environments=played_in(people, told),
            released=released,
            seed=seed,
        )
    found = replace(found, options=asked)
    if out is not None:
        found.save(out)
        with writable(out) as folder:
            for name, figure in (("bars", found.bars()), ("radar", found.radar())):
                figure.savefig(folder / f"{name}.png", dpi=150)
        notes.print(f"report: {write_report(found, out)}", markup=False, soft_wrap=True)
    if as_json:
        print_json(json.loads(found.to_json()))
    else:
        print(found)
