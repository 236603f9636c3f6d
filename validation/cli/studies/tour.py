"""`knownminds tour`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes, print_json, progress_bar, tell
from knownminds.validation.options import Json

SMALL: dict[str, Any] = {"subjects": 200, "seed": 1}
NEXT = (
    "knownminds list",
    "knownminds power instrumental_learning --effect optimism_bias=0.2 --sessions 10",
    "knownminds sample two_step --out trials.csv && knownminds fit trials.csv",
)


@app.command()
def tour(
    out: Annotated[Path, typer.Option(help="Folder for the study and its report.")] = Path("tour"),
    opened: Annotated[
        bool, typer.Option("--open/--no-open", help="Whether a browser opens the report.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Run the main job small: can a model's parameters be read from an experiment's choices?"""
    from knownminds.validation.engine.question import command_line
    from knownminds.validation.recovery.parameter_recovery import recover
    from knownminds.validation.report import write_report

    place, model = "instrumental_learning", "rescorla_wagner"
    told = command_line("recover", place, model=model, **SMALL, out=str(out))
    notes.print(f"This is what runs, with {SMALL['subjects']} learners whose parameters are known:")
    notes.print(f"  {told}", soft_wrap=True)
    with progress_bar("tour") as progress:
        found = recover(place, model, **SMALL, out=out, progress=progress)
    report = write_report(found, out)
    if as_json:
        print_json({"command": told, "report": str(report), **found.to_dict()})
    else:
        tell(found)
        notes.print(f"\nreport: {report}\nNext, for instance:", soft_wrap=True)
        for line in NEXT:
            notes.print(f"  {line}", soft_wrap=True)
    if opened and not webbrowser.open(report.resolve().as_uri()):
        notes.print("No browser was found; open the report yourself.")
