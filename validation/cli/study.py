"""What all studies share: where and how they are computed, and what is left of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.options import Json, Out, Workers
from knownminds.validation.cli.output import notes, print_json, progress_bar

Ask = Callable[[Any], Any]  # computes a result, given where and how


def study(compute: Callable[..., Ask]) -> Callable[..., Ask]:
    """Make a command of a function that checks its arguments and returns what is to be computed.

    The command has the options that all studies share besides its own.
    """
    shared = inspect.signature(_answer, eval_str=True).parameters.values()
    own = inspect.signature(compute, eval_str=True).parameters.values()
    names = [p.name for p in own]

    @functools.wraps(compute)
    def command(**given: Any) -> None:
        ask = compute(**{name: given.pop(name) for name in names})
        _answer(ask, compute.__name__, **given)

    options = [p for p in shared if p.name not in ("ask", "title")]
    command.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*own, *options)}
    app.command()(command)
    return compute


def _answer(
    ask: Ask,
    title: str,
    workers: Workers = None,
    backend: Annotated[
        str | None, typer.Option(help="processes, threads, or dask with --scheduler.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="tcp://HOST:PORT of a dask cluster.")
    ] = None,
    share: Annotated[
        str | None, typer.Option(help="2/3: only the second third, to be merged later.")
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Compute a study, show its result, and leave its report."""
    from knownminds.validation.engine.engine import ShareDone
    from knownminds.validation.report import write_report

    with progress_bar(title) as progress:
        try:
            result = ask(
                {
                    "out": out,
                    "workers": workers,
                    "backend": backend,
                    "scheduler": scheduler,
                    "share": share,
                    "progress": progress,
                }
            )
        except ShareDone as done:
            notes.print(str(done), markup=False, soft_wrap=True)
            return
    if out is None:
        notes.print(
            "Computed in a temporary folder, now removed; --out FOLDER keeps rows and report."
        )
    else:
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
