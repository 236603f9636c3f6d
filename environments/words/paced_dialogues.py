"""Dialogues with pauses, whose speakers' rates are drawn anew: the words reveal little.

A dialogue lasts (words / rate, summed over its two speakers) + pauses. Rates and pauses are shown,
so that the duration can be computed exactly. Words, rates or pauses alone do not reveal it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import session_stream

from .transcripts import our_cast, registers

Columns = dict[str, NDArray[Any]]

SPOKEN = (0.4, 0.95)  # share of the time in which somebody speaks
RATES = (0.9, 4.5)  # words per second, mean of both speakers
FIRST = (0.35, 0.65)  # share of the words that the first speaker says
_UNEVEN = (0.9, 1.1)  # rate of the first speaker relative to that of both
_MINUTE = 60.0
_HEAD = re.compile(r"\((\w+): (\d+) words a minute; (\w+): (\d+) words a minute\)")
_PAUSE = re.compile(r" \[(\d+)\.(\d)\]$")


@dataclass(frozen=True)
class Paced:
    """The quantities that make up a dialogue.

    Parameters
    ----------
    speakers : positions of the two in our cast; the one who speaks first comes first
    words : how many words each says
    rates : words per minute of each
    tenths : all pauses together, in tenths of a second
    register : position in `registers()`
    number : the number from which sentences and the division of the pauses are drawn
    """

    speakers: tuple[int, int]
    words: tuple[int, int]
    rates: tuple[int, int]
    tenths: int
    register: int
    number: int

    def lines(self) -> list[str]:
        """Return the dialogue: who speaks how fast, then NAME: WORDS [pause in seconds]."""
        cast = our_cast(registers()[self.register])
        spoken = cast.dialogue(*self.speakers, self.words, self.number)
        rng = session_stream(self.number, self.tenths)
        shares = rng.gamma(0.7, size=len(spoken) - 1)
        cuts = np.round(self.tenths * np.cumsum(shares) / shares.sum()).astype(int)
        pauses = np.diff([0, *cuts.tolist()])
        paces = [f"{cast.names[who]}: {n} words a minute" for who, n in self._paces()]
        return [f"({'; '.join(paces)})"] + [
            f"{name}: {said}" + (f" [{pause // 10}.{pause % 10}]" if pause else "")
            for (name, said), pause in zip(spoken, [*pauses.tolist(), 0], strict=True)
        ]

    def _paces(self) -> list[tuple[int, int]]:
        return list(zip(self.speakers, self.rates, strict=True))


def seconds(
    words: Sequence[NDArray[np.int64]] | Sequence[int],
    rates: Sequence[NDArray[np.int64]] | Sequence[int],
    tenths: NDArray[np.int64] | int,
) -> NDArray[np.float64]:
    """Return how long dialogues take, in seconds to .01.

    Parameters
    ----------
    words, rates : Words and words per minute of both speakers.
    tenths : All pauses, in tenths of a second.
    """
    spoken = [
        np.asarray(n) * _MINUTE / np.asarray(rate) for n, rate in zip(words, rates, strict=True)
    ]
    return np.asarray(np.round(spoken[0] + spoken[1] + np.asarray(tenths) / 10, 2))


def seconds_in(lines: Sequence[str]) -> float:
    """Return how long a dialogue in lines takes, in seconds; ValueError if it is no dialogue."""
    head = _HEAD.fullmatch(lines[0])
    if head is None:
        raise ValueError(
            f"A dialogue begins with who speaks how many words a minute; got {lines[0][:60]!r}."
        )
    rates = {head[1]: int(head[2]), head[3]: int(head[4])}
    words, tenths = dict.fromkeys(rates, 0), 0
    for line in lines[1:]:
        pause = _PAUSE.search(line)
        tenths += 10 * int(pause[1]) + int(pause[2]) if pause else 0
        name, colon, said = line[: pause.start() if pause else None].partition(": ")
        if not colon or name not in words:
            raise ValueError(
                f"A line of a dialogue is NAME: WORDS, of one of two speakers; got {line[:60]!r}."
            )
        words[name] += len(said.split())
    return float(seconds(list(words.values()), list(rates.values()), tenths))


def paced(
    targets: NDArray[np.float64],
    ends: NDArray[np.float64],
    total: NDArray[np.float64],
    uniforms: NDArray[np.float64],
) -> Columns:
    """Divide durations into words, rates and pauses.

    The number of words is drawn first; its logarithm is even over the range that every duration of
    a window can hold. Then the share of the time in which somebody speaks is drawn, within what the
    rates allow.

    Parameters
    ----------
    targets : Wanted durations, s, [N, windows, items].
    ends : Lowest and highest duration of each window, [windows, 2].
    total : Uniform numbers that decide on the words, in the shape of targets.
    uniforms : Further uniform numbers, [N, windows, 4, items].

    Returns
    -------
    value, words_first, words_second, rate_first, rate_second, pauses (tenths of a second), register
    """
    u = [uniforms[:, :, k] for k in range(4)]
    low = np.log(np.maximum(1.1 * SPOKEN[0] * RATES[0] * ends[:, 1], 8))[:, None]
    high = np.maximum(np.log(0.95 * SPOKEN[1] * RATES[1] * ends[:, 0])[:, None], low + 0.1)
    words = np.exp(low + (high - low) * total)
    least = np.maximum(SPOKEN[0] * targets, words / RATES[1])
    most = np.maximum(np.minimum(SPOKEN[1] * targets, words / RATES[0]), least)
    spoken = least + (most - least) * u[0]
    first = FIRST[0] + (FIRST[1] - FIRST[0]) * u[1]
    one = np.maximum(np.round(first * words), 2).astype(np.int64)
    other = np.maximum(np.round(words) - one, 2).astype(np.int64)
    rate = words / spoken
    rate_first = rate * _UNEVEN[0] * (_UNEVEN[1] / _UNEVEN[0]) ** u[2]
    rate_other = other / np.maximum(spoken - one / rate_first, 0.1 * spoken)
    rates = [
        np.maximum(np.round(r * _MINUTE), 20).astype(np.int64) for r in (rate_first, rate_other)
    ]
    bare = seconds([one, other], rates, np.zeros_like(one))
    tenths = np.maximum(np.round(10 * (targets - bare)), 0).astype(np.int64)
    return {
        "value": seconds([one, other], rates, tenths),
        "words_first": one,
        "words_second": other,
        "rate_first": rates[0],
        "rate_second": rates[1],
        "pauses": tenths,
        "register": (u[3] * len(registers())).astype(np.int64),
    }
