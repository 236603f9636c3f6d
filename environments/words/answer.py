"""What became of an answer in words: the response it holds, or the reason it holds none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

import numpy as np

from .final_answers import MARKER, final_answers, unwrapped, without_thoughts

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
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
_PERCENT = re.compile(rf"({_NUMBER.pattern})\s?\\?%")
# These characters make a text longer that ends with a letter (False) or a digit (True).
_LONGER = {False: re.compile(r"\w|['’][^\W\d]|-\w"), True: re.compile(r"\w|[.,:/]\d|-\w")}
_JOINING = (".", ",", ":", "/", "'", "’", "-")
_DECLINED = (
    "help|assist|answer|choose|pick|decide|play|gamble|take part|participate|comply|engage|provide"
    "|give|make|say|estimate|respond"
)
_REFUSAL = re.compile(
    rf"\b(?:can(?:no|['’])t|can not|won['’]t|will not|(?:am|['’]m) (?:unable|not able) to"
    rf"|refuse to) (?:\w+ ){{0,2}}?(?:{_DECLINED})\b"
    r"|\b(?:must|have to|respectfully) decline\b|\bas an ai\b|\bi refuse\b",
    re.IGNORECASE,
)
_SIGNED = "signs around the answer"

# Takes what must be the answer, notes repairs, and returns what it says, or None and the reason.
Reads = Callable[[str, list[str]], tuple[Any, str]]


def parse_label(
    text: str,
    labels: Sequence[str],
    marked: bool = False,
    noun: str = "",
    marker: str = MARKER,
    texts: Sequence[str] = (),
) -> Answer:
    """Read which of `labels` the text names; the action is its position.

    `ok` is the label alone, or, if `marked`, a last line ``Answer: LABEL``, with `marker` in place
    of "Answer:". Only the following is repaired, and noted: quotes, brackets, punctuation, and
    signs of Markdown, HTML and LaTeX around the label; the `noun`, "option" or the marker before
    it; letter case; text after the answer; and an announcement other than the marker
    (`final_answers`). If `texts` says what was shown with each label, the label with its own text
    is repaired, as in "A) 0.25"; with the text of another label it is malformed. A sentence that
    mentions a label is malformed, and so are two labels: choosing would be a guess.
    """
    behind = dict(zip(labels, texts, strict=True)) if texts else {}

    def reads(said: str, notes: list[str]) -> tuple[int | None, str]:
        if said not in labels:
            said = _bare(_unwrapped(said, notes), notes)
            for word in (MARKER[:-1], noun, "option"):
                opening = re.match(rf"{re.escape(word)}\b[\s*_:]*(?=\S)", said, re.IGNORECASE)
                if word and opening and said not in labels:
                    said = _bare(said[opening.end() :], notes)
                    notes.append(f'"{word}" before the answer')
            said = _bare(_unwrapped(said, notes), notes)
            for label, shown in behind.items():
                if re.fullmatch(rf"{re.escape(label)}[).:\]][\s*_]*{re.escape(shown)}", said):
                    said = label
                    notes.append("the option's text behind its label")
            alike = [label for label in labels if label.casefold() == said.casefold()]
            if said not in labels and len(alike) == 1:
                said = alike[0]
                notes.append("letter case")
            if said not in labels:
                return None, f"expected one of {', '.join(labels)}"
        return labels.index(said), ""

    final = read_final(text, marked, marker, reads)
    return final if isinstance(final, Answer) else made(text, final[1], action=final[0])


def parse_number(
    text: str, low: float, high: float, marked: bool = False, marker: str = MARKER
) -> Answer:
    """Read one number from `low` to `high`, both included; the response is its value.

    `ok` is the number alone in decimal notation, or, if `marked`, a last line ``Answer: NUMBER``.
    The repairs are those of `parse_label`, and one more: a percent sign after the number, where it
    can mean only one thing. On a scale from 0 to 100 the number stays. On a scale from 0 to 1 it is
    divided by 100, unless it is below 1%, since it may then be meant as a share. Other units and
    thousands separators are malformed. So are "<", ">" and "~" unless they are pairs around the
    number, since they mean another number, and a comma before it, which may be a decimal comma.
    """

    def reads(said: str, notes: list[str]) -> tuple[float | None, str]:
        scale, number = 1, said
        if not _NUMBER.fullmatch(number):
            bare = _unwrapped(re.sub(rf"^{MARKER}", "", said, flags=re.IGNORECASE), notes)
            number = bare.lstrip(_SIGNS.replace(".", "")).rstrip(_SIGNS)
            if not enclosed(*bare.split(number, 1) if number else (bare, "")):
                return None, "expected one number"
            percent = _PERCENT.fullmatch(number)
            if percent and (low, high) in ((0.0, 1.0), (0.0, 100.0)):
                number, scale = percent[1], 100 if high == 1.0 else 1
                notes.append("percent sign")
                if scale == 100 and 0.0 < abs(float(number)) < 1.0:
                    return None, "expected a number from 0 to 1, or a percentage from 1% on"
            notes.append(_SIGNED)
        if not _NUMBER.fullmatch(number):
            return None, "expected one number"
        value = float(Decimal(number) / scale)
        if not low <= value <= high:
            return None, f"expected a number from {low:g} to {high:g}"
        return value, ""

    final = read_final(text, marked, marker, reads)
    return final if isinstance(final, Answer) else made(text, final[1], response=final[0])


def parse_beginning(text: str, labels: Sequence[str], cut: bool = False) -> Answer:
    """Read which of `labels` a text begins with, however it goes on; the action is its position.

    This reads the completion of a text that broke off. The label counts if what follows does not
    make its last word or number longer: 1 does not begin "12", "1.5" or "1st". `ok` is a label at
    the very beginning or after one space; further blanks before it are repaired. A text that was
    `cut` off before it is certain which label it begins with is truncated.
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


