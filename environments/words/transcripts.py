"""Dialogues of known duration: composed from a cast of speakers, or taken from recordings."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import session_stream

from .meetings import ENDING, Utterance, meeting, meeting_files

Line = tuple[str, str]  # speaker, words

FORMAT = (
    "A transcript is a .txt file (UTF-8) with one utterance per line, in the order in which they "
    "begin: start and end in seconds, the speaker's name and the words, with tabs between them"
)
_PER_TURN = 14  # words of a turn, on average
_SECONDS = 2  # decimals of a duration
_SHORTEST = 1.0  # s, the shortest excerpt


@dataclass(frozen=True)
class Speakers:
    """Speakers, each with a rate of speech that never changes, and the parts of their sentences.

    Parameters
    ----------
    names : the speakers
    rates : their rates, words per second
    sentence : for each position in a sentence, the parts that may stand there
    remarks : remarks of each number of words, from 1 on
    """

    names: tuple[str, ...]
    rates: tuple[float, ...]
    sentence: tuple[tuple[str, ...], ...]
    remarks: tuple[tuple[str, ...], ...]

    def seconds(self, lines: Sequence[Line]) -> float:
        """Return how long a dialogue takes: words over rate, summed over the speakers."""
        words = dict.fromkeys(self.names, 0)
        for name, said in lines:
            if name not in words:
                raise ValueError(
                    f"The speakers are {', '.join(self.names)}; a dialogue has {name!r}."
                )
            words[name] += len(said.split())
        spoken = sum(n / rate for n, rate in zip(words.values(), self.rates, strict=True) if n)
        return round(spoken, _SECONDS)

    def word_counts(
        self,
        seconds: NDArray[np.float64],
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        share: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Divide durations between two speakers; all arrays have the same shape.

        Parameters
        ----------
        seconds : How long each dialogue should take.
        first, second : Positions of its speakers in the cast.
        share : The share of the time that the first one should speak, roughly.

        Returns
        -------
        words of the first speaker, words of the second, seconds
            Among the divisions near that share, the one whose duration is nearest.
        """
        rates = np.array(self.rates)
        one, other = rates[first][..., None], rates[second][..., None]
        ones = np.round(share * seconds * rates[first])[..., None] + np.arange(-8, 9)
        ones = np.maximum(ones, 1.0)
        others = np.maximum(np.round((seconds[..., None] - ones / one) * other), 1.0)
        best = np.argmin(np.abs(ones / one + others / other - seconds[..., None]), axis=-1)
        best = best[..., None]
        chosen, rest = (np.take_along_axis(n, best, axis=-1)[..., 0] for n in (ones, others))
        # The sum is taken in the order of the cast, as in `seconds`.
        low_first = first <= second
        a = np.where(low_first, chosen, rest) / rates[np.minimum(first, second)]
        b = np.where(low_first, rest, chosen) / rates[np.maximum(first, second)]
        taken = np.round(a + b, _SECONDS)
        return chosen.astype(np.int64), rest.astype(np.int64), taken

    def dialogue(self, first: int, second: int, words: tuple[int, int], number: int) -> list[Line]:
        """Compose a dialogue of two speakers with these numbers of words.

        Their sentences are drawn from the number; the same number gives the same dialogue.
        """
        rng = session_stream(number, *words)
        n_turns = max(min(round(sum(words) / _PER_TURN / 2), *words), 1)
        spoken = [self._turns(n, n_turns, rng) for n in words]
        names = self.names[first], self.names[second]
        return [
            (name, turn)
            for both in zip(*spoken, strict=True)
            for name, turn in zip(names, both, strict=True)
        ]

    def _turns(self, words: int, n_turns: int, rng: np.random.Generator) -> list[str]:
        """Divide words among turns, unevenly, and fill each turn with sentences."""
        cuts = 1 + np.sort(rng.permutation(words - 1)[: n_turns - 1])
        return [self._turn(int(n), rng) for n in np.diff([0, *cuts, words])]

    def _turn(self, words: int, rng: np.random.Generator) -> str:
        sentences: list[str] = []
        while words > len(self.remarks):
            sentence = self._sentence(rng)
            n = len(sentence.split())
            if n > words:
                break
            sentences.append(sentence)
            words -= n
        while words:
            n = min(words, len(self.remarks))
            known = self.remarks[n - 1]
            sentences.append(known[rng.integers(len(known))])
            words -= n
        return " ".join(sentences)

    def _sentence(self, rng: np.random.Generator) -> str:
        picks = rng.random(len(self.sentence) + 2).tolist()
        parts = [
            kind[int(pick * len(kind))] for kind, pick in zip(self.sentence, picks, strict=False)
        ]
        bare = parts[picks[-2] < 0.5 : len(parts) - (picks[-1] < 0.5)]
        said = " ".join(bare)
        return f"{said[0].upper()}{said[1:]}."


@cache
def registers() -> tuple[str, ...]:
    """Return the names of the registers in which our cast can speak; the first is the usual one."""
    return ("office", *_parts()["registers"])


@cache
def _parts() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@cache
def our_cast(register: str = "office") -> Speakers:
    """Return the cast of `transcripts.toml`, which speaks in one of `registers()`."""
    parts = _parts()
    sentence = parts["sentence"] if register == "office" else parts["registers"][register]
    return Speakers(
        names=tuple(parts["rates"]),
        rates=tuple(parts["rates"].values()),
        sentence=tuple(tuple(kind) for kind in sentence.values()),
        remarks=tuple(tuple(known) for known in parts["remarks"].values()),
    )


