"""Transcripts on the page of a run: what was asked, what was answered, and how that was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from knownminds.environments import ANSWERED, Message, Outcome, Prompt
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.run_result import Run
from knownminds.llm_adapters.runs.transcript import Exchange, exchanges
from knownminds.validation.pages.page import Turn, counted

WHOLE = 120  # questions that are shown of whole sessions, the first of all
STRANGE = 60  # questions that are shown besides, as their answers were repaired or not read
LETTERS = 4000  # of a message or an answer
PICTURE = "(a picture)"


def transcripts(run: Run) -> tuple[list[Turn], list[str]]:
    """Return questions and answers of a run, and a sentence on which of all these are."""
    frame = pd.DataFrame() if run.trials is None else run.trials.frame
    turns: list[Turn] = []
    whole = strange = asked = 0
    with Ledger.read(run.folder) as ledger:
        for session in _sessions(ledger):
            own = frame[frame["subject"] == str(session)] if len(frame) else frame
            lived = _lived(exchanges(ledger, session), own.to_dict("records"))
            first = whole < WHOLE
            before: Prompt | None = None
            for exchange, trials in lived:
                asked += 1
                odd = exchange.outcome != Outcome.OK.value
                if first or (odd and strange < STRANGE):
                    turns.append(_turn(exchange, trials, before))
                    whole, strange = whole + first, strange + (not first)
                before = exchange.prompt
    if not turns:
        return [], []
    shown = f"{len(turns):,} of {counted(asked, 'question')} are shown"
    if len(turns) < asked:
        shown += (
            f": those of the first sessions, and up to {STRANGE} of the others whose answers were "
            "repaired or not read"
        )
    return turns, [f"{shown}.", "Of a conversation, only what is new is shown."]


def _sessions(ledger: Ledger) -> list[int]:
    return ledger.asked_sessions()


def _lived(
    exchanges: Iterator[Exchange], trials: list[dict[Any, Any]]
) -> Iterator[tuple[Exchange, list[dict[Any, Any]]]]:
    """Give each question of a session the trials that its answer is of.

    A trial bears the hash of its last question. Trials that share an answer share the question.
    """
    every = list(exchanges)
    at = 0
    for k, exchange in enumerate(every):
        name = exchange.prompt.hash
        own: list[dict[Any, Any]] = []
        if at < len(trials) and trials[at]["prompt_hash"] == name:
            own.append(trials[at])
            at += 1
            again = k + 1 < len(every) and every[k + 1].prompt.hash == name
            while not again and at < len(trials) and trials[at]["prompt_hash"] == name:
                own.append(trials[at])
                at += 1
        yield exchange, own


def _turn(exchange: Exchange, trials: list[dict[Any, Any]], before: Prompt | None) -> Turn:
    session = str(exchange.session)
    numbers = " and ".join(str(int(trial["trial"]) + 1) for trial in trials)
    name = f"trial {numbers}" if numbers else f"question {exchange.turn + 1}"
    return Turn(
        session,
        f"Session {session}, {name}",
        anchor(session, exchange.turn),
        [(message.role, _shown(message)) for message in exchange.new_since(before)],
        [shortened(text) for text in exchange.answers],
        _read(exchange, trials),
        "" if exchange.outcome in ANSWERED else "bad",
    )


def anchor(session: str, turn: int) -> str:
    """Return where the page has a question."""
    return f"session-{session}-question-{turn + 1}"


def _shown(message: Message) -> str:
    return "\n".join([PICTURE] * len(message.images) + [shortened(message.content)])


def shortened(text: str) -> str:
    """Return a text of so many letters at most, without its middle."""
    if len(text) <= LETTERS:
        return text
    half = LETTERS // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} letters …]\n{text[-half:]}"


def _read(exchange: Exchange, trials: list[dict[Any, Any]]) -> str:
    """Say how an answer was read."""
    if not exchange.answers:
        return f"No answer: {exchange.why or exchange.outcome or 'under way'}"
    kinds = [str(trial["outcome"]) for trial in trials] or [exchange.outcome or "not judged"]
    told = [", ".join(dict.fromkeys(kinds)), "; ".join(filter(None, map(_of_trial, trials)))]
    return ": ".join(filter(None, told))


def _of_trial(trial: Mapping[Any, Any]) -> str:
    """Say what was taken from an answer: action, number and reward, and why."""
    told = []
    note = trial.get("note")
    if isinstance(note, str) and note:
        told.append(note)
    for name in ("action", "response", "reward"):
        value = trial.get(name)
        if value is not None and not pd.isna(value):
            told.append(f"{name} {float(value):g}")
    return ", ".join(told)
