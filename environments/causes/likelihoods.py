"""Questions answered by a likelihood from 0 to 100: a number alone, or thoughts and a number."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from knownminds.environments.conditions import shipped_words
from knownminds.environments.fields import WORDS, OneOf, Whole, setting
from knownminds.environments.questions import Questions
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import (
    Answer,
    Outcome,
    _told,
    _unreadable,
    decimal,
    parse_number,
)
from knownminds.environments.words.final_answers import without_thoughts
from knownminds.environments.words.prompt import (
    OTHER_WORDS,
    Message,
    Prompt,
    Template,
    load_templates,
)
from knownminds.environments.words.screen import Screen

Form = Literal["numeric", "chain_of_thought"]
FORMS: tuple[str, ...] = get_args(Form)

_THOUGHT = "I go along the links from what I learned to what I am asked."
_FRAME = re.compile(
    r"<answer>\s*<reasoning>.*</reasoning>\s*<likelihood>[^<]*</likelihood>\s*</answer>", re.DOTALL
)
_OPEN, _CLOSE = (re.compile(rf"<{s}likelihood\s*>", re.IGNORECASE) for s in ("", "/"))


class LikelihoodQuestions(Questions):
    """Questions that stand alone, each answered by a likelihood from 0 to 100."""

    given = "response"
    n_actions = 0
    response_range = (0.0, 100.0)

    repeats: int = setting(
        1,
        Whole(1),
        "How often a session asks each question, round by round. With more than one, a prompt "
        "begins with the number of the round: the same prompt would bring the same answer again "
        "from those who answer by a seed.",
        size=True,
    )
    answer: Form = setting(
        "numeric",
        OneOf(FORMS),
        '"numeric" asks for a number alone, "chain_of_thought" for thoughts and a number in an XML '
        "frame.",
    )
    templates: str | None = setting(None, WORDS, OTHER_WORDS)

    _words: dict[str, Template]

    def _load_words(self) -> None:
        """Take the templates; one must ask for the tag that is read from an answer."""
        words = load_templates(self.templates, shipped_words(self))
        frame = words["answer_chain_of_thought"].text
        if "<likelihood>" not in frame:
            raise ValueError(
                "The template 'answer_chain_of_thought' asks for <likelihood>, which is what is "
                f"read of an answer; got {frame!r}."
            )
        self._words = words

    @abstractmethod
    def _text(self, labels: Any, observation: Observation) -> str:
        """Return a question in words."""

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        text = self._text(labels, observation)
        if self.repeats > 1:
            number = int(observation["round"]) + 1
            opening = self._words["round"].render(round=number, repeats=self.repeats)
            text = f"{opening}\n\n{text}"
        return Prompt((Message("user", text),))

    def screen(self, labels: Any, observation: Observation) -> Screen:
        """Return a prompt as people see it: without the instruction on the form of an answer."""
        text = self.render(labels, observation, ()).messages[0].content
        answer = self._words[f"answer_{self.answer}"].text
        return Screen("", text.replace(answer, "").strip(), asks="response")

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read the number from 0 to 100.

        In the numeric form it is read by the rules of `parse_number`. Decimals are kept and never
        rescaled: 0.75 means three quarters of a point. A percent sign right after the number, or
        after one blank, is repaired: on this scale 75% can only mean 75. Ranges, fractions, decimal
        commas, and the word for percent are malformed.

        In the form chain_of_thought the number stands between <likelihood> and </likelihood> and is
        read by the same rules; nothing else is read. The answer is malformed if either tag is
        missing or occurs more than once. Any other departure from the frame is repaired and noted.
        """
        return _parse_frame(text) if self.answer != "numeric" else parse_number(text, 0.0, 100.0)

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        number = decimal(choice)
        if self.answer == "numeric":
            return number
        frame = f"<reasoning>{_THOUGHT}</reasoning><likelihood>{number}</likelihood>"
        return f"<answer>{frame}</answer>"


def check_words_differ(texts: Mapping[Any, str], columns: Sequence[str]) -> None:
    """Raise ValueError unless every question has different words.

    `texts` has a text for each question, a tuple of the `columns`; the last column is the round.
    """
    questions: dict[str, Any] = {}
    for (*question, _), text in texts.items():
        other = questions.setdefault(text, question)
        if other != question:
            raise ValueError(
                f"Each question has different words; {other} and {question} "
                f"({', '.join(columns[:-1])}) both read {text!r}. Let templates and stories tell "
                "them apart."
            )


def _parse_frame(text: str) -> Answer:
    """Read the one likelihood in an XML frame."""
    if not text.strip():
        return Answer(Outcome.EMPTY, text=text, note="no text")
    notes: list[str] = []
    said = without_thoughts(text, notes)
    opened, closed = list(_OPEN.finditer(said)), list(_CLOSE.finditer(said))
    if not opened or not closed:
        return _unreadable(text, "expected <likelihood>NUMBER</likelihood>", said)
    if len(opened) > 1 or len(closed) > 1 or closed[0].start() < opened[0].end():
        return Answer(Outcome.MALFORMED, text=text, note="expected one <likelihood>")
    inside = said[opened[0].end() : closed[0].start()]
    answer = parse_number(inside, 0.0, 100.0)
    if answer.response is None:
        outcome = Outcome.MALFORMED if answer.outcome is Outcome.EMPTY else answer.outcome
        return replace(answer, outcome=outcome, text=text)
    notes += [answer.note] if answer.note else []
    if not _FRAME.fullmatch(said):
        notes.append("other than the frame" if not _FRAME.search(said) else "text around the frame")
    outcome = Outcome.REPAIRED if notes else Outcome.OK
    return replace(answer, outcome=outcome, text=text, note=_told(notes))
