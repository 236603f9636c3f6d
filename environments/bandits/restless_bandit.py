"""Restless bandit: two machines that change places now and then; a choice and its confidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.environments.design import Design
from knownminds.environments.fields import Field, Fields, Number, Numbers, OneOf, Whole, setting
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.replies import Replies
from knownminds.environments.search_ranges import Among, Searched, Span
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import (
    _SIGNS,
    Answer,
    Outcome,
    _told,
    decimal,
    enclosed,
    made,
    parse_label,
    parse_number,
    read_final,
)
from knownminds.environments.words.final_answers import MARKER, unwrapped
from knownminds.environments.words.history import FIRST, LETTERS
from knownminds.environments.words.prompt import Message, Prompt
from knownminds.environments.words.screen import Screen
from knownminds.environments.words.slots import Slot
from knownminds.environments.world import Points

from .two_machines import TwoMachines

Confidence = Literal["together", "apart"]
CONFIDENCES: tuple[str, ...] = get_args(Confidence)

_NUMBER = r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+))"
_THEN = "\n[asked for the confidence]\n"  # stands between the two replies to one trial
_ASKED = re.compile(rf"(?P<label>\w), {_NUMBER}")
_ALIKE = re.compile(
    rf"(?:machine\b[\s*_:]*)?(?P<label>\w)\b[*_'\"’”)\]]*"
    rf"(?:\s*[,;:/|]\s*|\s+[-–—]\s+|\s+)"
    rf"(?:(?:and |with )?(?:my |a )?confidence\b(?: level)?(?: of| is)?[\s*_:=]*)?{_NUMBER}",
    re.IGNORECASE,
)


class RestlessBandit(TwoMachines):
    """Two machines, one better than the other, that change places at the end of each block.

    Rewards are whole numbers of points, Normal around `high` for the better machine and around
    `low` for the other. The range of block lengths is told. All sequences of lengths in this range
    that fill a session are equally likely. Each choice comes with a confidence from 0 to 1 that the
    chosen machine is the better one. Both stand in one answer, as in "F, 0.8". With
    confidence="apart" there are two answers: the machine, and then, to a further question, the
    confidence.
    """

    name = "restless_bandit"
    summary = "two machines that change places now and then; a choice and its confidence"
    source = "Ershadmanesh, Gholamzadeh, Desender and Dayan 2023, as in CogBench"
    usual_model = "change_point_observer"
    searched: ClassVar = {
        "n_blocks": Span(1, 16),
        "block_length": Searched(
            (Span(4, 40), Among((0, 2, 4, 8))), lambda shortest, wider: [shortest, shortest + wider]
        ),
        "high": Span(42, 80, 2.0, even=True),
        "sd": Span(2, 32),
    }
    fields = Fields(
        FIRST,
        Field("block", help="which block, from 0", role="hidden", unit="position"),
        Field("mean_0", help="mean of machine 0 in force", role="hidden", unit="points"),
        Field("mean_1", help="mean of machine 1 in force", role="hidden", unit="points"),
    )
    shipped = Path(__file__).with_suffix(".toml")
    world = Points
    given = "both"
    performance_bounds = (0.0, 1.0)
    n_actions = 2
    response_range = (0.0, 1.0)

    slots: ClassVar = {**TwoMachines.slots, "confidence": Slot("response")}
    thought = "I go by what the machines have paid of late, and by how clear that is."

    n_blocks: int = setting(4, Whole(1), "Blocks in a session; 4 in CogBench.", size=True)
    block_length: tuple[int, int] = setting(
        (18, 22),
        Numbers(
            "holds the shortest and the longest block, whole numbers with a whole number as their "
            "mean",
            lambda ends: 1 <= ends[0] <= ends[1] and ends.sum() % 2 == 0,
            (2,),
            decimals=0,
        ),
        "Shortest and longest block; their sum is even, since a session has n_blocks times their "
        "mean of trials.",
    )
    high: float = setting(60.0, Number(), "Mean of the better machine.")
    low: float = setting(40.0, Number(), "Mean of the other machine.")
    sd: float = setting(
        8.0, Number(above=0.0), "Standard deviation of the points, before they are rounded."
    )
    confidence: Confidence = setting(
        "together",
        OneOf(CONFIDENCES),
        '"together" asks for machine and confidence at once; "apart", as in CogBench, for the '
        "confidence in a second question, which shows the reply to the first. A trial then takes "
        "two calls; it counts as answered if both replies can be read. What the machine pays is "
        'shown after both. Goes with history="prompt".',
    )

    def prepare(self) -> None:
        self.shortest, self.longest = self.block_length
        if not self.high > self.low:
            raise ValueError(f"high is above low; got {self.high:g} and {self.low:g}.")
        apart = self.confidence == "apart"
        if apart and self.history != "prompt":
            raise ValueError(
                "A confidence in a separate reply needs history='prompt', where a line tells "
                f"of both replies; got history={self.history!r}. Choose one or the other."
            )
        words = self._choose_words(
            question="question_machine" if apart else "question",
            answer="answer_machine" if apart else "answer",
            n_blocks=self.n_blocks,
            n_trials=self.n_trials,
            shortest=self.shortest,
            longest=self.longest,
        )
        answer = words[f"answer_confidence_{self.reasoning}"]
        if apart and self.reasoning != "none":
            marker = self._marker_in(f"answer_confidence_{self.reasoning}", answer.text)
            if marker != self.marker:
                raise ValueError(
                    "Both answers to a trial are opened by the same words; "
                    f"{self.templates} asks for {self.marker!r} and {marker!r}."
                )
        self._asks_confidence = f"{words['question_confidence'].text}\n{self._limited(answer.text)}"
        self._chances = self._lengths()

    @property
    def n_trials(self) -> int:
        return self.n_blocks * (self.shortest + self.longest) // 2

    @property
    def n_draws(self) -> int:
        """Three numbers per trial, one per block, and those for the start and the names."""
        return 3 * self.n_trials + self.n_blocks + 1 + len(LETTERS)

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return blocks and means, what both machines would pay, and the order of mention."""
        n, n_trials = len(uniforms), self.n_trials
        thrown = uniforms[:, : 3 * n_trials].reshape(n, n_trials, 3)
        rest = uniforms[:, 3 * n_trials :]
        left = np.full(n, n_trials)
        block = np.zeros((n, n_trials), dtype=np.int64)
        for k in range(self.n_blocks - 1):
            below = rest[:, k, None] >= self._chances[k][left]
            left = left - self.shortest - below.sum(axis=1)
            block += np.arange(n_trials) >= n_trials - left[:, None]
        noise = ndtri(np.maximum(thrown[..., :2], 2.0**-54))  # keep the quantile finite
        better = (block + (rest[:, self.n_blocks, None] < 0.5)) % 2
        mean_0 = np.where(better == 0, self.high, self.low)
        mean_1 = np.where(better == 1, self.high, self.low)
        return {
            "first": (thrown[..., 2] < 0.5).astype(np.int64),
            "block": block,
            "mean_0": mean_0,
            "mean_1": mean_1,
            "points": np.round(np.stack([mean_0, mean_1], axis=2) + self.sd * noise) + 0.0,  # no -0
        }

    @property
    def replies(self) -> Replies:
        return _Apart(self) if self.confidence == "apart" else Replies(self)

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return 1 where the machine with the higher mean was chosen, else 0, or NaN."""
        return correctness(trials)

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        yield trials.paired("reward")

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read a machine and a confidence from 0 to 1.

        `ok` is a letter, a comma, a blank and a decimal number; or, if thoughts were asked for, a
        last line ``Answer: LETTER, NUMBER``. Only the following is repaired, and noted: quotes,
        brackets and markdown around the answer; the words machine and confidence; another sign
        between letter and number; letter case; text after the marked line. A letter alone, a number
        alone, two letters, a percentage or a decimal comma is malformed.

        With confidence="apart" the reply to the first question is a letter, read by the rules of
        `parse_label`; it has an action and no response. The reply to the second question is a
        number, read by the rules of `parse_number`. Both together are parsed in the form in which
        `joined` writes them.
        """
        if self.confidence == "apart":
            return self._parse_apart(labels, text, observation)
        options = self.options(labels, observation)
        low, high = self.response_range

        def reads(said: str, notes: list[str]) -> tuple[tuple[int, float] | None, str]:
            pair = _ASKED.fullmatch(said)
            if pair is None:
                bare = re.sub(rf"^{MARKER}", "", said, flags=re.IGNORECASE)
                core = unwrapped(bare).strip(_SIGNS)
                if core and enclosed(*bare.split(core, 1)):
                    pair = _ALIKE.fullmatch(core)
                notes.append("signs or words around the answer")
            if pair is None:
                return None, "expected a machine and a confidence, as in F, 0.8"
            label, confidence = pair["label"], float(pair["number"])
            if label not in options and label.upper() in options:
                label = label.upper()
                notes.append("letter case")
            if label not in options:
                return None, f"expected one of {', '.join(options)}"
            if not low <= confidence <= high:
                return None, f"expected a confidence from {low:g} to {high:g}"
            return (options.index(label), confidence), ""

        final = read_final(text, self.reasoning != "none", self.marker, reads)
        if isinstance(final, Answer):
            return final
        (action, confidence), notes = final
        return made(text, notes, action=action, response=confidence)

    def screen(self, labels: Any, observation: Observation) -> Screen:
        if self.confidence == "apart":
            raise ValueError(
                f"A page asks once in each trial, {self.name} here twice. Set confidence to "
                "together."
            )
        return super().screen(labels, observation)

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        action, confidence = choice
        label, number = self.options(labels, observation)[action], decimal(confidence)
        if self.confidence == "apart":
            return self.replies.joined(self._aloud(label), self._aloud(number))
        return self._aloud(f"{label}, {number}")

    def read(self, design: Design, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        return super().read(design, messages[:1] if self.replies.n_given(messages) else messages)

    def _parse_apart(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read a machine, and the number of the second reply if there is one."""
        marked = self.reasoning != "none"
        named, *rest = self.replies.spoken(text)
        options = self.options(labels, observation)
        machine = parse_label(named, options, marked=marked, noun="machine", marker=self.marker)
        if machine.action is None or not rest:
            return replace(machine, text=text)
        sure = parse_number(rest[0], *self.response_range, marked=marked, marker=self.marker)
        if sure.response is None:
            return replace(sure, text=text)
        notes = [note for note in (machine.note, sure.note) if note]
        outcome = Outcome.REPAIRED if notes else Outcome.OK
        return Answer(outcome, machine.action, sure.response, text, _told(notes))

    def _lengths(self) -> list[NDArray[np.float64]]:
        """Return, for each block but the last, the cumulative probabilities of its length.

        Row r of a table is for r trials left; entry j is the probability of at most shortest + j
        trials.
        """
        spans = np.arange(self.shortest, self.longest + 1)
        ways = np.zeros(self.n_trials + 1)  # share of the sequences of k lengths that sum to r
        ways[0] = 1.0
        tables = []
        for _ in range(self.n_blocks):
            shifted = np.zeros((len(ways), len(spans)))
            for j, long in enumerate(spans):
                shifted[long:, j] = ways[: max(len(ways) - long, 0)]
            total = shifted.sum(axis=1)
            held = np.where(total[:, None] > 0, shifted, 1.0)
            tables.append(np.cumsum(held, axis=1)[:, :-1] / held.sum(axis=1, keepdims=True))
            ways = total / len(spans)
        return tables[:0:-1]


class _Apart(Replies):
    """Two replies per trial: a machine, and the confidence in the choice."""

    environment: RestlessBandit

    def spoken(self, text: str) -> list[str]:
        """Return the two replies."""
        return text.split(_THEN, 1)

    def joined(self, before: str, reply: str) -> str:
        """Return both replies of a trial as one text, with a line between them."""
        return f"{before}{_THEN}{reply}"

    def further(self, prompt: Prompt, answer: Answer) -> Prompt | None:
        """Return the question for the confidence, once a machine has been named."""
        if answer.action is None or answer.response is not None:
            return None
        said = Message("assistant", answer.text), Message("user", self.environment._asks_confidence)
        return Prompt((*prompt.messages, *said))

    def n_given(self, messages: Sequence[Message]) -> int:
        """Return 1 for the question for the confidence, 0 for any other."""
        question = self.environment._asks_confidence
        return int(len(messages) == 3 and messages[-1].content == question)


def correctness(trials: Trials, *, after: bool = False) -> NDArray[np.float64]:
    """Say for each row whether the machine with the higher mean was chosen; NaN without a choice.

    Parameters
    ----------
    after : Judge by the means after the trial, instead of those at the time of the choice. The two
        differ on the last trial of a block, after which the machines change places. The later means
        are read from the next trial. Where that row is missing and the means then differ, or where
        a session breaks off early, the choice is not judged (NaN).

    Raises
    ------
    ValueError : If the trials lack the columns mean_0 and mean_1.
    """
    frame = trials.frame
    for name in ("mean_0", "mean_1"):
        if name not in frame:
            raise ValueError(
                "Whether a choice of restless_bandit was right depends on the machines' means at "
                f"that time, mean_0 and mean_1; the trials have no {name!r}. "
                f"Map one with --columns {name}=YOUR_NAME."
            )
    action = trials.numbers("action")
    session, trial = trials.session_codes, frame["trial"].to_numpy(dtype=np.int64)
    better = (trials.numbers("mean_1") > trials.numbers("mean_0")).astype(float)
    judged = np.isfinite(action)
    if after:
        # A session ends with the last trial of a block.
        last = np.append(session[1:] != session[:-1], True)
        following = np.where(last, 1.0 - better, np.append(better[1:], 0.0))
        step = np.where(last, 1, np.append(trial[1:] - trial[:-1], 1))
        whole = trial == trial.max(initial=0)
        judged &= np.where(last, whole, (step == 1) | (following == better))
        better = following
    return np.where(judged, (action == better).astype(float), np.nan)
