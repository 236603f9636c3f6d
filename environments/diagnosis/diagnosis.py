"""Diagnosis: how likely a condition is given facts about a person, and whether to decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.environments.conditions import shipped_words
from knownminds.environments.design import Design
from knownminds.environments.fields import (
    TEXT,
    WORDS,
    CheckedBy,
    Field,
    Fields,
    OneOf,
    OrNone,
    SomeOf,
    Whole,
    as_given,
    coded,
    setting,
)
from knownminds.environments.later import pandas as pd
from knownminds.environments.questions import Questions, positions_of
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.replies import Replies
from knownminds.environments.search_ranges import Span
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import Answer, decimal
from knownminds.environments.words.history import REASONINGS, Reasoning
from knownminds.environments.words.labelled_lines import parse_distribution, parse_words
from knownminds.environments.words.prompt import OTHER_WORDS, Message, Prompt, load_templates
from knownminds.environments.words.screen import Screen

from .belief_network import UNTOLD
from .evidence_contexts import MOST_PER_BIN, EvidenceContexts, spread_contexts
from .network_files import MINIMUM_SUPPORT, load_network

Elicitation = Literal["plain", "squared", "absolute", "bayesian"]
Asked = Literal["belief", "decision", "expectation"]
Parts = Literal["distribution", "separate"]
ELICITATIONS: tuple[str, ...] = get_args(Elicitation)
ASKED: tuple[str, ...] = get_args(Asked)
PARTS: tuple[str, ...] = get_args(Parts)
# The position of a name is its number in the column `question`.
QUESTIONS = ("belief", "decision", "part", "within", "share")
_QUESTION = "0 belief, 1 decision, 2 part, 3 within, 4 share"
BELIEF, DECISION, PART, WITHIN, SHARE = range(5)
ACTIONS = ("Yes", "Defer", "No")
YES, DEFER, NO = range(3)

_ANSWERS = ("No", "Yes")
_STEPS = ("Can decide", "Decision")
_KINDS = {DECISION: "decision", SHARE: "share"}  # kinds of answers; all others are a probability
_THOUGHT = "I weigh what is told of this person."
_ABSENT = {"repetition": 0, "elicitation": 0, "part": -1, "idiosyncrasy": 0.0}


def _edges(name: str, given: Any) -> list[list[str]]:
    if not all(len(pair) == 2 for pair in given):
        raise ValueError(f"{name} are pairs of parent and child; got {given!r}.")
    return [list(map(str, pair)) for pair in given]


# People choose among these for a decision, by the action.
DECIDED = (
    "It is enough, and I say yes",
    "It is not enough to decide",
    "It is enough, and I say no",
)


class Diagnosis(Questions):
    """Beliefs and decisions about a condition whose exact probability is known.

    A belief network draws whether a person has a condition (theta) and what is known of the person
    (x), so that P(theta = 1 | x) is known exactly. Each question stands alone. There are three
    sorts. Beliefs: how likely the condition is, under several elicitations. Decisions, in two
    steps: whether the facts are enough to decide, and which way one would decide if one had to;
    this makes Yes, Defer or No. Expectations to be iterated: how probable the states z of another
    variable are given x, and how likely the condition is given x and z. Nothing is paid, and no
    earlier question is shown.

    A session has `n_contexts` contexts, equally many in each bin of the exact probability that the
    network reaches. The theta of a context is drawn once, so that answers to the same context are a
    cluster. In each of `repeats` rounds every context gets all questions, one after the other: the
    beliefs, the plain one first; the decision; P(z | x) for every z; and P(theta = 1 | x, z) for
    every z. The order of the contexts is mixed anew in every round.

    The probabilities P(z | x) are asked for as in the paper: the reply to one question is a
    distribution over all z that sums to 1. Each z is a trial; these trials share prompt and reply.
    With `parts` "separate" there is a question with yes or no for each z instead. Two such answers
    may both be .65 and are valid, although they sum to 1.3.

    The column `posterior` of a decision is that of the condition. A coherent agent goes by marginal
    and conditional. Idiosyncrasy is never shown; it is by how much a known agent misreads a
    context, the same in all questions about it. The action is 0 Yes, 1 Defer or 2 No; the response
    is the stated probability.
    """

    name = "diagnosis"
    summary = "probabilities of a condition given evidence, and decisions: yes, defer or no"
    source = "Yamin et al. 2026"
    usual_model = "random_utility"
    untold: ClassVar = ("state",)  # trials have it, and no word tells it
    searched: ClassVar = {"n_contexts": Span(10, 500), "repeats": Span(1, 10), "elicitations": None}
    fields = Fields(
        Field("context", "n_contexts", "from 0"),
        Field("repetition", "repeats", "round, from 0"),
        Field("question", (0, len(QUESTIONS) - 1), _QUESTION),
        Field("elicitation", (0, len(ELICITATIONS) - 1), coded(ELICITATIONS)),
        Field(
            "part",
            lambda environment: (-1, environment.n_parts - 1),
            "number of z; -1 where there is none",
        ),
        Field("posterior", (0.0, 1.0), "the exact one, which is asked for", unit="probability"),
        Field("marginal", (0.0, 1.0), "P(theta = 1 | x)", gaps=True, unit="probability"),
        Field(
            "conditional",
            (0.0, 1.0),
            "P(theta = 1 | x, z), or marginal where there is no z",
            gaps=True,
            unit="probability",
        ),
        Field("state", (0, 1), "theta"),
        Field(
            "idiosyncrasy",
            help="by what a known agent misreads the context",
            unit="standard deviations",
        ),
        Field(
            "evidence",
            lambda environment: (0, environment.bins * MOST_PER_BIN - 1),
            "which of the network's contexts it is",
            "wording",
        ),
    )
    given = "either"
    n_actions = 3
    response_range = (0.0, 1.0)
    performance_bounds = (0.0, 1.0)

    network: str = setting(
        "heart",
        TEXT,
        '"heart" (20 nodes), "diabetes" (22), "fever" (14) or "crying" (13), which are ours and '
        "estimated from no patients; the path of a .bif file, or of a .csv file with a row per "
        'case; or the name of a network that ships with pgmpy, such as "asia".',
    )
    target: str | None = setting(
        None,
        CheckedBy(as_given, "the name of a node, or None"),
        "The queried node, which has two states; None for that of a shipped network.",
    )
    n_contexts: int = setting(200, Whole(1), "How many contexts a session has.", size=True)
    repeats: int = setting(5, Whole(1), "How many rounds.")
    elicitations: tuple[str, ...] = setting(
        ELICITATIONS,
        SomeOf(ELICITATIONS),
        'In which ways beliefs are asked for, in any part: "plain"; "squared" and "absolute" tell '
        'of a loss; "bayesian" tells to reason by Bayes\' rule.',
    )
    questions: tuple[str, ...] = setting(
        ASKED, SomeOf(ASKED), 'What is asked, in any part: "belief", "decision", "expectation".'
    )
    bins: int = setting(20, Whole(1), "Into how many equal bins [0, 1] is cut.")
    minimum_support: int = setting(
        MINIMUM_SUPPORT, Whole(1), "How many cases of a .csv file each stratum needs."
    )
    reasoning: Reasoning = setting(
        "none",
        OneOf(REASONINGS),
        '"none" asks for the lines of the answer alone; "chain_of_thought" and "step_back" for '
        "thoughts before them.",
    )
    templates: str | None = setting(None, WORDS, OTHER_WORDS)
    auxiliary: str | None = setting(
        None,
        CheckedBy(as_given, "the name of a node, or None"),
        "The node z over which expectations are iterated; None for that of a shipped network, "
        "otherwise for a parent of the target. It is never shown.",
    )
    edges: list[list[str]] | None = setting(
        None,
        OrNone(CheckedBy(_edges, "pairs of parent and child")),
        "Pairs of parent and child, for a .csv file; None for edges from the target to all others.",
    )
    parts: Parts = setting(
        "distribution",
        OneOf(PARTS),
        'How P(z | x) is asked for: as one "distribution", or in "separate" questions.',
    )

    def prepare(self) -> None:
        pairs = None if self.edges is None else tuple((a, b) for a, b in self.edges)
        self.belief_network, self._about = load_network(
            self.network, self.target, self.auxiliary, pairs, self.minimum_support
        )
        self._parts = self._about.says[self._about.auxiliary]
        self._labels = tuple(map(_letter, range(len(self._parts))))
        self._words = load_templates(self.templates, shipped_words(self))
        self._check_words()
        self._asked = self._questions()

    @property
    def n_trials(self) -> int:
        return self.n_contexts * self.repeats * len(self._asked)

    @property
    def n_parts(self) -> int:
        """How many states the auxiliary has."""
        return len(self._parts)

    def asks(self, columns: Mapping[str, Any]) -> Any:
        """Return "action" for decisions, and "response" for all that ask for a probability."""
        if isinstance(columns["question"], int | float):
            return "action" if columns["question"] == DECISION else "response"
        return np.where(np.asarray(columns["question"]) == DECISION, "action", "response")

    @property
    def replies(self) -> Replies:
        return _Distributions(self)

    @cached_property
    def contexts(self) -> EvidenceContexts:
        """The contexts from which sessions draw theirs; they are found at the first use."""
        return spread_contexts(self.belief_network, self._about, self.bins)

    @cached_property
    def drawn(self) -> dict[str, tuple[int, ...]]:
        """The design's tables, one number per trial each; this does not search for contexts."""
        return dict.fromkeys(self.fields.shown, ())

    @property
    def n_draws(self) -> int:
        """Four numbers per context, and one per context and round, to put them in order."""
        return (4 + self.repeats) * self.n_contexts

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the contexts, round by round, and the questions about each."""
        known, n = self.contexts, self.n_contexts
        each = uniforms.reshape(len(uniforms), 4 + self.repeats, n)
        # The number of a context must not reveal its probability, so runs are dealt out at random.
        run = np.argsort(np.argsort(each[:, 0], axis=1), axis=1)
        low, high = known.blocks(n)
        chosen = low[run] + (each[:, 1] * (high - low)[run]).astype(np.int64)
        state = (each[:, 2] < known.posterior[chosen]).astype(np.int64)
        idiosyncrasy = ndtri(np.maximum(each[:, 3], np.finfo(float).tiny))
        order = np.argsort(each[:, 4:], axis=2)

        question, elicitation, part = np.array(self._asked, dtype=np.int64).T
        exact = np.column_stack([known.posterior, known.part, known.within])
        given = np.where(part >= 0, 1 + self.n_parts + part, 0)
        at = np.where(np.isin(question, (PART, SHARE)), 1 + part, given)
        shape = (*order.shape, len(self._asked))

        def by_slot(values: NDArray[Any]) -> NDArray[Any]:
            """Repeat a value per slot (trailing axis 1) or per question over all trials."""
            return np.broadcast_to(values, shape).reshape(len(uniforms), -1)

        def of_context(values: NDArray[Any]) -> NDArray[Any]:
            return np.take_along_axis(values[:, None], order, axis=2)[..., None]

        evidence = of_context(chosen)
        return {
            "context": by_slot(order[..., None]),
            "repetition": by_slot(np.arange(self.repeats)[:, None, None]),
            "question": by_slot(question),
            "elicitation": by_slot(elicitation),
            "part": by_slot(part),
            "posterior": exact[evidence, at].reshape(len(uniforms), -1),
            "marginal": by_slot(known.posterior[evidence]),
            "conditional": exact[evidence, given].reshape(len(uniforms), -1),
            "state": by_slot(of_context(state)),
            "idiosyncrasy": by_slot(of_context(idiosyncrasy)),
            "evidence": by_slot(evidence),
        }

    def right(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the exact probability that is asked for; NaN for decisions."""
        number_given = np.asarray(self.asks(columns)) == "response"
        return np.where(number_given, np.asarray(columns["posterior"], dtype=float), np.nan)

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        """Return the experiment with the numbers of contexts and rounds that the trials show.

        `parts` is "separate" if all questions for P(z | x) in the trials are of that kind.
        """
        settings: dict[str, Any] = {}
        if "question" in frame:
            questions = set(frame["question"].dropna().tolist())
            if questions & {PART, QUESTIONS[PART]} and not questions & {SHARE, QUESTIONS[SHARE]}:
                settings["parts"] = "separate"
        for chosen, column in (("n_contexts", "context"), ("repeats", "repetition")):
            if column in frame and pd.api.types.is_numeric_dtype(frame[column]) and len(frame):
                most = frame[column].max()
                if pd.notna(most) and most >= 0 and most == int(most):
                    settings[chosen] = int(most) + 1
        return cls(**settings)

    def complete(self, trials: Trials) -> pd.DataFrame:
        """Return the table with the columns that follow from others.

        Questions and elicitations may be given by name. Absent columns are filled in: repetition 0,
        elicitation plain, part -1, and idiosyncrasy 0, since only known agents have one. Marginal
        and conditional come from the posterior on other rows of the same context, and are missing
        if no row has it.
        """
        frame = trials.frame
        added: dict[str, Any] = {
            name: value
            for name, value in _ABSENT.items()
            if name not in frame and {"context", "question", "posterior"} <= set(frame)
        }
        for column, known in (("question", QUESTIONS), ("elicitation", ELICITATIONS)):
            if column in frame and not pd.api.types.is_numeric_dtype(frame[column]):
                added[column] = positions_of(trials, column, known)
        frame = frame.assign(**added) if added else frame
        if not {"context", "question", "posterior"} <= set(frame):
            return frame
        unit = [name for name in ("subject", "session", "context") if name in frame]
        question = frame["question"]
        for name, rows, within in (
            ("marginal", question <= DECISION, unit),
            ("conditional", question == WITHIN, [*unit, "part"]),
        ):
            if name not in frame:
                of_rows = frame["posterior"].where(rows).astype(float)
                keys = [frame[key] for key in within]
                filled = of_rows.groupby(keys, sort=False).transform("first")
                if name == "conditional":
                    filled = filled.where(frame["part"] >= 0, frame["marginal"])
                frame = frame.assign(**{name: filled})
        return frame

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        yield (
            "A part is a number from 0 on for parts, within and shares, else -1",
            (trials.numbers("part") >= 0)
            == np.isin(trials.numbers("question"), (PART, WITHIN, SHARE)),
            ("question", "part"),
            "Correct it.",
        )
        frame = trials.frame
        states = frame.groupby(["subject", "session", "context"], sort=False)["state"]
        yield (
            "A state is the same wherever a context is asked about",
            frame["state"] == states.transform("first"),
            ("context", "state"),
            "Correct it.",
        )

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        return Prompt((Message("user", self._text(observation)),))

    def screen(self, labels: Any, observation: Observation) -> Screen:
        given = self.asks(observation)
        text = self._text(observation, answered=False).strip()
        if observation["question"] == SHARE:
            return Screen("", text, asks=given, numbers=self._labels)
        return Screen("", text, DECIDED if given == "action" else (), asks=given)

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read the labelled lines of an answer.

        For a probability the lines are "No:" and "Yes:", each with a number from 0 to 1. They sum
        to 1; the response is the number after Yes. For a distribution over states the lines are
        "A:", "B:" and so on, one for each; the response is the number of the trial's state. A sum
        that differs from 1 by at most .005 per line, as after rounding to two decimals, is repaired
        and noted. A larger difference is malformed: nothing is normalised. For a decision the lines
        are "Can decide:" and "Decision:", each with Yes or No; a participant who cannot decide
        defers, whatever the second line says. A label that is missing, or opens two lines, is
        malformed; without reasoning, so is any other line.
        """
        alone = self.reasoning == "none"
        if observation["question"] == SHARE:
            label = self._labels[int(observation["part"])]
            return parse_distribution(text, self._labels, label, alone)
        if self.asks(observation) == "response":
            return parse_distribution(text, _ANSWERS, "Yes", alone)
        read = parse_words(text, _STEPS, ("Yes", "No"), alone)
        if isinstance(read, Answer):
            return read
        (unable, decided), answer = read
        return replace(answer, action=DEFER if unable else (NO if decided else YES))

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        if observation["question"] == SHARE:
            if not isinstance(choice, tuple) or len(choice) != self.n_parts:
                raise ValueError(
                    f"A distribution has a number for each of {self.n_parts} states, in a tuple; "
                    f"got {choice!r}."
                )
            pairs = zip(self._labels, choice, strict=True)
            said = [f"{label}: {decimal(round(float(q), 12))}" for label, q in pairs]
        elif self.asks(observation) == "response":
            p = float(choice)
            rest = round(1.0 - p, 12)
            said = [f"{label}: {decimal(q)}" for label, q in zip(_ANSWERS, (rest, p), strict=True)]
        else:
            words = ("No" if choice == DEFER else "Yes", "Yes" if choice == YES else "No")
            said = [f"{label}: {word}" for label, word in zip(_STEPS, words, strict=True)]
        return "\n".join([*([] if self.reasoning == "none" else [_THOUGHT]), *said])

    def _heading(self, context: int, repetition: int) -> str:
        form = "heading_once" if self.repeats == 1 else "heading_again"
        return self._words[form].render(case=context + 1, round=repetition + 1, rounds=self.repeats)

    def _text(self, observation: Observation, answered: bool = True) -> str:
        question, part = int(observation["question"]), int(observation["part"])
        about = {"condition": self._about.condition, "person": self._about.person}
        answer = self._words[f"answer_{_KINDS.get(question, 'probability')}_{self.reasoning}"]
        words: dict[str, Any] = {}
        if question == SHARE:
            line, share = self._words["part_line"], self._words["share_line"]
            states = zip(self._labels, self._parts, strict=True)
            person = self._about.person
            about["parts"] = "\n".join(
                line.render(label=k, part=z, person=person) for k, z in states
            )
            lines = "\n".join(share.render(label=label) for label in self._labels)
            words = {"n": self.n_parts, "lines": lines}
        elif part >= 0:
            about["part"] = self._parts[part]
        elicitation = ELICITATIONS[int(observation["elicitation"])]
        task = self._words[f"elicitation_{elicitation}"].render(**about)
        text = self._words["prompt"].render(
            heading=self._heading(int(observation["context"]), int(observation["repetition"])),
            person=self._about.person,
            facts=self._facts(int(observation["evidence"])),
            question=self._words[f"question_{QUESTIONS[question]}"].render(**about),
            task=task if question == BELIEF else "",
            answer=answer.render(**words) if answered else "",
        )
        return "\n".join(line.rstrip() for line in text.splitlines()).replace("\n\n\n", "\n\n")

    def _facts(self, evidence: int) -> str:
        """Return the facts about a person in words, in the order of the network's nodes."""
        states = self.contexts.evidence[evidence]
        facts = [
            self._about.says[node.name][state]
            for node, state in zip(self.belief_network.nodes, states.tolist(), strict=True)
            if state != UNTOLD
        ]
        *before, last = facts
        return f"who {', '.join(before)} and {last}" if before else f"who {last}"

    def _questions(self) -> list[tuple[int, int, int]]:
        """Return what each context is asked in a round: question, elicitation and part."""
        every = []
        if "belief" in self.questions:
            every += [(BELIEF, ELICITATIONS.index(e), -1) for e in self.elicitations]
        if "decision" in self.questions:
            every.append((DECISION, 0, -1))
        if "expectation" in self.questions:
            parts = range(len(self._parts))
            first = SHARE if self.parts == "distribution" else PART
            every += [(question, 0, part) for question in (first, WITHIN) for part in parts]
        return every

    def _check_words(self) -> None:
        """Raise ValueError unless templates ask for the lines that are read."""
        for kind, labels in (("probability", _ANSWERS), ("decision", _STEPS)):
            name = f"answer_{kind}_{self.reasoning}"
            for label in labels:
                if f"{label}:" not in self._words[name].text:
                    raise ValueError(
                        f"The template {name!r} asks for the line {label!r}, by which answers are "
                        f"read; got {self._words[name].text!r}."
                    )
        shown = self._words["share_line"].render(label="A")
        if not shown.startswith("A:"):
            raise ValueError(
                "The template 'share_line' begins with the label and a colon, by which answers are "
                f"read; got {self._words['share_line'].text!r}."
            )
        for form in ("heading_once", "heading_again"):
            if "\n" in self._words[form].text:
                raise ValueError(f"The template {form!r} is one line; got several.")


class _Distributions(Replies):
    """One reply for each trial, or one for all states of a distribution."""

    environment: Diagnosis

    def continues(self, observation: Observation) -> bool:
        """Say whether a trial is a further state of a distribution that an earlier trial began."""
        return observation["question"] == SHARE and observation["part"] > 0

    def together(self, design: Design, observation: Observation) -> list[Observation]:
        """Return the trials of a session that one reply answers, from this one on."""
        environment, trials = self.environment, [observation]
        for trial in range(int(observation["trial"]) + 1, environment.n_trials):
            following = {"trial": trial, **design.at(trial, environment.fields.shown)}
            if not self.continues(following):
                break
            trials.append(following)
        return trials

    @property
    def n_prompts(self) -> int:
        """Contexts x rounds x questions; a distribution counts as one question."""
        environment = self.environment
        shared = sum(question == SHARE and part > 0 for question, _, part in environment._asked)
        return environment.n_contexts * environment.repeats * (len(environment._asked) - shared)


def _letter(k: int) -> str:
    """Return A, B, ... Z, AA, AB, ... for 0, 1, ..."""
    return ("" if k < 26 else _letter(k // 26 - 1)) + chr(ord("A") + k % 26)
