"""Commands of a user's data: simulated, moved in and out, fitted, scored, and pages for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
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


def _simulate(asked: Simulate, as_json: bool) -> None:
    if asked.report:
        run_study(asked, as_json)
        return
    from knownminds.environments.record.csv_cells import csv_text
    from knownminds.environments.record.result import plain
    from knownminds.validation.engine.arguments import resolve_environment

    trials: Any = asked.answer()
    if asked.out is not None:
        note(f"{trials}, written to {asked.out}")
    if as_json:
        frame = trials.frame
        names = [name for name in frame if str(name).startswith("true_")]
        first = frame.drop_duplicates("subject")[["subject", *names]]
        truth = first.rename(columns=lambda name: str(name).removeprefix("true_"))
        environment = resolve_environment(asked.environment, asked.trials)
        told = asked.asked() | {
            "environment": environment.name,
            "trials_per_session": asked.questions or environment.n_trials,
            "truth": truth.to_dict("records"),
        }
        told |= {"trials": json.loads(trials.to_json())} if asked.out is None else {}
        print_json(plain(told | ({} if asked.out is None else {"out": str(asked.out)})))
    elif asked.out is None:
        sys.stdout.write(csv_text(trials.frame))


def _import(asked: AskImport, as_json: bool) -> None:
    from knownminds.validation.data.exchange import import_asked

    imported = import_asked(asked)
    account = imported.account
    told: dict[str, Any] = {} if account is None else {"account": account.to_dict()}
    if account is not None and not as_json:
        print(account)
    if asked.out is not None:
        _print_written(imported.trials, asked.out, as_json, told)
    elif as_json:
        print_json(told)
    else:
        print("Nothing was written; --out trials.parquet writes it.")


def _export(asked: AskExport, as_json: bool) -> None:
    from knownminds.inference.posteriors.crossed_levels import BETWEEN

    written = asked.answer()
    _print_written(written, asked.out, as_json)
    first = str(written.frame["subject"].iloc[0])
    if asked.format == "hbayesdm" and BETWEEN in first:
        note(
            "hBayesDM has no column for sessions and contexts: each is a subjID of its own, named "
            f"as in {first!r}."
        )


def _fit(asked: AskFit, as_json: bool) -> None:
    from dataclasses import replace

    if asked.out is not None:
        check_own_folder("fit.json", Path(asked.out))
    result = replace(asked, tell=note).answer()
    for name in ("environment", "model"):
        if getattr(asked, name) is None:
            note(f"{name}: {result.asked[name]} (name another with --{name})")
    leave(result, asked.out, as_json)


def _score(asked: AskScore, as_json: bool) -> None:
    """Read the parts of a paper off answers to its experiment, or measures."""
    from knownminds.validation.benchmarks.scored import FILE, keep_score, score_of_paper

    if asked.measures and list(asked.measures) == [EQUAL_BLUR]:
        _equal_blur(asked, as_json)
        return
    of_paper = score_of_paper(asked)
    if asked.out is not None:
        check_own_folder("measures.json" if of_paper is None else FILE, Path(asked.out))
    if of_paper is not None and asked.out is not None:
        keep_score(asked, of_paper, asked.out)
    leave(of_paper or asked.answer(), asked.out, as_json)


EQUAL_BLUR = "equal_blur"  # of all trials together, where measures are of subjects


def _equal_blur(asked: AskScore, as_json: bool) -> None:
    from knownminds.inference.magnitudes.equal_blur import equal_blur
    from knownminds.validation.data.trials_of_runs import load

    data: Any = asked.data
    (file,) = data
    blur = equal_blur(load(file, asked.columns), seed=asked.seed)
    if as_json:
        print_json(blur.to_dict())
    else:
        print(blur)


def _page(asked: Page, as_json: bool) -> None:
    site = asked.answer()
    if as_json:
        print_json(site.to_dict() | {"out": str(asked.out)})
        return
    print(site)
    index = Path(asked.out) / "index.html"
    note(f"written to {asked.out}; open {index}, then knownminds import FILE.json --out trials.csv")


command(Simulate, _simulate)
command(AskImport, _import)
command(AskExport, _export)
command(AskFit, _fit)
command(AskScore, _score)
command(Page, _page)
