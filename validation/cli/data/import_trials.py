"""`knownminds import`."""

from __future__ import annotations

from typing import Any

from knownminds.validation.cli.output import print_json, tell_trials
from knownminds.validation.cli.study import command
from knownminds.validation.data.questions import AskImport


def _import(given: dict[str, Any]) -> None:
    from knownminds.validation.data.exchange import import_asked

    as_json, out = given["as_json"], given["out"]
    found = import_asked(AskImport(**AskImport.read(given)))
    told: dict[str, Any] = {} if found.account is None else {"account": found.account.to_dict()}
    if found.account is not None and not as_json:
        print(found.account)
    if out is not None:
        tell_trials(found.trials, out, as_json, told)
    elif as_json:
        print_json(told)
    else:
        print("Nothing was written; --out trials.parquet writes it.")


command(AskImport, {}, _import)