def read_final(
    text: str, marked: bool, marker: str, reads: Reads
) -> Answer | tuple[Any, list[str]]:
    """Return what the last announced answer says, and what was repaired.

    If no announcement is required, the whole text is tried first. `reads` gets the candidate answer
    and a list for notes; it returns what the answer says, or None and the reason.
    """
    if not text.strip():
        return Answer(Outcome.EMPTY, text=text, note="no text")
    before: list[str] = []
    said = without_thoughts(text, before)
    if not said:
        return Answer(Outcome.MALFORMED, text=text, note="thoughts and no answer")
    why = f'no line begins with "{marker}"'
    if not marked:
        notes = [*before]
        value, why = reads(said, notes)
        if value is not None:
            return value, notes
    finals = final_answers(said, marker)
    if not finals:
        return _unreadable(text, why, said)
    last = finals[-1]
    together = {reads(final.said, [])[0] for final in finals if final.line == last.line}
    if len(together) > 1:
        return Answer(Outcome.MALFORMED, text=text, note="several answers in one line")
    notes = [*before, *last.notes, *([] if marked else ["words around the answer"])]
    value, why = reads(last.said, notes)
    return _unreadable(text, why, said) if value is None else (value, notes)


def made(
    text: str, notes: list[str], *, action: int | None = None, response: float | None = None
) -> Answer:
    """Return an answer that could be read."""
    outcome = Outcome.REPAIRED if notes else Outcome.OK
    return Answer(outcome, action, response, text, _told(notes))


def enclosed(before: str, after: str) -> bool:
    """Say whether signs around a number leave its meaning as it is: no bound, no rough number."""
    return (
        not set(before) & set(">,")
        and "<" not in after
        and before.count("<") == after.count(">")
        and before.count("~") == after.count("~")
    )


def _bare(said: str, notes: list[str]) -> str:
    bare = said.strip(_SIGNS)
    if bare != said:
        notes.append(_SIGNED)
    return bare


def _unwrapped(said: str, notes: list[str]) -> str:
    """Return what stands within fences, commands of LaTeX, pairs of dollars and tags of HTML."""
    bare = unwrapped(said)
    if bare != said:
        notes.append(_SIGNED)
    return bare


def _told(notes: list[str]) -> str:
    return "; ".join(dict.fromkeys(notes))


def _unreadable(text: str, note: str, said: str | None = None) -> Answer:
    refused = _REFUSAL.search(text if said is None else said)
    return Answer(Outcome.REFUSED if refused else Outcome.MALFORMED, text=text, note=note)


def decimal(number: float) -> str:
    """Return a number as text that reads back as the same number."""
    return np.format_float_positional(float(number), trim="-")
