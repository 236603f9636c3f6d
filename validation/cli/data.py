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
from .output import check_own_folder, note, print_json
from .studies import run_study


def _print_written(
    trials: Any, out: Any, as_json: bool, more: Mapping[str, Any] | None = None
) -> None:
    """Say what was written; as JSON with more."""
    if not as_json:
        print(f"{trials}, written to {out}")
        return
    counts = trials.frame["outcome"].value_counts().to_dict()
    sizes = {"subjects": trials.n_subjects, "sessions": trials.n_sessions, "trials": len(trials)}
    print_json({"out": str(out), **sizes, "outcomes": counts, **(more or {})})


def _simulate(question: Simulate, as_json: bool) -> None:
    if question.report:
        run_study(question, as_json)
        return
    from knownminds.environments.record.csv_cells import csv_text
    from knownminds.environments.record.result import plain
    from knownminds.validation.engine.arguments import resolve_environment

    trials: Any = question.answer()
    if question.out is not None:
        note(f"{trials}, written to {question.out}")
    if as_json:
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


def _import(question: AskImport, as_json: bool) -> None:
    from knownminds.validation.data.exchange import run_import

    imported = run_import(question)
    account = imported.account
    content: dict[str, Any] = {} if account is None else {"account": account.to_dict()}
    if account is not None and not as_json:
        print(account)
    if question.out is not None:
        _print_written(imported.trials, question.out, as_json, content)
    elif as_json:
        print_json(content)
    else:
        print("Nothing was written; --out trials.parquet writes it.")


def _export(question: AskExport, as_json: bool) -> None:
    from knownminds.inference.posteriors.crossed_levels import BETWEEN

    written = question.answer()
    _print_written(written, question.out, as_json)
    first = str(written.frame["subject"].iloc[0])
    if question.format == "hbayesdm" and BETWEEN in first:
        note(
            "hBayesDM has no column for sessions and contexts: each is a subjID of its own, named "
            f"as in {first!r}."
        )


def _fit(question: AskFit, as_json: bool) -> None:
    if question.out is not None:
        check_own_folder("", Path(question.out))
    result = replace(question, tell=note, out=None).answer()
    for name in ("environment", "model"):
        if getattr(question, name) is None:
            note(f"{name}: {result.options[name]} (name another with --{name})")
    leave(result, question.out, as_json)


def _score(question: AskScore, as_json: bool) -> None:
    """Read the parts of a paper off answers to its experiment, or measures."""
    from knownminds.validation.benchmarks.scored import score_of_paper

    if question.measures and list(question.measures) == [EQUAL_BLUR]:
        _equal_blur(question, as_json)
        return
    if question.out is not None:
        check_own_folder("", Path(question.out))
    result = score_of_paper(question) or replace(question, out=None).answer()
    leave(result, question.out, as_json)


EQUAL_BLUR = "equal_blur"  # of all trials together, where measures are of subjects


def _equal_blur(question: AskScore, as_json: bool) -> None:
    from knownminds.inference.magnitudes.equal_blur import equal_blur
    from knownminds.validation.data.trials_of_runs import load

    data: Any = question.data
    (file,) = data
    blur = equal_blur(load(file, question.columns), seed=question.seed)
    if as_json:
        print_json(blur.to_dict())
    else:
        print(blur)


def _page(question: Page, as_json: bool) -> None:
    site = question.answer()
    if as_json:
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
