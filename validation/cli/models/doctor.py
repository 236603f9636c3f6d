"""`knownminds doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json
from knownminds.validation.options import Json


@app.command()
def doctor(
    speed: Annotated[bool, typer.Option(help="Whether to measure how fast it is.")] = True,
    as_json: Json = False,
) -> None:
    """Say what is installed, which language models can be asked, and how fast this machine is."""
    from knownminds.validation.gates.doctor import doctor as examine

    found = examine(measure=speed)
    if as_json:
        print_json(found.to_dict())
    else:
        print(found)
    if not found.sound:
        raise typer.Exit(1)
