"""`knownminds schema`."""

from __future__ import annotations

from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json
from knownminds.validation.completion import completes
from knownminds.validation.options import Json


@app.command()
def schema(
    environment: Annotated[
        str | None,
        typer.Argument(
            help="An experiment, for its stimuli and ranges.",
            autocompletion=completes("environments"),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the columns of the trial record, or with --json its JSON Schema."""
    from knownminds.environments import make, trial_schema

    found = trial_schema(None if environment is None else make(environment))
    if as_json:
        print_json(found.to_dict())
    else:
        print(found)
