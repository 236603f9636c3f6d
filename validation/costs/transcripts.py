"""Transcripts of a run: what was shown, what was answered, and how that was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import pandas as pd

from knownminds.environments import Message, Outcome, Prompt
from knownminds.llm_adapters.runs.ledger import Ledger, asked_of, request_hash
from knownminds.llm_adapters.runs.participant import settings_of
from knownminds.llm_adapters.runs.run_result import Run
from knownminds.validation.engine.parts import Part

WHOLE = 120  # trials that are shown of whole sessions, the first of all
STRANGE = 60  # trials that are shown besides, as their answers were repaired or not read
LETTERS = 4000  # of a message or an answer
PICTURE = "(a picture)"


def transcripts(run: Run) -> list[Part]:
    """Return questions and answers of the first sessions, and of those that were not plain."""
    if run.trials is None:
        return []
    frame = run.trials.frame
    plain = frame["outcome"] == Outcome.OK.value
    sizes = frame.groupby("session", sort=False).size().cumsum().shift(fill_value=0)
    first = frame["session"].map(sizes) < WHOLE
    strange = ~plain & (~plain).cumsum().le(STRANGE)
    with Ledger.read(run.folder) as ledger:
        shown = _exchanges(ledger, run, frame[first | strange])
    note = "Of a conversation, only what is new is shown."
    text = f"{int(first.sum()):,} of {len(frame):,} trials are shown whole. {note}"
    tables = {
        "Answers that were repaired or not read": shown[strange[shown.index]],
        "The first sessions": shown[first[shown.index]],
    }
    return [Part("questions", "Questions and answers", text, shown, tables)]


def _exchanges(ledger: Ledger, run: Run, frame: pd.DataFrame) -> pd.DataFrame:
    """Return what was shown and answered on each trial; trials that share a reply share a row."""
    rows: dict[Any, dict[str, Any]] = {}
    before: Prompt | None = None
    session, name, index = "", "", None
    for at, trial in zip(frame.index, frame.to_dict("records"), strict=True):
        number = int(trial["trial"]) + 1
        same = (trial["session"], trial["prompt_hash"]) == (session, name)
        if same and pd.isna(trial["input_tokens"]):
            rows[index]["trial"] += f" and {number}"
            rows[index]["read"] += f"; {_read(trial)}"
            continue
        before = before if trial["session"] == session else None
        session, name, index = trial["session"], trial["prompt_hash"], at
        settings = settings_of(run.configuration, int(session))
        request = request_hash(asked_of(run.configuration, settings), name)
        prompt = ledger.request(request)[0]
        rows[at] = {
            "session": session,
            "trial": str(number),
            "shown": "\n".join(map(shown_message, new_messages(prompt, before))),
            "answer": _cut("" if pd.isna(trial["raw_text"]) else trial["raw_text"]),
            "outcome": trial["outcome"],
            "read": _read(trial),
        }
        before = prompt
    return pd.DataFrame.from_dict(rows, orient="index")


def new_messages(prompt: Prompt, before: Prompt | None) -> Sequence[Message]:
    """Return the messages that the question before did not show.

    Where the answers to it are part of the conversation, these are new, too.
    """
    pairs = zip(before.messages if before else (), prompt.messages, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return prompt.messages[same:] or prompt.messages[-1:]


def shown_message(message: Message) -> str:
    """Return who says what, and where pictures are."""
    return "\n".join([f"{message.role}:", *[PICTURE] * len(message.images), _cut(message.content)])


def _cut(text: str) -> str:
    """Return a text of so many letters at most, without its middle."""
    if len(text) <= LETTERS:
        return text
    half = LETTERS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} letters …]\n{text[-half:]}"


def _read(trial: Mapping[Any, Any]) -> str:
    """Say how an answer was read: the outcome, why, and action, number and reward."""
    parts = [str(trial["outcome"]), str(trial.get("note") or "")]
    for name in ("action", "response", "reward"):
        value = trial.get(name)
        if value is not None and not pd.isna(value):
            parts.append(f"{name} {float(value):g}")
    return ", ".join(filter(None, parts))
