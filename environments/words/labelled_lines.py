"""Answers on labelled lines: one value behind each of several labels, such as a distribution."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .answer import Answer, Outcome, _told, _unreadable, parse_label, parse_number
from .final_answers import without_thoughts

ROUNDING = 0.005  # largest rounding error of a number with two decimals
_EXACT = 1e-9
_MARKS = r"[\s*_`>#\-]*"


def read_lines(
    text: str, labels: Sequence[str], alone: bool = True
) -> tuple[list[str], list[str]] | Answer:
    """Return what stands behind each label, and what was repaired to find it.

    Each label must open exactly one line, before a colon. Capitals, signs of markup and another
    order are repaired. If `alone`, no other lines may stand there; otherwise other lines may come
    before, and some that come after are repaired, as are thoughts in a block of their own. A label
    that is missing, or that opens two lines, is malformed.
    """
    if not text.strip():
        return Answer(Outcome.EMPTY, text=text, note="no text")
    notes: list[str] = []
    said = without_thoughts(text, notes)
    lines = [line for line in said.splitlines() if line.strip()]
    positions: dict[str, int] = {}
    values: dict[str, str] = {}
    for label in labels:
        pattern = re.compile(rf"{_MARKS}{re.escape(label)}[*_`]*\s*:[*_`]*(.*)", re.IGNORECASE)
        at = [(i, match) for i, line in enumerate(lines) if (match := pattern.fullmatch(line))]
        if not at:
            return _unreadable(text, f'no line begins with "{label}:"', said)
        if len(at) > 1:
            note = f'{len(at)} lines begin with "{label}:"'
            return Answer(Outcome.MALFORMED, text=text, note=note)
        positions[label], values[label] = at[0][0], at[0][1][1].strip()
        if not lines[at[0][0]].startswith(f"{label}:"):
            notes.append("signs around the answer or letter case")
    places = [positions[label] for label in labels]
    others = set(range(len(lines))) - set(places)
    if alone and others:
        return _unreadable(text, f"expected the lines {', '.join(labels)} and no others")
    if any(i > min(places) for i in others):
        notes.append("text after the answer")
    if places != sorted(places):
        notes.append("another order of lines")
    return [values[label] for label in labels], notes


def parse_distribution(text: str, labels: Sequence[str], wanted: str, alone: bool = True) -> Answer:
    """Read probabilities after labels, which must sum to 1; the response is that of `wanted`.

    Lines are read by the rules of `read_lines`, and numbers by those of `parse_number`. A sum that
    differs from 1 by at most .005 for each label, as after rounding to two decimals, is repaired:
    the response stays as it was given, and the note says the sum. A larger difference is malformed.
    """
    lines = read_lines(text, labels, alone)
    if isinstance(lines, Answer):
        return lines
    values, notes = lines
    shares = []
    for label, value in zip(labels, values, strict=True):
        answer = parse_number(value, 0.0, 1.0)
        if answer.response is None:
            note = f"{label}: {answer.note}"
            outcome = Outcome.MALFORMED if answer.outcome is Outcome.EMPTY else answer.outcome
            return replace(answer, outcome=outcome, text=text, note=note)
        notes += [answer.note] if answer.note else []
        shares.append(answer.response)
    total = sum(shares)
    if abs(total - 1.0) > ROUNDING * len(labels) + _EXACT:
        note = f"probabilities sum to {total:g}, not to 1"
        return Answer(Outcome.MALFORMED, text=text, note=note)
    if abs(total - 1.0) > _EXACT:
        notes.append(f"probabilities sum to {total:g}")
    outcome = Outcome.REPAIRED if notes else Outcome.OK
    response = shares[list(labels).index(wanted)]
    return Answer(outcome, response=response, text=text, note=_told(notes))


def parse_words(
    text: str, labels: Sequence[str], words: Sequence[str], alone: bool = True
) -> tuple[list[int], Answer] | Answer:
    """Read one of `words` behind each label: their positions, and an answer without an action."""
    lines = read_lines(text, labels, alone)
    if isinstance(lines, Answer):
        return lines
    values, notes = lines
    chosen = []
    for label, value in zip(labels, values, strict=True):
        answer = parse_label(value, words)
        if answer.action is None:
            note = f"{label}: {answer.note}"
            outcome = Outcome.MALFORMED if answer.outcome is Outcome.EMPTY else answer.outcome
            return replace(answer, outcome=outcome, text=text, note=note)
        notes += [answer.note] if answer.note else []
        chosen.append(answer.action)
    outcome = Outcome.REPAIRED if notes else Outcome.OK
    return chosen, Answer(outcome, text=text, note=_told(notes))
