"""Causal inference: how likely a variable of a network is, given what is seen and what is done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.causes.network_questions import (
    BASES,
    CODES,
    INTERVENTIONS,
    MADE_ABSENT,
    MOST,
    NETWORK,
    NOT_TOLD,
    QUESTION,
    SEEN_PRESENT,
    STRENGTHS,
    TOLD,
    columns_of,
    exact_answers,
    network_of,
    questions,
)
from knownminds.environments.causes.networks import NAMED_GRAPHS, CausalNetwork, Edge
from knownminds.environments.causes.story_questions import Context, Names, StoryQuestions
from knownminds.environments.fields import (
    CheckedBy,
    Field,
    Fields,
    Numbers,
    OneOf,
    SomeOf,
    Whole,
    setting,
)
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Among, Span
from knownminds.environments.turn import Observation
from knownminds.environments.words.answer import decimal
from knownminds.environments.words.cover_stories import SHIPPED, Variable, load_stories

Content = Literal["meaningful", "letters"]
Interventions = Literal["some", "none", "all"]
CONTENTS: tuple[str, ...] = get_args(Content)
DOMAINS = tuple(load_stories(SHIPPED))
LETTERS = "ABCD"


_EDGE = re.compile(r"\s*([A-Za-z]\w*)\s*(?:->|>)\s*([A-Za-z]\w*)\s*")
_FIGURES = 10  # numbers are shown with so many significant digits


def edges_of(name: str, given: Any) -> str:
    """Return a graph as a text, given a name, edges such as "A>B, B>C", or pairs."""
    rule = (
        f"{name} is one of {', '.join(NAMED_GRAPHS)}, or edges between A, B, C and D such as "
        f'"A>B, B>C"; got {given!r}.'
    )
    if isinstance(given, str) and given in NAMED_GRAPHS:
        return given
    if isinstance(given, str):
        matches = [_EDGE.fullmatch(part) for part in re.split(r"[,;]", given)]
        pairs = [(edge[1], edge[2]) for edge in matches if edge]
        if len(pairs) < len(matches):
            raise ValueError(f"{rule} Choose a name, or write edges with commas between them.")
    else:
        many = isinstance(given, Sequence) and all(isinstance(pair, Sequence) for pair in given)
        rows = [tuple(pair) for pair in given] if many else []
        if not rows or any(len(row) != 2 for row in rows):
            raise ValueError(f"{rule} Choose a name, or give pairs of cause and effect.")
        pairs = [(row[0], row[1]) for row in rows]
    strange = sorted({str(v) for pair in pairs for v in pair if v not in tuple(LETTERS)})
    if strange:
        raise ValueError(
            f"The variables of {name} are A, B, C and D; got {', '.join(strange)}. Rename them."
        )
    if len(set(pairs)) < len(pairs):
        raise ValueError(f"{rule} Name each edge once.")
    CausalNetwork(dict.fromkeys(pairs, 0.5))  # this refuses a cycle
    return ", ".join(f"{cause}>{effect}" for cause, effect in pairs)


def _numbers(low: float, each: str) -> CheckedBy:
    """Return the rule for a number from low to 1, or a row of them, one for each `each`."""
    row = Numbers(
        f"is a number from {low:g} to 1, or a row of such numbers, one for each {each}",
        lambda values: (values >= low) & (values <= 1.0),
    )

    def take(name: str, given: Any) -> float | tuple[float, ...]:
        many = isinstance(given, Iterable)
        numbers = row(name, given if many else (given,))
        return numbers if many else float(numbers[0])

    return CheckedBy(take, str(row).removeprefix("is "))


class CausalInference(StoryQuestions):
    """Judgements of likelihood on a causal network of two to four variables, seen or acted upon.

    A prompt tells how often each variable is present by itself, and which variables bring about or
    prevent which others, and how often in a hundred. It says which variables were observed to be
    present or absent, or that somebody has made one of them present or absent from outside. It asks
    how likely another one is to be present, from 0 to 100. All strengths are told, so that there is
    an exact answer: a sum over the states of the network (`CausalNetwork`), in which an
    intervention cuts a variable off from its causes. `performance` is 1 minus the distance between
    the given and the exact answer, as a share of the scale. Each trial stands alone: nothing is
    paid, and no prompt tells of earlier ones.

    A session asks every question that tells of at least one and at most `told` variables, once per
    domain and round; each round has an order of its own. Questions that tell what is impossible are
    left out. Variables stand in an order in which causes come before effects.
    """

    name = "causal_inference"
    summary = "how likely a variable of a causal network is, seen or acted upon, 0 to 100"
    source = "Pearl 2000; Waldmann and Hagmayer 2005; Rehder 2014; strengths as in Cheng 1997"
    usual_model = "network_reasoner"
    searched: ClassVar = {
        "graph": Among(tuple(NAMED_GRAPHS)),
        "told": Among((1, 2, 3)),
        "interventions": None,
        "repeats": Span(1, 20),
    }
    fields = Fields(
        *(
            Field(name, (0.0, 1.0), f"base rate of the {place} variable", unit="probability")
            for name, place in zip(BASES, TOLD, strict=True)
        ),
        *(
            Field(
                name,
                (-1.0, 1.0),
                f"strength of {LETTERS[int(name[1]) - 1]} -> {LETTERS[int(name[2]) - 1]}, below 0 "
                "if it prevents",
                unit="probability",
            )
            for name in STRENGTHS
        ),
        Field("query", (0, MOST - 1), "queried variable, from 0"),
        *(
            Field(name, (NOT_TOLD, 3), f"what is shown of the {name} variable: {CODES}")
            for name in TOLD
        ),
        Field("domain", (0, len(DOMAINS) - 1), "which story", "wording"),
        Field("round", "repeats", "from 0", "wording"),
    )
    performance_bounds = (0.0, 1.0)

    graph: str = setting(
        "common_effect",
        CheckedBy(edges_of, f'one of {", ".join(NAMED_GRAPHS)}, or edges such as "A>B, B>C"'),
        "Which variables bring about which: a name, or edges between A, B, C and D.",
    )
    strengths: float | tuple[float, ...] = setting(
        0.75,
        _numbers(-1.0, "edge"),
        "One strength for all edges, or one for each in their order: how often a present cause "
        "brings its effect about; below 0, how often it prevents it.",
    )
    bases: float | tuple[float, ...] = setting(
        0.25,
        _numbers(0.0, "variable"),
        "One base rate for all variables, or one for each: how often it is there without a cause.",
    )
    told: int = setting(2, Whole(1, MOST - 1), "A question tells of so many variables at most.")
    interventions: Interventions = setting(
        "some",
        OneOf(INTERVENTIONS),
        '"some" asks what to expect after observations and after interventions, "none" after '
        'observations alone, "all" after interventions, whatever else is observed.',
    )
    domains: tuple[str, ...] = setting(("weather",), SomeOf(DOMAINS), "Which stories are shown.")
    content: Content = setting(
        "meaningful",
        OneOf(CONTENTS),
        '"meaningful" tells the stories, "letters" has random names of ten letters for variables, '
        "drawn for each session.",
    )

    def prepare(self) -> None:
        self.network = self._network()
        self._constants = columns_of(self.network)
        every = questions(len(self.network.variables), self.told, self.interventions)
        grid = {name: np.full(len(every), value) for name, value in self._constants.items()}
        grid |= dict(zip(QUESTION, np.array(every).T, strict=True))
        possible = [np.isfinite(exact_answers(grid, seeing)) for seeing in (False, True)]
        answerable = [q for q, able in zip(every, possible[0] & possible[1], strict=True) if able]
        if not answerable:
            raise ValueError(
                "A session asks at least one question; with these strengths and bases everything "
                "that could be told is impossible. Take some of them off 0 and 1."
            )
        self._named = len(DOMAINS), MOST
        self._contexts = [
            (*question, DOMAINS.index(domain), r)
            for r in range(self.repeats)
            for domain in self.domains
            for question in answerable
        ]
        self._stories = {
            DOMAINS.index(name): story for name, story in load_stories(SHIPPED).items()
        }
        self._load_words()

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        if not set(NETWORK) <= set(frame) or not len(frame):
            return cls()
        network = network_of({name: frame[name].iloc[0] for name in NETWORK})
        return cls(
            graph=[list(edge) for edge in network.strengths],
            strengths=list(network.strengths.values()),
            bases=[network.bases[name] for name in sorted(network.variables)],
        )

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        query = trials.numbers("query").astype(np.int64)
        given = np.stack([trials.numbers(name) for name in TOLD])
        yield (
            "Nothing is shown of the queried variable: it has -1",
            given[query, np.arange(len(query))] == NOT_TOLD,
            QUESTION,
            "Recode these columns.",
        )

    def right(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the exact answers."""
        return 100.0 * exact_answers(columns)

    def shortcuts(self, observation: Observation) -> Mapping[str, float]:
        """Return how many variables are shown to be present and absent, and which is queried."""
        given = [observation[name] for name in TOLD]
        return {
            "variables told to be present": float(sum(x in (1, 3) for x in given)),
            "variables told to be absent": float(sum(x in (0, 2) for x in given)),
            "place of the variable asked about": float(observation["query"]),
        }

    def _network(self) -> CausalNetwork:
        """Make the network from graph, strengths and bases."""
        edges = NAMED_GRAPHS.get(self.graph) or tuple(
            (edge[0], edge[-1]) for edge in self.graph.split(", ")
        )
        strengths = _one_each("strengths", self.strengths, len(edges), "edges", self.graph)
        letters = sorted({name for edge in edges for name in edge})
        bases = _one_each("bases", self.bases, len(letters), "variables", self.graph)
        by_edge: dict[Edge, float] = dict(zip(edges, strengths, strict=True))
        return CausalNetwork(by_edge, dict(zip(letters, bases, strict=True)))

    def _in_words(self, context: Context, names: Names) -> str:
        domain, variables = context[-2], self._variables(context[-2], names)
        return self._question(context, variables, self._story(domain, variables, bool(names)))

    def _variables(self, domain: int, names: Names) -> tuple[Variable, ...]:
        """Return the four variables of a domain, or variables whose names mean nothing."""
        words = self._words
        if names:
            return tuple(
                Variable(
                    words["abstract_description"].render(name=name),
                    words["abstract_present"].render(name=name),
                    words["abstract_absent"].render(name=name),
                    "",
                )
                for name in names[domain]
            )
        fourth = f"{DOMAINS[domain]}_fourth"
        present, absent = (words[f"{fourth}_{value}"].text for value in ("present", "absent"))
        last = Variable(words[fourth].text, present, absent, "")
        return (*self._stories[domain].scene("ppp").variables, last)

    def _story(self, domain: int, variables: Sequence[Variable], named: bool) -> dict[str, str]:
        """Return what all prompts of a domain have in common."""
        words, network, scene = self._words, self.network, self._stories[domain].scene("ppp")
        one, many, introduction = scene.one, scene.many, scene.introduction
        if named:
            one, many = words["abstract_one"].text, words["abstract_many"].text
            introduction = words["abstract_introduction"].text
        called = dict(zip(network.variables, variables, strict=False))
        lines = [
            words["variable"].render(
                description=v.description, one=one, many=many, present=v.present, absent=v.absent
            )
            for v in called.values()
        ]
        effects = {effect for _, effect in network.strengths}
        bases = [
            words["base_effect" if name in effects else "base_first"].render(
                many=many, percent=_percent(network.bases[name]), present=called[name].present
            )
            for name in network.variables
        ]
        links = [
            words["produces" if strength >= 0 else "prevents"].render(
                many=many,
                percent=_percent(abs(strength)),
                cause=called[cause].present,
                effect=called[effect].present,
            )
            for (cause, effect), strength in network.strengths.items()
        ]
        return {
            "introduction": introduction,
            "variables": "\n".join(lines),
            "bases": "\n".join(bases),
            "links": "\n".join(links),
            "one": one,
            "answer": words[f"answer_{self.answer}"].text,
        }

    def _question(
        self, context: Context, variables: Sequence[Variable], story: Mapping[str, str]
    ) -> str:
        words = self._words
        query, *values = context[: 1 + MOST]
        facts = [
            words["made" if value >= MADE_ABSENT else "seen"].render(
                fact=variable.present if value % 2 == SEEN_PRESENT else variable.absent
            )
            for variable, value in zip(variables, values, strict=True)
            if value != NOT_TOLD
        ]
        return words["prompt"].render(**story, told=" ".join(facts), asked=variables[query].present)


def _percent(share: float) -> str:
    """Return a share as so many in a hundred, in words."""
    return decimal(float(f"{100.0 * share:.{_FIGURES}g}"))


def _one_each(
    name: str, given: float | tuple[float, ...], n: int, of: str, graph: str
) -> tuple[float, ...]:
    """Return a number for each of n things, given one for all or one for each."""
    values = given if isinstance(given, tuple) else (given,) * n
    if len(values) != n:
        raise ValueError(
            f"{name} is one number, or one for each of the {n} {of} of {graph!r}; got "
            f"{len(values)}. Add or leave out some."
        )
    return values
