"""Likelihoods from 0 to 100 as answers: a number alone, or thoughts and a number in a frame."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal, get_args

from knownminds.environments.words.answer import (
    Answer,
    Outcome,
    _told,
    _unreadable,
    decimal,
    parse_number,
)
from knownminds.environments.words.final_answers import without_thoughts
from knownminds.environments.words.screen import Screen

Form = Literal["numeric", "chain_of_thought"]
FORMS: tuple[str, ...] = get_args(Form)

_THOUGHT = "I go along the links from what I learned to what I am asked."
_FRAME = re.compile(
    r"<answer>\s*<reasoning>.*</reasoning>\s*<likelihood>[^<]*</likelihood>\s*</answer>", re.DOTALL
)
_OPEN, _CLOSE = (re.compile(rf"<{s}likelihood\s*>", re.IGNORECASE) for s in ("", "/"))


def likelihood_screen(prompt: str, answer: str) -> Screen:
    """Return a prompt as people see it: without what is said of the form of an answer."""
    return Screen("", prompt.replace(answer, "").strip(), asks="response")


def parse_likelihood(text: str, form: str) -> Answer:
    """Read the number from 0 to 100 of an answer in this form."""
    if form == "chain_of_thought":
        return _parse_frame(text)
    return parse_number(text, 0.0, 100.0)


def say_likelihood(choice: Any, form: str) -> str:
    """Answer as asked."""
    number = decimal(choice)
    if form == "numeric":
        return number
    return f"<answer><reasoning>{_THOUGHT}</reasoning><likelihood>{number}</likelihood></answer>"


def _parse_frame(text: str) -> Answer:
    """Read the one likelihood in an XML frame."""
    if not text.strip():
        return Answer(Outcome.EMPTY, text=text, note="no text")
    notes: list[str] = []
    said = without_thoughts(text, notes)
    opened, closed = list(_OPEN.finditer(said)), list(_CLOSE.finditer(said))
    if not opened or not closed:
        return _unreadable(text, "expected <likelihood>NUMBER</likelihood>", said)
    if len(opened) > 1 or len(closed) > 1 or closed[0].start() < opened[0].end():
        return Answer(Outcome.MALFORMED, text=text, note="expected one <likelihood>")
    inside = said[opened[0].end() : closed[0].start()]
    answer = parse_number(inside, 0.0, 100.0)
    if answer.response is None:
        outcome = Outcome.MALFORMED if answer.outcome is Outcome.EMPTY else answer.outcome
        return replace(answer, outcome=outcome, text=text)
    notes += [answer.note] if answer.note else []
    if not _FRAME.fullmatch(said):
        notes.append("other than the frame" if not _FRAME.search(said) else "text around the frame")
    outcome = Outcome.REPAIRED if notes else Outcome.OK
    return replace(answer, outcome=outcome, text=text, note=_told(notes))
