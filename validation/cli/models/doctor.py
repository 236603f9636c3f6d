"""`knownminds doctor`."""

from __future__ import annotations

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import print_json
from knownminds.validation.options import Json


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what is installed, and which language models can be asked."""
    from knownminds.validation.gates.doctor import COMPLETE
    from knownminds.validation.gates.doctor import doctor as examine

    result = examine()
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
    (verdict,) = result.verdicts.values()
    if verdict.word != COMPLETE:
        raise typer.Exit(1)
