"""The base of experiments that retell their past: two forms of history, three of reasoning."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

import numpy as np

from knownminds.environments.design import Design
from knownminds.environments.environment import Environment
from knownminds.environments.fields import WORDS, Field, OneOf, OrNone, Whole, setting
from knownminds.environments.replies import Replies
from knownminds.environments.turn import Observation, Turn, Turns

from .answer import Answer, Outcome, parse_label
from .final_answers import MARKER, marker_of
from .prompt import OTHER_WORDS, Message, Prompt, Template, load_templates
from .screen import Screen
from .slots import ANSWERS, Slot

History = Literal["prompt", "chat"]
Reasoning = Literal["none", "chain_of_thought", "step_back"]
HISTORIES: tuple[str, ...] = get_args(History)
REASONINGS: tuple[str, ...] = get_args(Reasoning)

Words = dict[str, object]
Filled = Mapping[str, str]  # the words in the placeholders of a sentence

# These name options; I, O, U, X, Y and Z are left out, since they are easily mistaken.
LETTERS = np.array(list("ABCDEFGHJKLMNPQRSTVW"))
FIRST = Field("first", (0, 1), "option that is mentioned first", "wording")
# These texts limit the length of thoughts; they are the same in all experiments.
LIMITS = {
    "chain_of_thought": "Use at most {} words for thinking.",
    "step_back": "Use at most {} words for the rule, and at most as many for applying it.",
}
T = TypeVar("T", bound="_Lines")
_BEFORE = "_before"  # ends the placeholders of a feedback, which is about the trial before


class Retelling(Environment):
    """An experiment whose prompts retell earlier trials.

    In the form "prompt" one message holds an introduction, a line for each past trial, and the
    question. In the form "chat" each past trial is a question and a reply, and its feedback opens
    the next message. A subclass defines which words stand in a trial's sentences and what they
    mean. This class puts prompts together and takes them apart.

    An experiment has these templates: introduction, history_begins, silence (for a past reply
    without text), and answer_REASONING for each form of reasoning. Each kind of trial has question,
    history_line, missing_line, feedback and missing_feedback, with _KIND after the name if there
    are several kinds.

    Attributes
    ----------
    kinds : Kinds of trials, each with sentences of its own.
    slots : What fills the placeholders of sentences, by placeholder. Those of answers, rewards and
        feedback belong to the answer of a trial, all others to its question. All kinds share them;
        a sentence need not use them all.
    noun : The word for what an answer names.
    thought : The thoughts of a cooperative participant, before the marked answer.
    """

    kinds: ClassVar[tuple[str, ...]] = ("",)
    slots: ClassVar[Mapping[str, Slot]] = {}
    noun: ClassVar[str] = ""
    thought: ClassVar[str]

    marker: str = MARKER  # the marker as the templates have it

    shipped: Path  # the templates that ship

    history: History = setting(
        "prompt",
        OneOf(HISTORIES),
        '"prompt" retells the past in one message; "chat" sends it as past turns.',
    )
    reasoning: Reasoning = setting(
        "none",
        OneOf(REASONINGS),
        '"none" asks for the answer alone; "chain_of_thought" and "step_back" for thoughts first '
        "and the answer in a marked last line.",
    )
    templates: str | None = setting(None, WORDS, OTHER_WORDS)
    thought_words: int | None = setting(
        None,
        OrNone(Whole(1)),
        "How many words thoughts may have at most, with step_back for each step; None for no "
        "limit. CogBench has 100 for chain_of_thought and 60 for step_back.",
    )

    def _kind(self, observation: Observation) -> str:
        """Return the kind of a trial."""
        return self.kinds[0]

    def _words(self, labels: Any, observation: Observation) -> Words:
        """Return the words of a question, as far as the observation has the values for them."""
        turn = Turn(observation, None, None)
        return {
            name: slot.write(self.options, labels, turn)
            for name, slot in self._of_questions.items()
            if slot.field in observation
        }

    def _feedback_words(self, labels: Any, turn: Turn) -> Words:
        """Return the words for the answer, and for what it brought."""
        return {
            name: slot.write(self.options, labels, turn) for name, slot in self._of_answers.items()
        }

    def _seen(
        self, design: Design, kind: str, filled: Filled, turns: Sequence[Turn]
    ) -> Observation:
        """Return the trial that comes after these turns, from the words of a sentence.

        Fields that no word shows are left out. Raises ValueError for unknown names.
        """
        return self._shown_by(design.labels, filled, {"trial": len(turns)})

    def _shown_by(self, labels: Any, filled: Filled, known: Observation) -> Observation:
        """Return a partly known trial, completed by the words of a sentence."""
        seen = dict(known)
        for name, slot in self._of_questions.items():
            if name in filled and slot.field not in seen:
                seen[slot.field] = slot.read(self.options, labels, filled[name], seen)
        return seen

    def _brought(self, labels: Any, kind: str, filled: Filled, seen: Observation) -> Turn:
        """Return a past trial, given the words of its line."""
        values = {
            slot.field: slot.read(self.options, labels, filled[name], seen)
            for name, slot in self._of_answers.items()
            if name in filled and slot.field in ("action", "response")
        }
        action = int(values["action"]) if "action" in values else None
        reward, feedback = self._paid(labels, kind, filled)
        return Turn(seen, action, reward, response=values.get("response"), brought=feedback)

    def _paid(
        self, labels: Any, kind: str, filled: Filled
    ) -> tuple[float | None, Mapping[str, float]]:
        """Return reward (None if hidden) and feedback fields, from the words of a feedback."""
        values = {
            slot.field: slot.read(self.options, labels, filled[name], {})
            for name, slot in self._of_answers.items()
            if name in filled and slot.field not in ("action", "response")
        }
        return values.pop("reward", None), values

    def options(self, labels: Any, observation: Observation) -> list[str]:
        """Return the names of the actions."""
        raise NotImplementedError

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read which action the answer names."""
        options = self.options(labels, observation)
        marked = self.reasoning != "none"
        return parse_label(text, options, marked, self.noun, self.marker)

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        """Return an answer in the required form."""
        return self._aloud(self.options(labels, observation)[choice])

    def _aloud(self, said: str) -> str:
        return said if self.reasoning == "none" else f"{self.thought}\n{self.marker} {said}"

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        """Put the present trial, and what came before it, into words."""
        turns = self.recalled(turns, observation)
        if self.history == "prompt":
            kind, words = self._kind(observation), self._words(labels, observation)
            if not turns:
                return Prompt((Message("user", self._opening[kind].render(**words)),))
            past = "\n".join(self._told(labels, turns, _Lines).told)
            return Prompt((Message("user", self._retold[kind].render(past=past, **words)),))
        talk = self._told(labels, turns, _Talk)
        return Prompt((*talk.told, talk.question(Turn(observation, None, None))[0]))

    def _told(self, labels: Any, turns: Sequence[Turn], kind: type[T]) -> T:
        """Return the words of past turns; of a session those that are new are told alone."""
        names = json.dumps(labels)
        if not isinstance(turns, Turns):
            return kind(self, labels, names).go_on(turns)
        told: T | None = turns.told.get((self, names))
        if told is None:
            told = turns.told[self, names] = kind(self, labels, names)
        return told.go_on(turns)

    def screen(self, labels: Any, observation: Observation) -> Screen:
        """Return introduction and question; a person who remembers is shown nothing twice.

        Raises
        ------
        ValueError : If a trial takes several replies.
        """
        if type(self.replies).further is not Replies.further:
            raise ValueError(
                f"A page asks once in each trial; {self!r} asks several times. Choose settings "
                "with which one reply is a whole answer."
            )
        kind, words = self._kind(observation), self._words(labels, observation)
        given = self.asks(observation)
        options = () if given == "response" else tuple(self.options(labels, observation))
        introduction = self._begun[kind].render(**words)
        return Screen(introduction, self._asks[kind].render(**words), options, (), given)

    def feedback_text(self, labels: Any, turn: Turn) -> str:
        """Return what the answer brought in words; "" if there is nothing to show."""
        if not self.feedback and not is_missing(turn):
            return ""
        form = self._said_after[self._kind(turn.observation), is_missing(turn)]
        return form.render(
            **{**self._words(labels, turn.observation), **self._words_after(labels, turn)}
        )

    def read(self, design: Design, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to turns and observation.

        Past turns that are retold in one prompt lack what their lines do not show. Raises
        ValueError if the messages are not a prompt of this environment with these settings.
        """
        if len(messages) % 2 == 0 or (self.history == "prompt" and len(messages) > 1):
            raise ValueError(
                f'A prompt of {self.name} with history "{self.history}" has '
                f"{'one message' if self.history == 'prompt' else 'an odd number of messages'}; "
                f"got {len(messages)}. Use the settings it was rendered with."
            )
        opening = messages[0].content
        if self.history == "prompt":
            for kind, form in self._retold.items():
                filled = form.read(opening)
                if filled is not None:
                    heard, lines = _heard(self, design, ""), filled["past"].split("\n")
                    for line in lines[heard.go_back(lines) :]:
                        heard.add(line, self._read_line(design, line, heard.turns))
                    return [*heard.turns], self._seen(design, kind, filled, heard.turns)
        kind, filled = self._must_read(self._opening, opening)
        observation = self._seen(design, kind, filled, [])
        heard, texts = _heard(self, design, opening), [message.content for message in messages[1:]]
        replies = list(zip(texts[::2], texts[1::2], strict=True))
        n = heard.go_back(replies)
        if n:
            kind, observation = heard.then[-1]
        for said, message in replies[n:]:
            forms = {k: f for k, f in self._following.items() if k[0] == kind}
            (_, missing, kind_now), filled = self._must_read(forms, message)
            text = "" if said == self._silence else said
            turn = (
                Turn(observation, None, None, text)
                if missing
                else self._replied(design.labels, observation, text, filled)
            )
            seen = self._seen(design, kind_now, filled, [*heard.turns, turn])
            kind, observation = kind_now, seen
            heard.add((said, message), turn, (kind, observation))
        return [*heard.turns], observation

    def _choose_words(
        self,
        introduction: str = "introduction",
        question: str = "question",
        answer: str = "answer",
        **sizes: object,
    ) -> Mapping[str, Template]:
        """Load the templates of the chosen wording, and return them.

        `introduction`, `question` and `answer` name the templates that open every prompt, ask the
        question, and say how to answer. `sizes` are filled into the introduction.
        """
        words = load_templates(self.templates, self.shipped)
        for name, template in words.items():
            if name.startswith(("history_line", "missing_line")) and "\n" in template.text:
                raise ValueError(
                    f"The template {name!r} is one line; {self.templates} has several."
                )
        begun = words[introduction].render(**sizes)
        form, past = f"{answer}_{self.reasoning}", words["history_begins"].text
        how = words[form].text
        if self.reasoning != "none":
            self.marker = self._marker_in(form, how)
        how = self._limited(how)
        asks = {k: f"{words[_named(question, k)].text}\n{how}" for k in self.kinds}
        self._begun = {k: Template(begun) for k in self.kinds}
        self._asks = {k: words[_named(question, k)] for k in self.kinds}
        self._said_after = {
            (k, bool(missing)): words[_named(form, k)]
            for k in self.kinds
            for missing, form in enumerate(("feedback", "missing_feedback"))
        }
        self._opening = {k: Template(f"{begun}\n\n{asks[k]}") for k in self.kinds}
        self._retold = {
            k: Template(f"{begun}\n\n{past}\n{{past}}\n\n{asks[k]}") for k in self.kinds
        }
        self._following = {
            (before, missing, k): Template(
                f"{words[_named(form, before)].renamed(_before).text}\n\n{asks[k]}"
            )
            for before in self.kinds
            for missing, form in enumerate(("feedback", "missing_feedback"))
            for k in self.kinds
        }
        self._lines = {
            (k, missing): words[_named(form, k)]
            for k in self.kinds
            for missing, form in enumerate(("history_line", "missing_line"))
        }
        self._silence = words["silence"].text
        answered = (*ANSWERS, *self.fields.feedback)
        slots = sorted(self.slots.items(), key=lambda named: named[1].field in self.fields.wording)
        self._of_questions = {name: slot for name, slot in slots if slot.field not in answered}
        self._of_answers = {name: slot for name, slot in slots if slot.field in answered}
        return words

    def _marker_in(self, name: str, answer: str) -> str:
        """Return the text that opens the last line of an answer; ValueError if there is none."""
        marker = marker_of(answer)
        if marker is None:
            raise ValueError(
                f"The template {name!r} says in quotes what opens the line with the answer, such "
                f'as "Answer: ", or the answer could not be found; {self.templates} has '
                f"{answer[:80]!r}."
            )
        return marker

    def _limited(self, answer: str) -> str:
        """Return the instruction on how to answer, with the limit on thoughts if there is one."""
        if self.thought_words is None:
            return answer
        if self.reasoning == "none":
            raise ValueError(
                "A limit on thoughts goes with reasoning=chain_of_thought or step_back; got "
                f"thought_words={self.thought_words} without. Leave it out."
            )
        return f"{answer}\n{LIMITS[self.reasoning].format(self.thought_words)}"

    def _words_after(self, labels: Any, turn: Turn) -> Words:
        return {} if is_missing(turn) else self._feedback_words(labels, turn)

    def _reply(self, labels: Any, turn: Turn) -> str:
        """Return a past reply as it came; an empty one is replaced, since no provider takes it."""
        if turn.text.strip():
            return turn.text
        if is_missing(turn):
            return self._silence
        answer = Answer(Outcome.OK, action=turn.action, response=turn.response)
        return self.say(labels, answer.choice, turn.observation)

    def _read_line(self, design: Design, line: str, turns: Sequence[Turn]) -> Turn:
        (kind, missing), filled = self._must_read(self._lines, line)
        seen = self._seen(design, kind, filled, turns)
        return (
            Turn(seen, None, None) if missing else self._brought(design.labels, kind, filled, seen)
        )

    def _replied(self, labels: Any, observation: Observation, text: str, filled: Filled) -> Turn:
        """Return a past trial, given its reply and the words of the message that followed."""
        answer = self.parse(labels, text, observation)
        if answer.choice is None:
            raise ValueError(
                f"A reply that was taken can be read; got {text[:60]!r}. "
                "Use the seed, settings and templates it was rendered with."
            )
        before = {
            name.removesuffix(_BEFORE): word
            for name, word in filled.items()
            if name.endswith(_BEFORE)
        }
        reward, feedback = self._paid(labels, self._kind(observation), before)
        return Turn(observation, answer.action, reward, text, answer.response, feedback)

    def _in_question(self, messages: Sequence[Message]) -> dict[str, str]:
        """Return the words of the question that opens a prompt, if all trials are of one kind."""
        opening = messages[0].content if messages else ""
        return self._must_read({"past": self._retold[""], "none": self._opening[""]}, opening)[1]

    def _names_by(self, placeholder: str, messages: Sequence[Message]) -> dict[str, set[str]]:
        """Return the options that a prompt names, by the word in a placeholder; "" if unnamed."""
        first, *later = [m.content for m in messages if m.role == "user"] or [""]
        opening = (*self._retold.values(), *self._opening.values())
        filled = _filled(opening, first)
        lines = [
            _filled(tuple(self._lines.values()), x) for x in filled.get("past", "").split("\n")
        ]
        after = [_filled(tuple(self._following.values()), message) for message in later]
        names: dict[str, set[str]] = {}
        for words in (filled, *lines, *after) if filled else ():
            options = {words[name] for name in ("label", "first", "second") if name in words}
            names.setdefault(words.get(placeholder, ""), set()).update(options)
        return names

    def _must_read(self, forms: Mapping[Any, Template], text: str) -> tuple[Any, dict[str, str]]:
        for key, form in forms.items():
            filled = form.read(text)
            if filled is not None:
                return key, filled
        raise ValueError(
            f"The prompt is not one of {self.name} with these settings; it begins "
            f"{text[:60]!r}. Use the settings and templates it was rendered with."
        )


class _Heard:
    """What the prompts of a session told so far, piece by piece, which is not read again."""

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.turns: list[Turn] = []  # that each piece tells
        self.then: list[tuple[str, Observation]] = []  # of a talk: kind and trial of what it asks

    def go_back(self, pieces: Sequence[Any]) -> int:
        """Forget what comes behind the common beginning; return how many pieces that has."""
        n = len(self.pieces)
        if pieces[:n] != self.pieces:
            pairs = enumerate(zip(pieces, self.pieces, strict=False))
            n = next((k for k, (now, before) in pairs if now != before), min(n, len(pieces)))
        del self.pieces[n:], self.turns[n:], self.then[n:]
        return n

    def add(self, piece: Any, turn: Turn, then: Any = None) -> None:
        """Remember the turn that a piece tells."""
        self.pieces.append(piece)
        self.turns.append(turn)
        self.then.append(then)


@lru_cache(maxsize=64)  # so many sessions are read at the same time
def _heard(environment: Retelling, design: Design, opening: str) -> _Heard:
    return _Heard()


class _Lines:
    """A line for each past turn."""

    def __init__(self, environment: Retelling, labels: Any, names: str):
        self.environment, self.labels, self.names = environment, labels, names
        self.told: list[Any] = []
        self.n = 0  # turns that were told
        self.before: Turn | None = None  # the last of them, of a talk, and its words
        self.words_before: Words = {}

    def go_on(self, turns: Sequence[Turn]) -> Self:
        """Tell the turns that were not told yet."""
        for turn in turns[self.n :]:
            self.tell(turn)
        self.n = len(turns)
        return self

    def tell(self, turn: Turn) -> None:
        """Add the line of a turn."""
        self.told.append(_line(self.environment, self.names, turn))


class _Talk(_Lines):
    """Two messages for each past turn: a question, behind the feedback before it, and the reply."""

    def question(self, now: Turn) -> tuple[Message, Words]:
        """Return the message that asks, and the words in it."""
        told = self.environment
        kind, words = told._kind(now.observation), told._words(self.labels, now.observation)
        form = told._opening[kind]
        if self.before is not None:
            past = told._kind(self.before.observation), is_missing(self.before)
            form = told._following[*past, kind]
        return Message("user", form.render(**words, **self.words_before)), words

    def tell(self, turn: Turn) -> None:
        """Add the question and the reply of a turn."""
        message, words = self.question(turn)
        self.told += [message, Message("assistant", self.environment._reply(self.labels, turn))]
        words |= self.environment._words_after(self.labels, turn)
        self.before = turn
        self.words_before = {_before(name): word for name, word in words.items()}


@lru_cache(maxsize=2**14)  # where a prompt tells a part, each repeats lines of the one before
def _line(environment: Retelling, labels: str, turn: Turn) -> str:
    """Return a line of the history; the labels are JSON, which has a hash."""
    form = environment._lines[environment._kind(turn.observation), is_missing(turn)]
    names = json.loads(labels)
    words = environment._words(names, turn.observation) | environment._words_after(names, turn)
    return form.render(**words)


@lru_cache(maxsize=2**14)  # prompts of one session repeat the earlier ones
def _filled(forms: tuple[Template, ...], text: str) -> Filled:
    """Return the words in a text's placeholders, by the first form that fits; {} if none does."""
    return next((words for form in forms if (words := form.read(text)) is not None), {})


def two_names(names: set[str]) -> list[str]:
    """Return two names in order, with a sign for each that no prompt has named so far."""
    return (sorted(names) + ["?"] * 2)[:2]


def is_missing(turn: Turn) -> bool:
    """Say whether a turn has no answer that could be read."""
    return turn.action is None and turn.response is None


def _named(form: str, kind: str) -> str:
    return f"{form}_{kind}" if kind else form


def _before(name: str) -> str:
    return name + _BEFORE
