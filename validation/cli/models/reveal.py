"""`knownminds reveal`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from knownminds.validation.chance.questions import RevealQuestion
from knownminds.validation.cli.output import check_own_folder, notes, progress_bar
from knownminds.validation.cli.study import command, leave
from knownminds.validation.engine.question import Typed, asks, frozen_question, option
from knownminds.validation.options import Out
from knownminds.validation.reading import read_caps


@frozen_question
class AskReveal(RevealQuestion):
    """What `reveal` asks, and whom."""

    llm: list[str] | None = option(
        list[str] | None,
        "PROVIDER:MODEL, transformers:FOLDER or synthetic:belief_sampler.",
        default=None,
    )
    earlier: list[Path] | None = option(
        list[Path] | None,
        "A folder of an earlier result, to compare with.",
        default=None,
        flag="--from",
    )
    base_url: str | None = option(str | None, "A server of your own.", default=None)
    key_variable: str | None = option(
        str | None, "The environment variable that holds the key.", default=None
    )
    temperature: float | None = option(float | None, "0 to 2.", default=None)
    max_tokens: int | None = option(int | None, "Where an answer is cut off.", default=None)
    cap: list[str] | None = option(
        list[str] | None, "NAME=MOST of each experiment: calls, tokens, dollars, ...", default=None
    )
    out: Path | None = asks(Out, default=None)

    @classmethod
    def typed(cls) -> dict[str, Typed]:
        """How each field is typed; whom one asks comes first."""
        found = super().typed()
        return {name: found[name] for name in ("scenarios", "llm", "earlier")} | found


def _reveal(given: dict[str, Any]) -> None:
    from knownminds.llm_adapters import Failed, Sampling
    from knownminds.llm_adapters.runs.ledger import LedgerFailed
    from knownminds.validation.chance.revealed import reveal

    asked = AskReveal.read(given)
    settings = {name: asked.pop(name, None) for name in ("temperature", "max_tokens")}
    if given["out"] is not None:
        check_own_folder("reveal", given["out"])
    try:
        with progress_bar("reveal") as progress:
            revealed = reveal(
                asked.pop("llm", ()),
                settings=Sampling(**settings),
                progress=progress,
                caps=read_caps(asked.pop("cap", None)),
                **asked,
            )
    except (Failed, ImportError, LedgerFailed) as error:
        raise ValueError(str(error)) from None
    if given["out"] is None:
        notes.print("--out FOLDER keeps the beliefs and their report.")
    leave(revealed.result(), given)


command(AskReveal, {}, _reveal)
