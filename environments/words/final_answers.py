"""The final answers of a text, in all forms in which models announce them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MARKER = "Answer:"  # opens the last line of an answer that may reason first

_MOST_MARKER = 40  # characters of a marker, at most
_END = 20_000  # announcements are looked for in so many characters at the end of a text
_LAYERS = 8  # layers of signs around an answer, at most
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»\n]*:)\s*[\"”“»]")
_THOUGHTS_END = re.compile(r"</(?:think|thinking|thoughts?)>|◁/think▷|\[/THINK\]", re.IGNORECASE)
_THOUGHTS_BEGIN = re.compile(r"<(?:think|thinking|thoughts?)>|◁think▷|\[THINK\]", re.IGNORECASE)

_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_TAGGED = re.compile(r"<(answer|final_answer|final)>(.{0,200}?)</\1>", re.IGNORECASE | re.DOTALL)
_IN_JSON = re.compile(
    r"[\"'](?:final[_ ])?answer[\"']\s*:\s*(\"[^\"\n]*\"|'[^'\n]*'|[^\s,}\"']+)\s*(?=[,}])",
    re.IGNORECASE,
)
# A last line may be set off by signs: **B**, `B`, $B$, \(B\).
_SET_OFF = re.compile(
    r"\*\*[^*\n]+\*\*\.?|__[^_\n]+__\.?|`[^`\n]+`\.?|\$[^$\n]+\$\.?|\\\(.+\\\)\.?"
)
_FENCE = re.compile(r"^[^\S\n]*```\w*[^\S\n]*$", re.MULTILINE)

_WRAPPED = (
    re.compile(r"```\w*\s*\n(.*)\n\s*```", re.DOTALL),
    re.compile(r"\$\$(.*)\$\$", re.DOTALL),
    re.compile(r"\$([^$]*)\$"),
    re.compile(r"\\\((.*)\\\)", re.DOTALL),
    re.compile(r"\\\[(.*)\\\]", re.DOTALL),
    re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed|fbox)\s*\{(.*)\}", re.DOTALL),
    re.compile(r"<(b|strong|i|em|code|answer|final_answer|final)>(?P<within>.*)</\1>", re.DOTALL),
    re.compile(r"\*\*(.*)\*\*", re.DOTALL),
)


@dataclass(frozen=True)
class FinalAnswer:
    """An announced answer.

    Parameters
    ----------
    said : the text of the answer
    at : where its announcement begins
    line : the number of its line
    notes : how it differs from a last line that begins with the marker
    """

    said: str
    at: int
    line: int
    notes: tuple[str, ...] = ()


def marker_of(sentence: str) -> str | None:
    """Return the marker that a template names: a text in quotes that ends with a colon.

    None if there is no usable one: a marker has a letter, and at most 40 characters.
    """
    quotes = [quoted.strip() for quoted in _QUOTED.findall(sentence)]
    able = [m for m in quotes if any(c.isalpha() for c in m) and len(m) <= _MOST_MARKER]
    return able[-1] if able else None


def without_thoughts(text: str, notes: list[str]) -> str:
    """Return a text without blocks of thoughts; empty if such a block has no end."""
    end = max((match.end() for match in _THOUGHTS_END.finditer(text)), default=0)
    said = text[end:]  # the beginning of the thoughts may have been part of the prompt
    begun = _THOUGHTS_BEGIN.search(said)
    if begun:
        said = said[: begun.start()]
    if said != text:
        notes.append("thoughts before the answer")
    return said.strip()


def final_answers(text: str, marker: str = MARKER) -> list[FinalAnswer]:
    r"""Return the answers that a text announces, in their order; the last one counts.

    Announcements are: the marker or "answer:" at the beginning of a line or a sentence, with or
    without "final", "so", "the" and the like before it; "the answer is" in such a place; the same
    words as a heading above a line; ``\boxed{}``; an element <answer>; a field "answer" of JSON.
    If there is none of these, a last line that is set off by signs counts, such as ``**B**``. Only
    the last 20,000 characters are searched.
    """
    text = text[-_END:]
    finals = [*_in_words(text, marker)]
    finals += [
        FinalAnswer(m[1], m.start(), _line(text, m.end()), ("box",)) for m in _BOXED.finditer(text)
    ]
    finals += [
        FinalAnswer(m[2].strip(), m.start(), _line(text, m.end()), ("tags around the answer",))
        for m in _TAGGED.finditer(text)
    ]
    finals += [
        FinalAnswer(m[1].strip("\"'"), m.start(), _line(text, m.end()), ("JSON",))
        for m in _IN_JSON.finditer(text)
    ]
    finals.sort(key=lambda final: final.at)
    # An announcement within another one, as in "Answer: \boxed{B}", does not count separately.
    alone: list[FinalAnswer] = []
    for final in finals:
        if alone and _same(alone[-1], final):
            alone[-1] = final if "box" in final.notes or "JSON" in final.notes else alone[-1]
        else:
            alone.append(final)
    if not alone:
        lines = _FENCE.sub("", text).strip().splitlines()
        if lines and _SET_OFF.fullmatch(lines[-1].strip()):
            alone = [FinalAnswer(lines[-1].strip(), 0, len(lines), ("no announcement",))]
    return alone


def unwrapped(said: str) -> str:
    """Return what stands within fences, commands of LaTeX, pairs of dollars and tags of HTML."""
    for _ in range(_LAYERS):
        bare = said.strip().rstrip(".")
        for pattern in _WRAPPED:
            if inside := pattern.fullmatch(bare):
                bare = inside[inside.lastindex or 1].strip()
                break
        else:
            break
        said = bare
    return said


def _in_words(text: str, marker: str) -> Iterator[FinalAnswer]:
    heads = list(_heads(marker).finditer(text))
    end = len(text)
    for head in reversed(heads):
        line_end = text.find("\n", head.end())
        stop = min(end, line_end if line_end >= 0 else len(text))
        rest, end = text[head.end() : stop].strip(), head.start()
        notes = []
        if not rest.strip("*_`#\"'>: \t") and stop == line_end:  # a heading
            below = [line for line in text[stop:].splitlines() if line.strip("`*_ \t-")]
            rest = below[0].strip() if below else ""
            stop = text.index(rest, stop) + len(rest)
            notes.append("the answer below its announcement")
        elif text[head.start() : head.end()].strip("\n") != f"{marker} ":
            # The text before this is not a line that begins with the marker.
            same = text[head.start() : head.end()].strip() == marker
            notes.append("signs around the answer" if same else "another announcement")
        elif head.start() and text[head.start() - 1] != "\n" and head[0][0] != "\n":
            notes.append("words before the answer")
        after = text[stop:].strip(" \t\n`")
        if after and "\n" in text[stop:].rstrip(" \t\n`"):
            notes.append("text after the answer")
        yield FinalAnswer(rest, head.start(), _line(text, stop), tuple(notes))


@lru_cache(maxsize=32)
def _heads(marker: str) -> re.Pattern[str]:
    """Return a pattern for the words that announce an answer."""
    word = re.escape(marker.rstrip(": "))
    names = word if word.casefold() == "answer" else f"{word}|answer"
    return re.compile(
        r"(?:^|(?<=[.!?;:…]))(?:[^\S\n]|[*_#>`\-–•\"'({\[])*"
        r"(?:(?:so|thus|hence|therefore|then)\b,?\s+)?(?:(?:my|the|your|our)\s+)?"
        r"(?:(?:final|correct|right|best)\s+)?"
        rf"(?:{names})\b(?:[\s*_`\"']*:|\s+is\b:?|[ \t*_`#]*(?=\n|$))[ \t]?",
        re.IGNORECASE | re.MULTILINE,
    )


def _same(one: FinalAnswer, other: FinalAnswer) -> bool:
    """Say whether an announcement is part of the one before it."""
    return one.line == other.line and (
        other.said in one.said or other.said.strip("\"'") == one.said.strip("\"' }")
    )


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at)
