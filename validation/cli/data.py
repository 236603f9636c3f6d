"""Commands of a user's data: simulated, moved in and out, fitted, scored, and pages for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from knownminds.validation.data.questions import (
    AskExport,
    AskFit,
    AskImport,
    AskScore,
    Simulate,
)
from knownminds.validation.people.questions import Page

from .application import command, leave
from .output import Form, check_own_folder, note, print_json
from .studies import run_study


def _print_written(
    trials: Any, out: Any, form: Form, more: Mapping[str, Any] | None = None
) -> None:
    """Say what was written; as JSON with more."""
    if form is not Form.JSON:
        print(f"{trials}, written to {out}")
        return
    counts = trials.frame["outcome"].value_counts().to_dict()
    sizes = {"subjects": trials.n_subjects, "sessions": trials.n_sessions, "trials": len(trials)}
    print_json({"out": str(out), **sizes, "outcomes": counts, **(more or {})})


def _simulate(question: Simulate, form: Form) -> None:
    if question.report:
        run_study(question, form)
        return
    if form is Form.FULL:
        raise ValueError("--full is of the report on the data; say --report too, or leave it out.")
    from knownminds.environments.record.csv_cells import csv_text
    from knownminds.environments.record.tabled_result import plain
    from knownminds.validation.engine.arguments import resolve_environment

    trials: Any = question.answer()
    if question.out is not None:
        note(f"{trials}, written to {question.out}")
    if form is Form.JSON:
        frame = trials.frame
        names = [name for name in frame if str(name).startswith("true_")]
        first = frame.drop_duplicates("subject")[["subject", *names]]
        truth = first.rename(columns=lambda name: str(name).removeprefix("true_"))
        environment = resolve_environment(question.environment, question.trials)
        options = question.option_values() | {
            "environment": environment.name,
            "trials_per_session": question.questions or environment.n_trials,
            "truth": truth.to_dict("records"),
        }
        options |= {"trials": json.loads(trials.to_json())} if question.out is None else {}
        print_json(plain(options | ({} if question.out is None else {"out": str(question.out)})))
    elif question.out is None:
        sys.stdout.write(csv_text(trials.frame))


def _import(question: AskImport, form: Form) -> None:
    from knownminds.validation.data.exchange import run_import

    imported = run_import(question)
    account = imported.account
    content: dict[str, Any] = {} if account is None else {"account": account.to_dict()}
    if account is not None and form is not Form.JSON:
        print(account)
    if question.out is not None:
        _print_written(imported.trials, question.out, form, content)
    elif form is Form.JSON:
        print_json(content)
    else:
        print("Nothing was written; --out trials.parquet writes it.")


def _export(question: AskExport, form: Form) -> None:
    from knownminds.inference.groups.crossed_levels import BETWEEN

    written = question.answer()
    _print_written(written, question.out, form)
    first = str(written.frame["subject"].iloc[0])
    if question.format == "hbayesdm" and BETWEEN in first:
        note(
            "hBayesDM has no column for sessions and contexts: each is a subjID of its own, named "
            f"as in {first!r}."
        )


def _fit(question: AskFit, form: Form) -> None:
    if question.out is not None:
        check_own_folder("", Path(question.out))
    result = replace(question, tell=note, out=None).answer()
    for name in ("environment", "model"):
        if getattr(question, name) is None and question.over is None:
            note(f"{name}: {result.options[name]} (name another with --{name})")
    leave(result, question.out, form)


def _score(question: AskScore, form: Form) -> None:
    if question.out is not None:
        check_own_folder("", Path(question.out))
    leave(replace(question, out=None).answer(), question.out, form)


def _page(question: Page, form: Form) -> None:
    site = question.answer()
    if form is Form.JSON:
        print_json(site.to_dict() | {"out": str(question.out)})
        return
    print(site)
    index = Path(question.out) / "index.html"
    note(
        f"written to {question.out}; open {index}, then knownminds import FILE.json "
        "--out trials.csv"
    )


command(Simulate, _simulate)
command(AskImport, _import)
command(AskExport, _export)
command(AskFit, _fit)
command(AskScore, _score)
command(Page, _page)
