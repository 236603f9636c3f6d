"""`knownminds reveal`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from knownminds.validation.cli.output import check_own_folder, notes, print_json, progress_bar
from knownminds.validation.cli.study import command
from knownminds.validation.engine.question import Question, asks, option
from knownminds.validation.options import Out, Seed
from knownminds.validation.reading import read_caps, read_numbers


@dataclass(frozen=True, kw_only=True)
class AskReveal(Question[Any]):
    """What `reveal` is asked: which models, which contexts, and how they are read."""

    command: ClassVar[str] = "reveal"
    help: ClassVar[str] = (
        "Read how probable each outcome of chance is to a model, beside what it states."
    )

    scenarios: list[str] | None = asks(
        Annotated[
            list[str] | None,
            typer.Argument(help="dice, coins, choice, preference; all of them if none is named."),
        ],
        None,
    )
    llm: list[str] | None = option(
        list[str] | None, "PROVIDER:MODEL, transformers:FOLDER or synthetic:belief_sampler.", None
    )
    earlier: list[Path] | None = option(
        list[Path] | None, "A folder of an earlier result, to compare with.", None, flag="--from"
    )
    source: str | None = option(str | None, "exact, top-k or sampled; the best one there is.", None)
    form: str | None = option(str | None, "continuation or question.", None)
    draws: int = option(int, "Answers to each context, if sampled.", 50)
    top: int = option(int, "Alternatives told with each token, if top-k.", 20)
    stated: bool = option(bool, "Ask for probabilities as well.", True)
    distractors: str = option(
        str, "published or plausible: the wrong probabilities on offer.", "published"
    )
    asking: str = option(str, "whole or gap: how probabilities are asked for.", "whole")
    even_faces: bool = option(bool, "Leave odd dice out.", False, flag="--even-faces")
    chat: bool = option(bool, "Put texts that go on into the chat template.", False, flag="--chat")
    signs: bool = option(bool, "Look at what follows a sign behind an outcome (7.5).", True)
    threshold: float = option(float, "Least retained mass without a flag.", 0.5)
    values: list[str] | None = option(
        list[str] | None,
        "NAME=VALUE: a parameter of a known mind, or n_dice, ...",
        None,
        flag="--set",
    )
    tokens: str = option(str, "single, digits or pairs: how a known mind is cut.", "digits")
    space: float = option(float, "Of a known mind: share with a space before.", 0.5)
    leak: float = option(float, "Of a known mind: share that is no outcome.", 0.0)
    seed: int = asks(Seed, 0)
    base_url: str | None = option(str | None, "A server of your own.", None)
    key_variable: str | None = option(
        str | None, "The environment variable that holds the key.", None
    )
    temperature: float | None = option(float | None, "0 to 2.", None)
    max_tokens: int | None = option(int | None, "Where an answer is cut off.", None)
    cap: list[str] | None = option(
        list[str] | None, "NAME=MOST of each experiment: calls, tokens, dollars, ...", None
    )
    out: Path | None = asks(Out, None)


def _reveal(given: dict[str, Any]) -> None:
    asked, as_json = AskReveal(**AskReveal.read(given)), given["as_json"]
    from knownminds.environments.chance.scenarios import SCENARIOS
    from knownminds.llm_adapters import Sampling, Unusable
    from knownminds.llm_adapters.runs.ledger import LedgerFailed
    from knownminds.validation.chance.chance_items import GRID
    from knownminds.validation.chance.revealed import reveal as ask
    from knownminds.validation.report import write_report

    given = read_numbers("--set", asked.values)
    if asked.out is not None:
        check_own_folder("reveal", asked.out)
    try:
        with progress_bar("reveal") as progress:
            result = ask(
                asked.llm or (),
                scenarios=asked.scenarios or tuple(SCENARIOS),
                form=asked.form,
                source=asked.source,
                draws=asked.draws,
                top=asked.top,
                stated=asked.stated,
                distractors=asked.distractors,
                asking=asked.asking,
                even_faces=asked.even_faces,
                chat=asked.chat,
                signs=asked.signs,
                threshold=asked.threshold,
                only={name: int(value) for name, value in given.items() if name in GRID},
                truth={name: value for name, value in given.items() if name not in GRID},
                tokens=asked.tokens,
                space=asked.space,
                leak=asked.leak,
                earlier=asked.earlier or (),
                seed=asked.seed,
                settings=Sampling(temperature=asked.temperature, max_tokens=asked.max_tokens),
                out=asked.out,
                progress=progress,
                base_url=asked.base_url,
                key_variable=asked.key_variable,
                caps=read_caps(asked.cap),
            )
    except (ImportError, LedgerFailed, Unusable) as error:
        raise ValueError(str(error)) from None
    if asked.out is not None:
        notes.print(f"report: {write_report(result, asked.out)}", markup=False, soft_wrap=True)
    else:
        notes.print("--out FOLDER keeps the beliefs and their report.")
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)


command(AskReveal, {}, _reveal)
