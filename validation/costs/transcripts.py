"""Transcripts of a run: what was asked, what was answered, and how that was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import pandas as pd

from knownminds.environments import Message, Outcome, Prompt
from knownminds.llm_adapters.runs.ledger import Attempt, Ledger
from knownminds.llm_adapters.runs.run_result import Run
from knownminds.validation.engine.result import Part

WHOLE = 120  # questions that are shown of whole sessions, the first of all
STRANGE = 60  # questions that are shown besides, as their answers were repaired or not read
LETTERS = 4000  # of a message or an answer
PICTURE = "(a picture)"

Trial = dict[Any, Any]


def transcripts(run: Run) -> list[Part]:
    """Return questions and answers of the first sessions, and of those that were not plain."""
    frame = pd.DataFrame(columns=["subject"]) if run.trials is None else run.trials.frame
    first: list[dict[str, Any]] = []
    strange: list[dict[str, Any]] = []
    questions = 0
    with Ledger.read(run.folder) as ledger:
        for session in ledger.asked_sessions():
            trials = frame[frame["subject"] == str(session)].to_dict("records")
            whole = len(first) < WHOLE
            for row in _exchanges(ledger, session, trials):
                questions += 1
                if whole:
                    first.append(row)
                if row["outcome"] not in ("", Outcome.OK.value) and len(strange) < STRANGE:
                    strange.append(row)
    if not questions:
        return []
    note = "Of a conversation, only what is new is shown."
    tables = {
        "Answers that were repaired or not read": pd.DataFrame(strange),
        "The first sessions": pd.DataFrame(first),
    }
    text = f"{len(first):,} of {questions:,} questions are shown whole. {note}"
    return [
        Part("questions", "Questions and answers", text, pd.DataFrame([*strange, *first]), tables)
    ]


def _exchanges(ledger: Ledger, session: int, trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    """Go through the questions of a session; each with the trials that its answer is of.

    A trial bears the hash of its last question. Trials that share an answer share the question.
    """
    questions = []
    for turn, attempts in ledger.questions(session).items():
        request = attempts[-1].request
        tries = [attempt for attempt in attempts if attempt.request == request]
        questions.append((turn, ledger.request(request)[0], tries))
    left = list(trials)
    before: Prompt | None = None
    for k, (turn, prompt, tries) in enumerate(questions):
        n_alike = _n_of(prompt, left)
        again = k + 1 < len(questions) and questions[k + 1][1].hash == prompt.hash
        alike = left[: min(n_alike, 1) if again else n_alike]
        left = left[len(alike) :]
        last = tries[-1]
        numbers = " and ".join(str(int(trial["trial"]) + 1) for trial in alike)
        yield {
            "session": session,
            "trial": numbers or f"question {turn + 1}",
            "shown": "\n".join(_shown(message) for message in _new(prompt, before)),
            "answer": "\n".join(_cut(one.reply.text) for one in tries if one.reply is not None),
            "outcome": str(alike[-1]["outcome"]) if alike else "",
            "read": _read(last, alike),
        }
        before = prompt


def _n_of(prompt: Prompt, trials: Sequence[Trial]) -> int:
    """Return how many of the first trials bear this prompt's hash."""
    others = (k for k, trial in enumerate(trials) if trial["prompt_hash"] != prompt.hash)
    return next(others, len(trials))


def _new(prompt: Prompt, before: Prompt | None) -> Sequence[Message]:
    """Return the messages that the question before did not show.

    Where the answers to it are part of the conversation, these are new, too.
    """
    if before is None:
        return prompt.messages
    pairs = zip(before.messages, prompt.messages, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return prompt.messages[same:] or prompt.messages[-1:]


def _shown(message: Message) -> str:
    return "\n".join([f"{message.role}:", *[PICTURE] * len(message.images), _cut(message.content)])


def _cut(text: str) -> str:
    """Return a text of so many letters at most, without its middle."""
    if len(text) <= LETTERS:
        return text
    half = LETTERS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} letters …]\n{text[-half:]}"


def _read(last: Attempt, trials: Sequence[Trial]) -> str:
    """Say how an answer was read."""
    if last.reply is None:
        return f"no answer: {last.note or 'under way'}"
    kinds = [str(trial["outcome"]) for trial in trials] or ["part of an answer"]
    parts = [", ".join(dict.fromkeys(kinds)), "; ".join(filter(None, map(_of_trial, trials)))]
    return ": ".join(filter(None, parts))


def _of_trial(trial: Mapping[Any, Any]) -> str:
    """Say what was taken from an answer: action, number and reward, and why."""
    parts = []
    note = trial.get("note")
    if isinstance(note, str) and note:
        parts.append(note)
    for name in ("action", "response", "reward"):
        value = trial.get(name)
        if value is not None and not pd.isna(value):
            parts.append(f"{name} {float(value):g}")
    return ", ".join(parts)
