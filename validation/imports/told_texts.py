"""Sessions as texts, one participant a line, as tables: answers stand between << and >>.

In the corpus Psych-101 (Binz et al. 2025) each experiment has words of its own, so that a pattern
says where stimuli, answers and rewards stand. Options have letters that are drawn anew for each
participant, and a second pattern finds their order in the instructions.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments.formats.psych_101 import answers_in

from .account import DERIVED, LEFT_OUT, TOLD, UNREADABLE, CellTable, Tally
from .tables import GAPS, stem_of, unpacked

_RULE = "A line of texts is an object of JSON with text, experiment and participant"
_GROUPS = "(?P<action>...)"


def read_texts(path: Path, pattern: str, names: str, tally: Tally) -> CellTable:
    """Read sessions that are texts; each match of a pattern is a row.

    Parameters
    ----------
    path : JSON Lines with text, experiment and participant.
    pattern : A regular expression of a trial with its answer between << and >>; its named groups
        are the columns. It has to match once for every answer of a text.
    names : A regular expression whose groups are the names of the options, in their order, as the
        instructions tell them; "" if answers are kept as they stand. With it the group `action` is
        the position of its name, from 0.
    tally : Counts lines, and answers that name no option.

    Raises
    ------
    ValueError : If a pattern is none, or a line cannot be read; the line is named.
    """
    trial, named = _compiled("trial text", pattern), _compiled("option names", names)
    if "action" not in trial.groupindex and "response" not in trial.groupindex:
        raise ValueError(
            "The pattern of a trial names its answer, and other columns, by groups such as "
            f"{_GROUPS} or (?P<response>...); {pattern!r} has neither. Name the group."
        )
    if names and not named.groups:
        raise ValueError(f"The names of options are groups, in their order; {names!r} has none.")
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    sessions: dict[str, int] = {}
    seen: dict[tuple[str, str, str], int] = {}
    strange = 0
    where = ""
    for number, record in _records(path):
        text, person = record["text"], str(record["participant"])
        matches = list(trial.finditer(text))
        first = seen.setdefault((person, str(record["experiment"]), text), number)
        if first < number:
            what = "trials of a line that is an exact copy"
            tally.add(LEFT_OUT, what, len(matches), f"line {number} is line {first}")
            tally.rows += len(matches)
            continue
        try:
            answers = answers_in(text)
        except ValueError as error:
            raise ValueError(f"Line {number} of {path.name} cannot be read: {error}") from None
        fitted = [at for at, _ in answers if any(m.start() <= at < m.end() for m in matches)]
        if not len(matches) == len(answers) == len(fitted):
            raise ValueError(
                f"A pattern fits each answer of a text once; line {number} of {path.name} has "
                f"{len(answers)} answers between << and >>; the pattern fits {len(matches)} times, "
                f"and {len(fitted)} answers. Widen or narrow the pattern, or leave the line out."
            )
        options = _options(named, names, text, f"line {number} of {path.name}")
        session = sessions[person] = sessions.get(person, -1) + 1
        for index, match in enumerate(matches):
            row = {"subject": person, "session": str(session), "trial": str(index),
                   "experiment": str(record["experiment"]), **match.groupdict()}  # fmt: skip
            if options and row.get("action") is not None:
                answer = str(row["action"]).strip()
                row |= {"letters": " ".join(options)}
                row["action"] = str(options.index(answer)) if answer in options else None
                if answer not in options:
                    row["raw_text"] = answer
                    strange += 1
                    where = where or f"line {number} of {path.name} has {answer!r}"
            rows.append(row)
            lines.append(number)
    if not rows:
        raise ValueError(f"Texts tell at least one trial; {path.name} tells none.")
    tally.rows += len(rows)
    people = len(sessions)
    tally.add(TOLD, f"{people} participants in words; each answer is a row")
    if names:
        tally.add(DERIVED, "actions, from the order of the options' names in each text", len(rows))
    if strange:
        tally.add(UNREADABLE, "an answer that names no option", strange, where)
    cells = pd.DataFrame(rows).astype("object")
    cells = cells.where(cells.notna() & ~cells.isin(GAPS))
    return CellTable(stem_of(path), path.name, cells, np.array(lines, dtype=np.int64), "")


def _compiled(option: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise ValueError(
            f"{option!r} takes a regular expression; {pattern!r} is none ({error})."
        ) from None


def _options(named: re.Pattern[str], names: str, text: str, where: str) -> tuple[str, ...]:
    if not names:
        return ()
    match = named.search(text)
    if match is None:
        raise ValueError(
            f"Every text tells the names of its options; {where} has none that 'option names' "
            "fits. Widen it, or leave the line out."
        )
    options = tuple(map(str, match.groups()))
    if len(set(options)) < len(options):
        raise ValueError(f"Each option needs another name; {where} has {', '.join(options)}.")
    return options


def _records(path: Path) -> list[tuple[int, dict[str, Any]]]:
    try:
        text = unpacked(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{_RULE}; {path.name} cannot be read ({error}).") from None
    records = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            record = None
        lacking = not isinstance(record, dict) or [
            name for name in ("text", "experiment", "participant") if name not in record
        ]
        if lacking or not isinstance(record["text"], str):
            raise ValueError(f"{_RULE}; line {number} of {path.name} is none. Leave it out.")
        records.append((number, record))
    return records
