"""`knownminds reveal`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from knownminds.validation.chance.questions import RevealQuestion
from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import check_own_folder, notes, print_json, progress_bar
from knownminds.validation.options import Json, Out
from knownminds.validation.reading import read_caps


def reveal(
    llm: Annotated[
        list[str] | None,
        typer.Option(help="PROVIDER:MODEL, transformers:FOLDER or synthetic:belief_sampler."),
    ] = None,
    earlier: Annotated[
        list[Path] | None,
        typer.Option("--from", help="A folder of an earlier result, to compare with."),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="A server of your own.")] = None,
    key_variable: Annotated[
        str | None, typer.Option(help="The environment variable that holds the key.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="0 to 2.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Where an answer is cut off.")] = None,
    cap: Annotated[
        list[str] | None,
        typer.Option(help="NAME=MOST of each experiment: calls, tokens, dollars, ..."),
    ] = None,
    out: Out = None,
    as_json: Json = False,
    **asked: Any,
) -> None:
    """Read how probable each outcome of chance is to a model, beside what it states."""
    from knownminds.llm_adapters import Sampling, Unusable
    from knownminds.llm_adapters.runs.ledger import LedgerFailed
    from knownminds.validation.chance.revealed import reveal as ask
    from knownminds.validation.report import write_report

    question = RevealQuestion.read(asked)
    if out is not None:
        check_own_folder("reveal", out)
    try:
        with progress_bar("reveal") as progress:
            result = ask(
                llm or (),
                earlier=earlier or (),
                settings=Sampling(temperature=temperature, max_tokens=max_tokens),
                out=out,
                progress=progress,
                base_url=base_url,
                key_variable=key_variable,
                caps=read_caps(cap),
                **question,
            )
    except (ImportError, LedgerFailed, Unusable) as error:
        raise ValueError(str(error)) from None
    if out is not None:
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    else:
        notes.print("--out FOLDER keeps the beliefs and their report.")
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)


def _signature() -> inspect.Signature:
    """Return the options: those of the question stand behind --from."""
    own = list(inspect.signature(reveal, eval_str=True).parameters.values())[:-1]
    of_question = {
        how.name or name: inspect.Parameter(
            how.name or name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=how.untyped,
            annotation=how.option,
        )
        for name, how in RevealQuestion.typed().items()
    }
    return inspect.Signature([*own[:2], *of_question.values(), *own[2:]])


_options = _signature()
reveal.__signature__ = _options  # type: ignore[attr-defined]
reveal.__annotations__ = {name: one.annotation for name, one in _options.parameters.items()}
app.command()(reveal)
