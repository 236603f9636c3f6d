"""Faults of real participants, which any model can have: lapses, refusals, unreadable answers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from knownminds.environments.words.final_answers import MARKER

REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "I must decline: I will not take part in games of chance.",
    "As an AI I have no preferences of this kind.",
)

# A lenient reader might take these for answers, and must not. {} stands for the answer.
MALFORMED = (
    "Hard to say, they all look much the same to me.",
    "{} or perhaps the other one, I keep changing my mind.",
    "Either would do.",
)

# Readers may take these words off, around a bare answer and before a marked line.
AROUND = ("**{}**", "{}.", "“{}”", "Answer: {}", "Answer: **{}**.")
THOUGHTS = (
    "Let me look back before I decide.",
    "A few good or bad results in a row may be luck, so I weigh all that I have seen.\n\n"
    "The latest results count as well. That settles it for me.",
    "First, what do I know so far? Some of it speaks for the one, some of it for the other.\n"
    "Second, what would I lose by a mistake? Not much.\n"
    "So I go with what looks best now.",
)


@dataclass(frozen=True)
class Contaminants:
    """Rates at which responses go wrong; every agent has the same rates.

    `lapse` is part of the decision: a uniform pick among the actions. The other rates change the
    answer in words and leave the decision as it was. At most one of `refusal`, `malformed` and
    `truncation` strikes an answer.

    Parameters
    ----------
    lapse : a uniform pick among the actions
    refusal : a text that declines
    malformed : a text that holds no answer
    truncation : the text is cut in the middle, as at a limit of tokens
    verbosity : words around the answer; readers remove them by a declared repair. If thoughts are
        required, these get longer
    """

    lapse: float = 0.0
    refusal: float = 0.0
    malformed: float = 0.0
    truncation: float = 0.0
    verbosity: float = 0.0

    def __post_init__(self) -> None:
        """Check that the rates are probabilities and leave room for real answers."""
        for field in fields(self):
            rate = getattr(self, field.name)
            if not 0.0 <= rate <= 1.0:
                raise ValueError(f"Contaminant rates lie in [0, 1]; got {field.name}={rate:g}.")
        if self.refusal + self.malformed + self.truncation > 1.0:
            raise ValueError(
                "refusal, malformed and truncation exclude each other, so they sum to at most 1; "
                f"got {self.refusal + self.malformed + self.truncation:g}."
            )

    def speak(self, text: str, fault: float, chatter: float) -> tuple[str, str]:
        """Return the text after contamination, and the reason why it ends ("stop", "length").

        Parameters
        ----------
        text : The answer in the required form.
        fault, chatter : Uniform numbers: `fault` decides on refusal, malformed and truncation,
            `chatter` on verbosity. They are used up whatever the rates, so that sessions with and
            without contaminants stay aligned.
        """
        if fault < self.refusal:
            return _one_of(REFUSALS, fault / self.refusal), "stop"
        fault -= self.refusal
        if fault < self.malformed:
            return _one_of(MALFORMED, fault / self.malformed).replace("{}", text), "stop"
        if chatter < self.verbosity:
            if text.rpartition("\n")[2].startswith(MARKER):
                text = f"{_one_of(THOUGHTS, chatter / self.verbosity)}\n{text}"
            else:
                text = _one_of(AROUND, chatter / self.verbosity).replace("{}", text)
        if fault - self.malformed < self.truncation:
            return text[: len(text) // 2], "length"
        return text, "stop"


def _one_of(texts: tuple[str, ...], share: float) -> str:
    """Return the text at a uniform number in [0, 1)."""
    return texts[min(int(share * len(texts)), len(texts) - 1)]
