"""`knownminds merge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes, print_json
from knownminds.validation.options import Json


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Folders of one study.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    as_json: Json = False,
) -> None:
    """Join the folders of a study that was computed in shares, on several machines."""
    from knownminds.validation.engine.merging import merge as run_merge
    from knownminds.validation.report import read_result, write_report

    place = run_merge(folders, out)
    result = read_result(place)
    notes.print(f"report: {write_report(result, place)}", markup=False, soft_wrap=True)
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
