"""`knownminds gallery`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json
from knownminds.validation.options import Json


@app.command()
def gallery(
    out: Annotated[Path, typer.Option(help="Folder for the page.")],
    as_json: Json = False,
) -> None:
    """Write one page of all experiments, models and measures, with what is stored of them."""
    from knownminds.validation.gates.gallery import gallery as write_gallery

    page = write_gallery(out)
    if as_json:
        print_json({"gallery": str(page)})
    else:
        print(page)
