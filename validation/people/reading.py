"""Files of people's sessions: replayed by the experiment itself, and compared with it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import Environment, Outcome, Session, Trials, make, session_stream
from knownminds.environments.conditions import conditions_of
from knownminds.validation.engine.arguments import set_to
from knownminds.validation.imports.account import (
    LEFT_OUT,
    TOLD,
    Account,
    CellTable,
    Tally,
    account_of,
)
from knownminds.validation.imports.browser import json_values

from .sessions import VERSION, fingerprint

MARK = "knownminds_page"  # the key by which a file is known
PAGE = "page"
_OWN = ("outcome", "rt_s")  # what a row has that follows from no answer


def is_of_page(file: Path) -> bool:
    """Say whether a file holds sessions of a page of ours."""
    if file.suffix not in (".json", ".jsonl", ".txt") or not file.is_file():
        return False
    with file.open("rb") as opened:
        return f'"{MARK}"'.encode() in opened.read(4096)


def read_sessions(files: Sequence[Path]) -> tuple[Trials, Account]:
    """Read the JSON files that a page saves or sends: one session each, or several one by one.

    Each is simulated again with its answers; the rows of the file have to be those that come out. A
    session that was left early is played to its end without answers: its further trials count as
    missing, with the outcome "error". A question that passed unanswered is "empty". Of two files of
    a session, one of which goes on where the other ends, the longer one is taken.

    Raises
    ------
    ValueError : If a file is damaged, of another version or design, or two tell different things.
    """
    tally, sessions = Tally(), _chosen(files)
    frames = [_lived(file, content, tally) for file, content in sessions]
    names = sorted({content["environment"] for _, content in sessions})
    settings = {json.dumps(content["settings"], sort_keys=True) for _, content in sessions}
    if len(names) > 1 or len(settings) > 1:
        raise ValueError(
            "Sessions of one experiment with one set of settings go into one file; these are of "
            f"{', '.join(names)}{' with several settings' if len(names) == 1 else ''}. Import "
            "them apart."
        )
    environment = _place(sessions[0][1])
    dropped = sum(1 for _ in _all(files)) - len(sessions)
    if dropped:
        tally.add(LEFT_OUT, f"{dropped} earlier files of sessions that a later one goes on with")
    trials = Trials.from_frame(pd.concat(frames, ignore_index=True), environment=environment)
    nothing = np.zeros(0, dtype=np.int64)
    tables = [CellTable(file.stem, file.name, frames[0].iloc[:0], nothing, "") for file in files]
    return trials, account_of(PAGE, names[0], tables, tally, trials.frame)


def _all(files: Sequence[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    rule = "A file of a page is JSON, as the page saves or sends it"
    for file in files:
        try:
            for content in json_values(file.read_text(encoding="utf-8-sig")):
                yield file, _checked(file, content)
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{rule}; {file.name} is damaged ({error}).") from None


def _checked(file: Path, content: Any) -> dict[str, Any]:
    wanted = {
        MARK: int,
        "environment": str,
        "settings": dict,
        "seed": int,
        "subject": int,
        "design": str,
        "participant": str,
        "ended": bool,
        "closed": int,
        "rows": list,
    }
    wrong = [
        name
        for name, kind in wanted.items()
        if not isinstance(content, dict) or not isinstance(content.get(name), kind)
    ]
    if wrong or not all(isinstance(row, dict) for row in content["rows"]):
        what = wrong[0] if wrong else "rows"
        raise ValueError(
            f"A file of a page has {', '.join(wanted)}; in {file.name} {what!r} is missing or "
            "something else. Take the file as the page saved it."
        )
    if content[MARK] != VERSION:
        raise ValueError(
            f"{file.name} is of version {content[MARK]} of pages; this one reads {VERSION}."
        )
    return dict(content)


def _chosen(files: Sequence[Path]) -> list[tuple[Path, dict[str, Any]]]:
    """Return one file for each session, the longest of those that go on with each other."""
    kept: dict[tuple[str, str], tuple[Path, dict[str, Any]]] = {}
    for file, content in _all(files):
        key = content["design"], _name(content)
        if key in kept:
            before = kept[key]
            short, long = sorted((before, (file, content)), key=lambda one: len(one[1]["rows"]))
            if long[1]["rows"][: len(short[1]["rows"])] != short[1]["rows"]:
                raise ValueError(
                    f"{before[0].name} and {file.name} tell different things of subject "
                    f"{_name(content)}. Give each person another name (?participant=NAME), or "
                    "leave one of them out."
                )
            kept[key] = long
        else:
            kept[key] = file, content
    if not kept:
        raise ValueError("There must be at least one session to read; got none.")
    names = [_name(content) for _, content in kept.values()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"A name belongs to one session; {twice[0]} is that of several. Give each person "
            "another name (?participant=NAME)."
        )
    return list(kept.values())


def _place(content: Mapping[str, Any]) -> Environment:
    return set_to(make(content["environment"]), content["settings"])


def _name(content: Mapping[str, Any]) -> str:
    return str(content["participant"] or content["subject"])


def _lived(file: Path, content: Mapping[str, Any], tally: Tally) -> pd.DataFrame:
    """Live a session with the answers of a file, and return its rows."""
    environment = _place(content)
    try:
        design = environment.draw(session_stream(content["seed"], content["subject"]))
    except ValueError as error:
        raise ValueError(f"{file.name} is of no session ({error})") from None
    expected = fingerprint(environment, content["seed"], content["subject"], design)
    if expected != content["design"]:
        raise ValueError(
            f"{file.name} is of another design than {environment.name} has now at seed "
            f"{content['seed']}, subject {content['subject']}. Read it with the version of "
            "knownminds that wrote the page."
        )
    session, given = Session(environment, design), iter(content["rows"])
    rows: list[dict[str, Any]] = []
    for _ in session:
        given_trial = next(given, None)
        parts = (
            [] if given_trial is None else [given_trial.get("action"), given_trial.get("response")]
        )
        parts = [part for part in parts if part is not None]
        try:
            session.take(tuple(parts) if len(parts) == 2 else next(iter(parts), None))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file.name} has an answer that is none: {error}") from None
        row = session.rows[-1]
        if given_trial is None:
            rows.append({**row, "outcome": Outcome.ERROR.value, "rt_s": None})
            continue
        _compare(file, row, given_trial)
        outcome = Outcome.OK if parts else Outcome.EMPTY
        rows.append({**row, "outcome": outcome.value, "rt_s": given_trial.get("rt_s")})
    left = len(rows) - len(content["rows"])
    tally.rows += len(content["rows"])
    name = _name(content)
    if next(given, None) is not None:
        raise ValueError(f"{file.name} has more rows than its session has trials.")
    if left > 0:
        tally.add(
            TOLD,
            f"subject {name} left after {len(content['rows'])} questions: the {left} further "
            "trials count as missing (error)",
        )
    if content["closed"]:
        tally.add(TOLD, f"subject {name} closed the page {content['closed']} times and came back")
    frame = pd.DataFrame(rows)
    if frame["rt_s"].isna().all():
        frame = frame.drop(columns="rt_s")
    told = {"labels": json.dumps(design.labels), "page_subject": content["subject"]}
    return frame.assign(subject=name, **told, **conditions_of(environment))


def _compare(file: Path, played: Mapping[str, Any], recorded: Mapping[str, Any]) -> None:
    """Raise ValueError unless a row of a file is the one that its answers bring."""
    for name, value in recorded.items():
        if name in _OWN:
            continue
        other = played.get(name)
        gone = value is None and (other is None or math.isnan(other))
        if not gone and value != other:
            raise ValueError(
                f"Rows of a page follow from its answers; on trial {played['trial']} {file.name} "
                f"has {name} {value} where the session has {other}. Take the file as the page "
                "saved it."
            )
