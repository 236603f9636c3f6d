"""Duration: how long a dialogue took, from its transcript."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.fields import FILE, Field, Fields, coded, setting
from knownminds.environments.turn import Observation
from knownminds.environments.words.paced_dialogues import Paced, paced, seconds_in
from knownminds.environments.words.transcripts import (
    Recordings,
    load_recordings,
    our_cast,
    registers,
)

from .decoupling import mirrored
from .magnitude import Magnitude

_COUNT = (0, np.inf)
_NUMBERS = 2**31  # dialogues are drawn from one of so many streams
_NEAREST = 20  # one is drawn among so many excerpts of recordings
SPOKEN = 5.0  # seconds that a dialogue of our cast takes at least
_FAR = 0.05  # largest distance of a recording from the wanted duration, as a share of it


class Duration(Magnitude):
    """How long a dialogue took, in seconds, from its transcript.

    Two speakers take turns without pauses. Each member of our cast has a rate of speech that never
    changes (2.5 words per second on average, standard deviation 10%; the participant is not told).
    So the duration is exactly the sum over the speakers of words over rate. Alternatively,
    dialogues are excerpts of recorded ones, from a folder of transcripts with times.

    There are no pictures, and so no noise. `Magnitude` says how a session is made.

    In published dialogues, the number of words divided by 2.5 gives the duration to within a few
    per cent. In decoupled ones the rates of both speakers are drawn anew for each dialogue and
    told. Pauses are shown too and take up to 60% of the time, and the cast speaks in one of several
    registers. The number of words does not correlate with the durations of any window of any
    session. (Recorded dialogues are as they are.)

    With recordings, script is the number of the excerpt, and the other columns of words are 0.

    Ranges may begin at .1 s, for what people reproduced elsewhere: such trials are read, fitted and
    scored. A session that is drawn has ranges from 5 s on, the shortest duration of a dialogue.
    """

    name = "duration"
    summary = "how long a dialogue took, from its transcript"
    source = "BayesBench (Ma, Wang and Fountas 2025, arXiv 2512.02719)"
    shipped = Path(__file__).with_suffix(".toml")
    fields = Fields(
        *Magnitude.fields,
        Field("first", _COUNT, "who speaks first, a position in the cast", "wording"),
        Field("second", _COUNT, "who speaks second", "wording"),
        Field("words_first", _COUNT, "how many words the first says", "wording"),
        Field("words_second", _COUNT, "how many words the second says", "wording"),
        Field("script", _COUNT, "number from which words are drawn, or the excerpt", "wording"),
    )
    n_wording = 4
    decoupled: ClassVar = (
        Fields(
            Field("rate_first", _COUNT, "words per minute of the first", "wording"),
            Field("rate_second", _COUNT, "words per minute of the second", "wording"),
            Field("pauses", _COUNT, "all of them together", "wording", unit="tenths of a second"),
            Field("register", _COUNT, coded(registers()), "wording"),
        ),
        4,
    )
    kinds = ("text",)
    default_ranges: ClassVar = {"short": (10.0, 40.0), "medium": (25.0, 55.0), "long": (40.0, 70.0)}
    limits = (0.1, 600.0)
    ceiling = 600.0
    modalities = ("text",)
    thought = "I count the words and think of how fast people speak."

    blur = 0.0  # there are no pictures
    transcripts: str | None = setting(
        None,
        FILE,
        "A folder of transcripts (*.txt, UTF-8) from which excerpts are taken; None for our cast. "
        "One utterance per line: start and end in seconds, speaker and words, with tabs between. "
        "Or one with the words of meetings as the AMI corpus lays them out (*.words.xml).",
        last=True,
    )

    def prepare(self) -> None:
        given = self.transcripts
        if self._settings["stimuli"] == "decoupled":
            if given is not None:
                raise ValueError(
                    "Decoupled dialogues are spoken by our cast, and recorded ones are as they "
                    "are; got stimuli='decoupled' and transcripts. Leave one of them out."
                )
            self.shipped = Path(__file__).with_name("duration_decoupled.toml")
        super().prepare()
        self._recordings = None if given is None else self._covering(given)
        if self._recordings is not None:
            self._slack = self._recordings.longest - self._recordings.longest / (1 + _FAR)

    def _make(
        self, targets: NDArray[np.float64], uniforms: NDArray[np.float64]
    ) -> dict[str, NDArray[Any]]:
        who, other, share, what = (uniforms[:, :, k] for k in range(4))
        if self._recordings is not None:
            script = self._recordings.nearest(targets, what, _NEAREST)
            value = self._recordings.excerpts[0][script]
            nobody = np.zeros(targets.shape, dtype=np.int64)
            return {"value": value, "script": script} | dict.fromkeys(
                self.fields.wording[:-1], nobody
            )
        shortest = min(self.ranges[window][0] for window in self.windows)
        if shortest < SPOKEN:
            raise ValueError(
                f"A dialogue takes {SPOKEN:g} s at least; ranges begin at {shortest:g} s. Trials "
                "of such durations are read, fitted and scored; a session that is drawn has ranges "
                f"from {SPOKEN:g} s on (--set ranges=VALUE)."
            )
        cast = our_cast()
        n = len(cast.names)
        first = (who * n).astype(np.int64)
        second = (first + 1 + (other * (n - 1)).astype(np.int64)) % n
        if self.stimuli == "decoupled":
            ends = np.array([self.ranges[window] for window in self.windows])
            made = paced(targets, ends, mirrored(targets, share), uniforms[:, :, 4:])
            script = (what * _NUMBERS).astype(np.int64)
            return {**made, "first": first, "second": second, "script": script}
        one, two, value = cast.word_counts(targets, first, second, 0.3 + 0.4 * share)
        return {
            "value": value,
            "first": first,
            "second": second,
            "words_first": one,
            "words_second": two,
            "script": (what * _NUMBERS).astype(np.int64),
        }

    def _text(self, observation: Observation) -> list[str]:
        script = int(observation["script"])
        if self.stimuli == "decoupled":
            return self._paced(observation).lines()
        if self._recordings is not None:
            lines = self._recordings.lines(script)
        else:
            words = int(observation["words_first"]), int(observation["words_second"])
            speakers = int(observation["first"]), int(observation["second"])
            lines = our_cast().dialogue(*speakers, words, script)
        return [f"{name}: {said}" for name, said in lines]

    def shortcuts(self, observation: Observation) -> dict[str, float]:
        """Return words and turns of the dialogue, and pauses and rates if they are shown."""
        lines = self._text(observation)
        if self.stimuli == "published":
            words = sum(len(line.split()) - 1 for line in lines)
            return {"words of the dialogue": words, "turns of the dialogue": len(lines)}
        return {
            "words of the dialogue": observation["words_first"] + observation["words_second"],
            "turns of the dialogue": len(lines) - 1,
            "seconds of all pauses": observation["pauses"] / 10,
            "mean of both rates": (observation["rate_first"] + observation["rate_second"]) / 2,
        }

    @staticmethod
    def _paced(observation: Observation) -> Paced:
        seen = {name: int(value) for name, value in observation.items()}
        return Paced(
            speakers=(seen["first"], seen["second"]),
            words=(seen["words_first"], seen["words_second"]),
            rates=(seen["rate_first"], seen["rate_second"]),
            tenths=seen["pauses"],
            register=seen["register"],
            number=seen["script"],
        )

    def _value_in(self, lines: Sequence[str]) -> float:
        if self.stimuli == "decoupled":
            return seconds_in(lines)
        spoken = []
        for line in lines:
            name, colon, said = line.partition(": ")
            if not colon:
                raise ValueError(f"A line of a dialogue is NAME: WORDS; got {line[:60]!r}.")
            spoken.append((name, said))
        return (self._recordings or our_cast()).seconds(spoken)

    def _covering(self, folder: str) -> Recordings:
        """Read transcripts that have excerpts of all durations in the windows."""
        lowest = min(low for low, _ in self.ranges.values())
        highest = max(high for _, high in self.ranges.values())
        recordings = load_recordings(folder, (1 - _FAR) * lowest, (1 + _FAR) * highest)
        durations, _ = recordings.excerpts
        for window in self.windows:
            for wanted in np.linspace(*self.ranges[window], self.n_values):
                nearest = durations[np.argmin(np.abs(durations - wanted))]
                if abs(nearest - wanted) > _FAR * wanted:
                    raise ValueError(
                        f"Transcripts need excerpts of about {wanted:g} s; the nearest in {folder} "
                        f"lasts {nearest:g} s. Add transcripts with shorter utterances, or set "
                        "ranges."
                    )
        return recordings
