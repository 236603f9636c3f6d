"""`knownminds export`."""

from __future__ import annotations

from typing import Any

from knownminds.validation.cli.output import notes, tell_trials
from knownminds.validation.cli.study import command
from knownminds.validation.data.questions import AskExport


def _export(given: dict[str, Any]) -> None:
    from knownminds.inference.posteriors.crossed_levels import BETWEEN

    written = AskExport(**AskExport.read(given)).answer()
    tell_trials(written, given["out"], given["as_json"])
    first = str(written.frame["subject"].iloc[0])
    if given["format"] == "hbayesdm" and BETWEEN in first:
        notes.print(
            "hBayesDM has no column for sessions and contexts: each is a subjID of its own, named "
            f"as in {first!r}."
        )


command(AskExport, {}, _export)
