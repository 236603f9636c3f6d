"""The application to which each command adds itself."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Simulated agents with known parameters, and the tests that inference must pass on them.",
    epilog="Anywhere: --plugin FILE brings the models, experiments, measures and adapters of a "
    "Python file of your own (repeatable; or listed in knownminds.toml).",
)


def _tell_version(asked: bool) -> None:
    """Print the version and end."""
    if asked:
        print(f"knownminds {importlib.metadata.version('knownminds')}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_tell_version, is_eager=True),
    ] = False,
) -> None:
    """Take what goes before a command."""