@dataclass(frozen=True)
class Recordings:
    """Transcripts of recorded dialogues, whose excerpts have known durations.

    An excerpt is a run of utterances of one transcript. It lasts from the start of its first
    utterance to the end of the one that ends last.

    Parameters
    ----------
    files : the utterances of each transcript
    shortest, longest : wanted durations, s; excerpts outside this range are left out
    """

    files: tuple[tuple[Utterance, ...], ...]
    shortest: float
    longest: float

    @cached_property
    def excerpts(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Durations in rising order, [E], and which utterances, [E, (file, first, last)]."""
        durations: list[float] = []
        places: list[tuple[int, int, int]] = []
        for f, utterances in enumerate(self.files):
            for i, first in enumerate(utterances):
                end = first.end
                for j in range(i, len(utterances)):
                    end = max(end, utterances[j].end)
                    seconds = round(end - first.start, _SECONDS)
                    if seconds > self.longest:
                        break
                    if seconds >= self.shortest:
                        durations.append(seconds)
                        places.append((f, i, j))
        order = np.argsort(durations, kind="stable")
        return np.array(durations)[order], np.array(places, dtype=np.int64).reshape(-1, 3)[order]

    def nearest(
        self, seconds: NDArray[np.float64], uniforms: NDArray[np.float64], among: int
    ) -> NDArray[np.int64]:
        """Draw excerpts, each evenly from the `among` excerpts whose durations are nearest."""
        durations, _ = self.excerpts
        among = min(among, len(durations))
        low = np.searchsorted(durations, seconds) - among // 2
        return np.asarray(low.clip(0, len(durations) - among) + (uniforms * among).astype(np.int64))

    def lines(self, excerpt: int) -> list[Line]:
        """Return the lines of an excerpt."""
        f, first, last = self.excerpts[1][excerpt]
        return [(u.speaker, u.words) for u in self.files[f][first : last + 1]]

    def seconds(self, lines: Sequence[Line]) -> float:
        """Return how long an excerpt takes, given its words.

        Raises ValueError if no transcript has it, or several have it with different durations.
        """
        lengths = set()
        for f, first in self._places.get(lines[0], ()):
            utterances = self.files[f][first : first + len(lines)]
            if [(u.speaker, u.words) for u in utterances] == list(lines):
                lengths.add(round(max(u.end for u in utterances) - utterances[0].start, _SECONDS))
        if len(lengths) != 1:
            raise ValueError(
                f"An excerpt is found in one of the transcripts; that which begins "
                f"{': '.join(lines[0])[:60]!r} is in {len(lengths) or 'none'} of them."
            )
        return lengths.pop()

    @cached_property
    def _places(self) -> dict[Line, list[tuple[int, int]]]:
        places: dict[Line, list[tuple[int, int]]] = {}
        for f, utterances in enumerate(self.files):
            for i, u in enumerate(utterances):
                places.setdefault((u.speaker, u.words), []).append((f, i))
        return places


def load_recordings(folder: str, shortest: float, longest: float) -> Recordings:
    """Read the transcripts of a folder: one line per utterance, START, END, SPEAKER, WORDS.

    Start and end are in seconds; tabs separate the four. Lines that are blank or begin with # do
    not count. Utterances may overlap, but begin in order.

    A folder without such files may hold meetings in the files of the AMI corpus; see `meetings`.

    Raises
    ------
    ValueError : If the folder or its transcripts cannot be read. The error names file and line.
    """
    files = [file for file in sorted(Path(folder).rglob("*")) if file.is_file()]
    content = tuple((str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files)
    return _loaded(folder, content, shortest, longest)


@lru_cache(maxsize=4)
def _loaded(
    folder: str, content: tuple[tuple[str, int, int], ...], shortest: float, longest: float
) -> Recordings:
    path = Path(folder)
    if not path.is_dir():
        raise ValueError(f"Transcripts are read from a folder; there is none at {folder}.")
    files = sorted(path.glob("*.txt"))
    meetings = {} if files else meeting_files(path)
    if not files and not meetings:
        raise ValueError(
            f"There are no transcripts (*.txt) in {folder}, nor words of meetings (*{ENDING}). "
            f"{FORMAT}."
        )
    read = tuple(_utterances(file) for file in files)
    read += tuple(meeting(name, words) for name, words in meetings.items())
    recordings = Recordings(read, max(shortest, _SHORTEST), longest)
    if not len(recordings.excerpts[0]):
        raise ValueError(
            f"Excerpts must last {shortest:g} to {longest:g} s; the "
            f"{len(read)} transcripts in {folder} have none. Add longer ones, or set ranges."
        )
    return recordings


def _utterances(file: Path) -> tuple[Utterance, ...]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{FORMAT}; {file.name} cannot be read: {error}") from None
    utterances: list[Utterance] = []
    for n, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("\t")]
        try:
            start, end = map(float, fields[:2])
            speaker, words = fields[2:]
        except ValueError:
            raise ValueError(f"{FORMAT}; line {n} of {file.name} is {line[:60]!r}.") from None
        after = not utterances or start >= utterances[-1].start
        if not (isfinite(start) and isfinite(end) and start < end and after):
            raise ValueError(
                f"An utterance ends after it begins, and begins no earlier than the one before; "
                f"line {n} of {file.name} goes from {start:g} to {end:g} s."
            )
        if not speaker or ":" in speaker or not words:
            raise ValueError(
                f"An utterance has a speaker, without a colon in the name, and words; line {n} of "
                f"{file.name} is {line[:60]!r}."
            )
        utterances.append(Utterance(start, end, speaker, " ".join(words.split())))
    if not utterances:
        raise ValueError(f"{FORMAT}; {file.name} has none.")
    return tuple(utterances)
