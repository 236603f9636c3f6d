"""`knownminds score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import check_own_folder, notes, print_json
from knownminds.validation.completion import completes
from knownminds.validation.options import ExperimentOption, Json, Out, Seed
from knownminds.validation.reading import read_mapping


@app.command()
def score(
    data: Annotated[
        list[Path],
        typer.Argument(help=".csv or .parquet files, folders of runs, or a folder that has them."),
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Which; all that the experiments have by default.",
            autocompletion=completes("measures"),
        ),
    ] = None,
    environment: ExperimentOption = None,
    columns: Annotated[
        str | None, typer.Option(help="ours=yours,...: subject=run,context=task,action=choice")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="A column whose values are samples of their own.")
    ] = None,
    released: Annotated[
        bool, typer.Option("--released", help="Define measures as their published code does.")
    ] = False,
    over: Annotated[
        list[str] | None,
        typer.Option(help="Of a collider: a column of conditions that are compared."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Of a collider: judgements to align with, trials or a table of means."),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="Of a collider: by_cause, the default, fits m1 and m2 to the causes they belong "
            "to; pooled, the default with --released, answers for C2 by the formula of C1."
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(help="Of diagnosis: the network, for tests that use the evidence."),
    ] = None,
    bootstraps: Annotated[
        int, typer.Option(help="Of a set of runs: rounds that its intervals rest on.")
    ] = 30,
    mass: Annotated[float, typer.Option(help="Of a set of runs: mass of its intervals.")] = 0.68,
    seed: Seed = 0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Read every measure off a trial file, or the whole table off a set of runs, with intervals."""
    from knownminds.validation.data.scores_of_trials import score as run_score
    from knownminds.validation.diagnosis.belief_battery import belief_battery, of_diagnosis
    from knownminds.validation.magnitudes.magnitude_table import (
        magnitude_table,
        of_one_measured_file,
    )
    from knownminds.validation.report import write_report

    plain = not (measure or released or over or reference or scoring)
    beliefs = plain and of_diagnosis(data, environment, read_mapping(columns))
    if network is not None and not beliefs:
        raise ValueError(
            "--network is that of diagnosis, whose tests of coherence take no --measure, "
            "--released, --over, --reference or --scoring; leave it or them out."
        )
    single = not beliefs and of_one_measured_file(data, measure, read_mapping(columns))
    if out is not None:
        kind = "score" if single else "score of beliefs" if beliefs else "score of several runs"
        check_own_folder(kind, out)
    result: Any
    if beliefs:
        result = belief_battery(
            data, by=by, columns=read_mapping(columns), network=network, seed=seed
        )
    elif single:
        result = run_score(
            data[0],
            measure,
            environment=environment,
            columns=read_mapping(columns),
            by=by,
            released=released,
            over=over,
            reference=reference,
            seed=seed,
            scoring=scoring,  # type: ignore[arg-type]  # checked there, with the nearest name
        )
    else:
        if not plain:
            raise ValueError(
                "Several runs are scored by one table, which takes no --measure, --released, "
                "--over, --reference or --scoring. Name a single run or file with those."
            )
        result = magnitude_table(
            data,
            by=by,
            environment=environment,
            columns=read_mapping(columns),
            rounds=bootstraps,
            mass=mass,
            seed=seed,
        )
    if out is not None:
        result.save(out)
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
