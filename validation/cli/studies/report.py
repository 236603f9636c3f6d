"""`knownminds report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes, print_json
from knownminds.validation.options import Json


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a study or a fit.")],
    as_json: Json = False,
) -> None:
    """Draw the report of a folder again, without computing anything anew."""
    from knownminds.validation.pages.result_page import write_page
    from knownminds.validation.report import read_result

    result = read_result(folder)
    page = write_page(result, folder)
    if result.missing:
        notes.print(
            f"not finished: {result.missing:,} units are missing", markup=False, soft_wrap=True
        )
    if as_json:
        print_json({"report": str(page)})
    else:
        print(page)
