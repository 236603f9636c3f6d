"""Sessions in the form of Psych-201: a line per participant, with reaction times; and a check.

    python -m knownminds.environments.formats.psych_201 prompts.jsonl

checks a file by the rules of Psych-201's README and of its reviews (Binz et al., the successor of
Psych-101). Its exit code is 0, or 2 with a sentence for each broken rule.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from knownminds.environments.environment import Environment
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.folders import write_text
from knownminds.environments.record.trials import Trials

from .psych_101 import CLOSE, OPEN, psych_101_records

MARKS = re.compile(f"{OPEN}|{CLOSE}")
MOST_TOKENS = 32_000  # tokens of a participant
CHARACTERS = 4  # characters per token, roughly
FASTEST = 30  # ms; a median below this is most likely in seconds
ABOUT = ("age", "nationality", "diagnosis")  # columns about participants that become fields


def psych_201_records(
    trials: Trials, environment: Environment | None = None, *, seed: int = 0
) -> list[dict[str, Any]]:
    """Return a record for each participant: text, experiment, participant and, if known, RTs.

    The text is that of Psych-101, with all sessions of a participant one after the other. RTs is a
    flat list in ms with an entry for each marked answer, None where no time was recorded. It is
    made from the column `rt_s`, which is in seconds. The columns age, nationality and diagnosis
    become fields.

    Raises
    ------
    ValueError : If a session cannot be shown as text, see `psych_101_records`, or a rule of
        Psych-201 would be broken.
    """
    records: dict[tuple[str, str], dict[str, Any]] = {}
    frame = trials.frame
    for entry in psych_101_records(trials, environment, seed=seed):
        key = entry["experiment"], entry["participant"]
        record = records.setdefault(
            key, {"text": "", "experiment": key[0], "participant": key[1], "RTs": []}
        )
        record["text"] += ("\n\n" if record["text"] else "") + entry["text"]
        rows = frame[
            (frame["subject"] == key[1]) & (frame["session"] == entry["knownminds"]["session"])
        ]
        if "environment" in rows:
            rows = rows[rows["environment"].fillna(key[0]) == key[0]]
        if "rt_s" in rows:
            record["RTs"] += [None if pd.isna(t) else round(1000 * t, 3) for t in rows["rt_s"]]
        for name in ABOUT:
            values = rows[name].dropna().unique().tolist() if name in rows else []
            if len(values) == 1:
                record[name] = values[0]
    whole = [_without_times(record) for record in records.values()]
    broken = list(problems(whole))
    if broken:
        raise ValueError(f"Psych-201 would not take these trials: {broken[0]}")
    return whole


def _without_times(record: dict[str, Any]) -> dict[str, Any]:
    """Leave out a list of times that holds no time."""
    known = any(time is not None for time in record["RTs"])
    return record if known else {k: v for k, v in record.items() if k != "RTs"}


def write_psych_201(
    trials: Trials,
    path: str | os.PathLike[str],
    environment: Environment | None = None,
    *,
    seed: int = 0,
) -> None:
    """Write a line of JSON for each participant, whole or not at all; see `psych_201_records`."""
    records = psych_201_records(trials, environment, seed=seed)
    write_text(Path(path), "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records))


def check_psych_201(path: str | os.PathLike[str]) -> list[str]:
    """Return a sentence for each rule of Psych-201 that a file of JSON lines breaks."""
    if not Path(path).is_file():
        return ["There is no such file."]
    records: list[Any] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            return [f"Line {number} is no JSON: {error}."]
    return list(problems(records))


def problems(records: Iterable[Any]) -> Iterator[str]:
    """Yield a sentence for each rule that records break; it names the line."""
    seen: dict[tuple[Any, Any], int] = {}
    number = 0
    for number, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            yield f"Line {number} is no object of JSON."
            continue
        lacking = [name for name in ("text", "experiment", "participant") if not record.get(name)
                   and record.get(name) != 0]  # fmt: skip
        if lacking:
            yield f"Line {number} lacks {' and '.join(lacking)}."
            continue
        key = record["experiment"], record["participant"]
        if key in seen:
            yield (
                f"Lines {seen[key]} and {number} are of the same participant, {key[1]!r}; each "
                "participant has one line."
            )
        seen.setdefault(key, number)
        yield from (f"Line {number}: {text}" for text in _of_text(str(record["text"])))
        if "RTs" in record:
            n = len(re.findall(OPEN, str(record["text"])))
            yield from (f"Line {number}: {text}" for text in _of_times(record["RTs"], n))
    if number == 0:
        yield "The file has no participant."


def _of_text(text: str) -> Iterator[str]:
    marks = MARKS.findall(text)
    if not marks:
        yield f"no answer is marked; each stands between {OPEN} and {CLOSE}."
    elif marks != [OPEN, CLOSE] * (len(marks) // 2):
        yield f"{OPEN} and {CLOSE} do not alternate; use them for answers alone."
    if text.lstrip().startswith(OPEN):
        yield "the text begins with an answer; it begins with the instructions."
    tokens = len(text) // CHARACTERS
    if tokens > MOST_TOKENS:
        yield f"the text has about {tokens:,} tokens; at most {MOST_TOKENS:,} are taken."


def _of_times(times: Any, marks: int) -> Iterator[str]:
    if not isinstance(times, list) or any(isinstance(time, list) for time in times):
        yield "RTs is one flat list of numbers; this one is not."
        return
    numbers = [t for t in times if isinstance(t, int | float) and not isinstance(t, bool)]
    if any(time is not None and not isinstance(time, int | float) for time in times):
        yield "an entry of RTs is no number; write null where no time was recorded."
        return
    if len(times) != marks:
        yield f"RTs has {len(times)} entries, and {marks} answers are marked; each has an entry."
    known = [time for time in numbers if time == time]
    if any(time < 0 for time in known):
        yield "a time in RTs is below 0."
    elif known and median(known) < FASTEST:
        yield f"the median of RTs is {median(known):g}; times are in milliseconds."


def main(arguments: list[str] | None = None) -> int:
    """Check files; print a sentence for each broken rule."""
    files = sys.argv[1:] if arguments is None else arguments
    broken = [f"{file}: {sentence}" for file in files for sentence in check_psych_201(file)]
    print("\n".join(broken) or f"{len(files)} files, as Psych-201 takes them")
    return 2 if broken or not files else 0


if __name__ == "__main__":
    raise SystemExit(main())
