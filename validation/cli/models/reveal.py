"""`knownminds reveal`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import check_own_folder, notes, print_json, progress_bar
from knownminds.validation.options import Json, Out, Seed
from knownminds.validation.reading import read_caps, read_numbers


@app.command()
def reveal(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help="dice, coins, choice, preference; all of them if none is named."),
    ] = None,
    llm: Annotated[
        list[str] | None,
        typer.Option(help="PROVIDER:MODEL, transformers:FOLDER or synthetic:belief_sampler."),
    ] = None,
    earlier: Annotated[
        list[Path] | None,
        typer.Option("--from", help="A folder of an earlier result, to compare with."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="exact, top-k or sampled; the best one there is.")
    ] = None,
    form: Annotated[str | None, typer.Option(help="continuation or question.")] = None,
    draws: Annotated[int, typer.Option(help="Answers to each context, if sampled.")] = 50,
    top: Annotated[int, typer.Option(help="Alternatives told with each token, if top-k.")] = 20,
    stated: Annotated[bool, typer.Option(help="Ask for probabilities as well.")] = True,
    distractors: Annotated[
        str, typer.Option(help="published or plausible: the wrong probabilities on offer.")
    ] = "published",
    asking: Annotated[
        str, typer.Option(help="whole or gap: how probabilities are asked for.")
    ] = "whole",
    even_faces: Annotated[bool, typer.Option("--even-faces", help="Leave odd dice out.")] = False,
    chat: Annotated[
        bool, typer.Option("--chat", help="Put texts that go on into the chat template.")
    ] = False,
    signs: Annotated[
        bool, typer.Option(help="Look at what follows a sign behind an outcome (7.5).")
    ] = True,
    threshold: Annotated[float, typer.Option(help="Least retained mass without a flag.")] = 0.5,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE: a parameter of a known mind, or n_dice, ..."),
    ] = None,
    tokens: Annotated[
        str, typer.Option(help="single, digits or pairs: how a known mind is cut.")
    ] = "digits",
    space: Annotated[float, typer.Option(help="Of a known mind: share with a space before.")] = 0.5,
    leak: Annotated[float, typer.Option(help="Of a known mind: share that is no outcome.")] = 0.0,
    seed: Seed = 0,
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
) -> None:
    """Read how probable each outcome of chance is to a model, beside what it states."""
    from knownminds.environments.chance.scenarios import SCENARIOS
    from knownminds.llm_adapters import Sampling, Unusable
    from knownminds.llm_adapters.runs.ledger import LedgerFailed
    from knownminds.validation.chance.chance_items import GRID
    from knownminds.validation.chance.revealed import reveal as ask
    from knownminds.validation.report import write_report

    given = read_numbers("--set", values)
    if out is not None:
        check_own_folder("reveal", out)
    try:
        with progress_bar("reveal") as progress:
            result = ask(
                llm or (),
                scenarios=scenarios or tuple(SCENARIOS),
                form=form,
                source=source,
                draws=draws,
                top=top,
                stated=stated,
                distractors=distractors,
                asking=asking,
                even_faces=even_faces,
                chat=chat,
                signs=signs,
                threshold=threshold,
                only={name: int(value) for name, value in given.items() if name in GRID},
                truth={name: value for name, value in given.items() if name not in GRID},
                tokens=tokens,
                space=space,
                leak=leak,
                earlier=earlier or (),
                seed=seed,
                settings=Sampling(temperature=temperature, max_tokens=max_tokens),
                out=out,
                progress=progress,
                base_url=base_url,
                key_variable=key_variable,
                caps=read_caps(cap),
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
