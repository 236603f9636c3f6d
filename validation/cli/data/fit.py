"""`knownminds fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import check_own_folder, notes, print_json
from knownminds.validation.options import (
    AllTrials,
    ExperimentOption,
    FitLapse,
    Fixed,
    Json,
    Method,
    Model,
    Out,
    Seed,
    Workers,
)
from knownminds.validation.reading import read_mapping, read_numbers


def _tell(line: str) -> None:
    notes.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="A .csv or .parquet file, or the folder of a run.")],
    model: Model = "rescorla_wagner_dual",
    environment: ExperimentOption = None,
    columns: Annotated[
        str | None, typer.Option(help="ours=yours,...: subject=run,context=task,action=choice")
    ] = None,
    method: Method = "map",
    formula: Annotated[
        list[str] | None, typer.Option(help='"alpha_positive ~ condition" (hierarchical).')
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Columns that name what has its own parameters: subject,domain"),
    ] = None,
    crossed: Annotated[
        str | None, typer.Option(help="Columns whose levels deviate as well (hierarchical).")
    ] = None,
    fixed: Fixed = None,
    fit_lapse: FitLapse = False,
    all_trials: AllTrials = False,
    target_accept: Annotated[
        float, typer.Option(help="Acceptance rate at which sampling begins (hierarchical).")
    ] = 0.8,
    most_minutes: Annotated[
        float, typer.Option(help="For how long to sample at most (hierarchical).")
    ] = 15.0,
    pooled: Annotated[
        bool, typer.Option("--pooled", help="Take all sessions for those of one mind.")
    ] = False,
    seed: Seed = 0,
    workers: Workers = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Fit people's or models' choices, and say what so many trials support."""
    from knownminds.validation.data.fit import fit as run_fit
    from knownminds.validation.report import write_report

    if out is not None:
        check_own_folder("fit", out)
    result = run_fit(
        data,
        model,
        environment=environment,
        columns=read_mapping(columns),
        method=method,  # type: ignore[arg-type]  # checked there, with the nearest name
        formula=formula,
        unit=unit.split(",") if unit else None,
        crossed=crossed.split(",") if crossed else None,
        fixed=read_numbers("--fix", fixed),
        fit_lapse=fit_lapse,
        all_trials=all_trials,
        target_accept=target_accept,
        most_minutes=most_minutes,
        tell=_tell,
        pooled=pooled,
        seed=seed,
        workers=workers,
    )
    if environment is None:
        notes.print(f"experiment: {result.environment} (name another with --environment)")
    if out is not None:
        result.save(out)
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
