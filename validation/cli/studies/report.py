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
    from knownminds.validation.report import read_what_is_there, write_report
    from knownminds.validation.unfinished_page import Unfinished

    found = read_what_is_there(folder)
    page = write_report(found, folder)
    if isinstance(found, Unfinished):
        notes.print(str(found), markup=False, soft_wrap=True)
    if as_json:
        print_json({"report": str(page)})
    else:
        print(page)
