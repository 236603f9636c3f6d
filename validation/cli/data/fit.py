"""`knownminds fit`."""

from __future__ import annotations

from typing import Any

from knownminds.validation.cli.output import check_own_folder, notes
from knownminds.validation.cli.study import command, leave
from knownminds.validation.data.questions import AskFit
from knownminds.validation.engine.question import RUNNING


def _tell(line: str) -> None:
    notes.print(line, markup=False, highlight=False, soft_wrap=True)


def _fit(given: dict[str, Any]) -> None:
    out = given["out"]
    if out is not None:
        check_own_folder("fit", out)
    result = AskFit(**AskFit.read(given), tell=_tell).answer()
    for name in ("environment", "model"):
        if given[name] is None:
            notes.print(f"{name}: {result.asked[name]} (name another with --{name})")
    if out is not None:
        result.save(out)
    leave(result, given)


command(AskFit, {"out": RUNNING["out"]}, _fit)
