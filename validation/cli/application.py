"""The application to which each command adds itself."""

from __future__ import annotations

import typer

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Simulated agents with known parameters, and the tests that inference must pass on them.",
    epilog="Anywhere: --plugin FILE brings the models, experiments, measures and adapters of a "
    "Python file of your own (repeatable; or listed in knownminds.toml).",
)
