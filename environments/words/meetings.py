"""Meetings in the files of the AMI corpus: for each speaker the words with their times.

The public manual annotations (NITE XML) have a folder `words` with files such as
`ES2002a.A.words.xml`: meeting ES2002a, speaker A. The elements of a file stand in the order in
which they were uttered. `w` is a word or, with punc="true", a punctuation mark; it has starttime
and endtime in seconds. `vocalsound`, `disfmarker`, `gap` and others are not words.

Source: Carletta et al. 2005, The AMI meeting corpus: A pre-announcement (MLMI).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from xml.etree import ElementTree

ENDING = ".words.xml"
SILENCE = 0.5  # s; a speaker who is silent for longer begins another utterance
LAYOUT = (
    "A folder of the AMI corpus holds files MEETING.SPEAKER.words.xml, whose elements w have "
    "starttime and endtime in seconds"
)


@dataclass(frozen=True)
class Utterance:
    """What a speaker says without falling silent, with its start and end in seconds."""

    start: float
    end: float
    speaker: str
    words: str


def meeting_files(folder: Path) -> dict[str, list[Path]]:
    """Return the files of words of each meeting, by name, in a folder or in its folder `words`."""
    files = sorted(folder.glob(f"*{ENDING}")) or sorted(folder.glob(f"words/*{ENDING}"))
    meetings: dict[str, list[Path]] = {}
    for file in files:
        meetings.setdefault(file.name.partition(".")[0], []).append(file)
    return meetings


def meeting(name: str, files: list[Path]) -> tuple[Utterance, ...]:
    """Return the utterances of a meeting, ordered by their starts.

    Raises
    ------
    ValueError : If a file is not of the corpus (the error names it), or the files have no words.
    """
    spoken = [one for file in files for one in _utterances(file)]
    if not spoken:
        raise ValueError(f"{LAYOUT}; those of {name} have no words.")
    return tuple(sorted(spoken, key=lambda one: (one.start, one.speaker)))


def _utterances(file: Path) -> list[Utterance]:
    speaker = file.name.removesuffix(ENDING).partition(".")[2]
    try:
        root = ElementTree.parse(file).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise ValueError(f"{LAYOUT}; {file.name} cannot be read: {error}") from None
    if not speaker or root.tag.rpartition("}")[2] != "root":
        raise ValueError(f"{LAYOUT}; {file.name} is none of them.")
    spoken: list[Utterance] = []
    words: list[str] = []
    start = end = 0.0
    for element in root.iter("w"):
        said = " ".join((element.text or "").split())
        if not said:
            continue
        if element.get("punc") == "true":
            if words:
                words[-1] += said
            continue
        begins, ends = (_time(element.get(name), end) for name in ("starttime", "endtime"))
        if not isfinite(begins) or not isfinite(ends) or ends < begins:
            raise ValueError(
                f"{LAYOUT}, a start no later than its end; the word {said[:30]!r} of {file.name} "
                f"goes from {element.get('starttime')} to {element.get('endtime')}."
            )
        if words and begins - end > SILENCE:
            spoken.append(Utterance(start, end, speaker, " ".join(words)))
            words = []
        start = start if words else begins
        end = max(end, ends) if words else ends
        words.append(said)
    if words:
        spoken.append(Utterance(start, end, speaker, " ".join(words)))
    return [one for one in spoken if one.end > one.start]


def _time(given: str | None, before: float) -> float:
    """Return a time; for the few words without one that of the word before; NaN if unreadable."""
    if given is None:
        return before
    try:
        return float(given)
    except ValueError:
        return float("nan")
