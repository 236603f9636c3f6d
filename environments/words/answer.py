"""What became of an answer in words: the response it holds, or the reason it holds none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

MARKER = "Answer:"  # opens the last line of an answer that may reason first
CUT_OFF = "cut off at the limit of tokens"


class Outcome(StrEnum):
    """What became of an answer; only `ok` and `repaired` carry a response.

    `ok`: exactly the asked format. `repaired`: a documented repair made it so. `malformed`: not
    readable. `refused`: the participant declined. `empty`: no text. `truncated`: cut off at the
    token limit. `error`: no text arrived.
    """

    OK = "ok"
    REPAIRED = "repaired"
    MALFORMED = "malformed"
    REFUSED = "refused"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    ERROR = "error"


ANSWERED = (Outcome.OK.value, Outcome.REPAIRED.value)  # all others hold no response


@dataclass(frozen=True)
class Answer:
    """A parsed answer.

    Parameters
    ----------
    outcome : what became of it
    action : the chosen action, or None
    response : the stated number, or None
    text : the answer as it came
    note : which repair was made, or why nothing could be read
    """

    outcome: Outcome
    action: int | None = None
    response: float | None = None
    text: str = ""
    note: str = ""

    @property
    def choice(self) -> int | float | tuple[int, float] | None:
        """What was given: the action, the number, both, or None."""
        if self.action is not None and self.response is not None:
            return self.action, self.response
        return self.response if self.action is None else self.action


_SIGNS = " \t*_`~\"'“”‘’„«»()[]{}<>.,;:!"
_MARKED = re.compile(rf"[\s*_#>`]*{MARKER[:-1]}[*_`]*:", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
# What makes a text longer that ends with a letter (False) or a digit (True).
_LONGER = {
    False: re.compile(r"\w|['’][^\W\d]|-\w"),
    True: re.compile(r"\w|[.,:/]\d|-\w"),
}
_JOINING = (".", ",", ":", "/", "'", "’", "-")
_DECLINED = "help|assist|answer|choose|pick|decide|play|gamble|take part|participate|comply|engage"
_REFUSAL = re.compile(
    rf"\b(?:can(?:no|['’])t|can not|won['’]t|will not|(?:am|['’]m) (?:unable|not able) to"
    rf"|refuse to) (?:\w+ ){{0,2}}?(?:{_DECLINED})\b"
    r"|\b(?:must|have to|respectfully) decline\b|\bas an ai\b|\bi refuse\b",
    re.IGNORECASE,
)


def parse_label(text: str, labels: Sequence[str], marked: bool = False, noun: str = "") -> Answer:
    """Read which of `labels` the text names; the action is its position.

    `ok` is the label alone, or, if `marked`, a last line ``Answer: LABEL``; blanks around it do
    not count. What is repaired, and noted, is no more than: quotes, brackets, punctuation and
    markdown around the label; the `noun` or the marker before it; letter case; text after the
    marked line. A sentence that mentions a label, or two labels, is malformed: choosing would be
    a guess.
    """
    found = _find(text, marked)
    if isinstance(found, Answer):
        return found
    said, notes = found
    if said not in labels:
        for word in (MARKER[:-1], noun):
            said = _bare(said, notes)
            opening = re.match(rf"{re.escape(word)}\b[\s*_:]*(?=\S)", said, re.IGNORECASE)
            if word and opening:
                said = said[opening.end() :]
                notes.append(f'"{word}" before the answer')
        said = _bare(said, notes)
        alike = [label for label in labels if label.casefold() == said.casefold()]
        if said not in labels and len(alike) == 1:
            said = alike[0]
            notes.append("letter case")
        if said not in labels:
            return _unreadable(text, f"expected one of {', '.join(labels)}")
    outcome = Outcome.REPAIRED if notes else Outcome.OK
    return Answer(outcome, action=labels.index(said), text=text, note=_told(notes))


def parse_number(text: str, low: float, high: float, marked: bool = False) -> Answer:
    """Read one number from `low` to `high`, both included; the response is its value.

    `ok` is the number alone in decimal notation, or, if `marked`, a last line ``Answer: NUMBER``.
    The signs that `parse_label` repairs are repaired, and the marker. Percentages, units and
    thousands separators are malformed; so are "<", ">" and "~" but for pairs around the number,
    as they tell of another one, and a comma before it, which may be a decimal one.
    """
    found = _find(text, marked)
    if isinstance(found, Answer):
        return found
    said, notes = found
    if not _NUMBER.fullmatch(said):
        opening = _MARKED.match(said)
        bare = said[opening.end() if opening else 0 :]
        said = bare.lstrip(_SIGNS.replace(".", "")).rstrip(_SIGNS)
        if not enclosed(*bare.split(said, 1) if said else (bare, "")):
            return _unreadable(text, "expected one number")
        notes.append("signs around the answer")
    if not _NUMBER.fullmatch(said):
        return _unreadable(text, "expected one number")
    if not low <= float(said) <= high:
        return _unreadable(text, f"expected a number from {low:g} to {high:g}")
    outcome = Outcome.REPAIRED if notes else Outcome.OK
    return Answer(outcome, response=float(said), text=text, note=_told(notes))


def parse_beginning(text: str, labels: Sequence[str], cut: bool = False) -> Answer:
    """Read which of `labels` a text begins with, however it goes on; the action is its position.

    So is read what completes a text that broke off. The label is there if what follows does not
    make its last word or number longer: 1 begins neither "12" nor "1.5" nor "1st". `ok` is a
    label at the very beginning or behind one space; further blanks before it are repaired. A text
    that was `cut` off before it is certain which label it begins with is truncated.
    """
    said = text.lstrip()
    if not said and not cut:
        return Answer(Outcome.EMPTY, text=text, note="no text")
    if cut and any(label.startswith(said) for label in labels):
        return Answer(Outcome.TRUNCATED, text=text, note=CUT_OFF)
    for label in sorted(labels, key=len, reverse=True):
        following = said[len(label) :]
        if not said.startswith(label) or _LONGER[label[-1].isdigit()].match(following):
            continue
        if cut and following in _JOINING:
            return Answer(Outcome.TRUNCATED, text=text, note=CUT_OFF)
        note = "" if text in (said, " " + said) else "blanks before the answer"
        outcome = Outcome.REPAIRED if note else Outcome.OK
        return Answer(outcome, action=labels.index(label), text=text, note=note)
    return _unreadable(text, f"expected to begin with one of {', '.join(labels)}")


def _find(text: str, marked: bool) -> Answer | tuple[str, list[str]]:
    """Return the part of the text that must be the answer, and what was repaired to find it."""
    if not text.strip():
        return Answer(Outcome.EMPTY, text=text, note="no text")
    if not marked:
        return text.strip(), []
    lines = text.strip().splitlines()
    at = [i for i, line in enumerate(lines) if _MARKED.match(line)]
    if not at:
        return _unreadable(text, f'no line begins with "{MARKER}"')
    line = lines[at[-1]].strip()
    notes = [] if at[-1] == len(lines) - 1 else ["text after the answer"]
    if line.startswith(MARKER + " "):
        return line[len(MARKER) :].strip(), notes
    return line, [*notes, "signs around the answer"]


def enclosed(before: str, after: str) -> bool:
    """Tell whether signs around a number leave it as it is: no bound, no rough number."""
    return (
        not set(before) & set(">,")
        and "<" not in after
        and before.count("<") == after.count(">")
        and before.count("~") == after.count("~")
    )


def _bare(said: str, notes: list[str]) -> str:
    bare = said.strip(_SIGNS)
    if bare != said:
        notes.append("signs around the answer")
    return bare


def _told(notes: list[str]) -> str:
    return "; ".join(dict.fromkeys(notes))


def _unreadable(text: str, note: str) -> Answer:
    outcome = Outcome.REFUSED if _REFUSAL.search(text) else Outcome.MALFORMED
    return Answer(outcome, text=text, note=note)


def decimal(number: float) -> str:
    """Write a number so that reading it gives the same one."""
    return np.format_float_positional(float(number), trim="-")
