"""What real participants add to any model: lapses, refusals, unreadable and cut answers."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

REFUSAL_TEXT = "I'm sorry, but I can't help with that."
MALFORMED_TEXT = "Hard to say, they all look much the same to me."


@dataclass(frozen=True)
class Contaminants:
    """Rates at which responses go wrong, the same dials for every agent.

    `lapse` is part of the decision: a uniform pick among the actions. The other three act on the
    answer in words: a refusal, a text without an answer, a text cut short. An answer is hit
    by at most one of them.
    """

    lapse: float = 0.0
    refusal: float = 0.0
    malformed: float = 0.0
    truncation: float = 0.0

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

    def speak(self, text: str, rng: np.random.Generator) -> tuple[str, str]:
        """Return the text as it leaves the mouth, and the reason it ends ("stop", "length").

        Uses one uniform number, whatever the rates, so that sessions with and without
        contaminants stay aligned.
        """
        u = rng.random()
        if u < self.refusal:
            return REFUSAL_TEXT, "stop"
        if u < self.refusal + self.malformed:
            return MALFORMED_TEXT, "stop"
        if u < self.refusal + self.malformed + self.truncation:
            return text[: len(text) // 2], "length"
        return text, "stop"
