"""Collider: how likely one of three linked variables is to be present, given the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.fields import (
    WORDS,
    YES_OR_NO,
    CheckedBy,
    Field,
    Fields,
    OneOf,
    SomeOf,
    as_given,
    coded,
    setting,
)
from knownminds.environments.later import pandas as pd
from knownminds.environments.questions import positions_of
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Span
from knownminds.environments.turn import Observation
from knownminds.environments.words.cover_stories import (
    SENSES,
    SHIPPED,
    Scene,
    Variable,
    filler,
    load_stories,
)

from .causal_graph import (
    ABSENT,
    DIRECTIONS,
    EDGES,
    GRAPHS,
    NOT_TOLD,
    PRESENT,
    TASKS,
    VARIABLES,
    Directions,
    Graph,
    Question,
    questions,
)
from .network_questions import columns_of, exact_answers
from .networks import CausalNetwork
from .random_names import CONTENTS, Content
from .story_questions import Context, Names, StoryQuestions

Overload = Literal["none", "d", "e", "de"]
OVERLOADS: tuple[str, ...] = get_args(Overload)

_PLACES = ("first", "second", "third")
_TOLD = "what is shown of the {} variable: -1 nothing, 0 absent, 1 present"


class Collider(StoryQuestions):
    """Judgements of likelihood on a causal graph: two causes and their effect, a chain or a fork.

    A prompt tells a cover story: three variables, each present or absent, which of them bring about
    which others, and by which mechanism. It says whether one or two of them are present, and asks
    how likely another one is to be present, from 0 to 100. No strength and no frequency is shown,
    so no answer is right or wrong, and `performance` is NaN. Each trial stands alone: nothing is
    paid, and no prompt tells of earlier ones.

    The collider has 20 questions: both directions of the tasks I to XI, except for I and III, which
    have one direction. Chain and fork have 24: every variable, given all that can be shown of one
    or both of the others. A session asks each question once per domain and sense condition, in
    mixed order: 240 for the collider.

    Variables stand in the order C1, C2, E for the collider, and C1, C2, C3 for the others. The
    response is the answer as it was given, 0 to 100. Tables of trials may have the columns task
    (roman number or letter) and queried instead; see `complete`.
    """

    name = "collider"
    summary = "how likely a cause or an effect is on a causal graph, 0 to 100; no true answers"
    source = "Rehder and Waldmann 2017; Dettki, Lake, Wu and Rehder 2025"
    usual_model = "noisy_or"
    searched: ClassVar = {"directions": None, "repeats": Span(1, 20)}
    fields = Fields(
        Field("graph", (0, len(GRAPHS) - 1), "0 collider, 1 chain, 2 fork"),
        Field("query", (0, 2), "queried variable: 0 C1, 1 C2, 2 E (of chain and fork C3)"),
        Field("first", (NOT_TOLD, PRESENT), _TOLD.format("first")),
        Field("second", (NOT_TOLD, PRESENT), _TOLD.format("second")),
        Field("third", (NOT_TOLD, PRESENT), _TOLD.format("third")),
        Field(
            "domain",
            lambda environment: (0, max(len(environment._all_domains) - 1, 1)),
            "which story; of meaningful content " + coded(("economy", "sociology", "weather")),
        ),
        Field("sense", (0, len(SENSES) - 1), coded(SENSES)),
        Field("round", "repeats", "from 0", "wording"),
    )
    performance_bounds = None

    graph: Graph = setting(
        "collider",
        OneOf(GRAPHS),
        '"collider" C1 -> E <- C2, "chain" C1 -> C2 -> C3, or "fork" C2 <- C1 -> C3.',
    )
    domains: tuple[str, ...] = setting(
        None,
        CheckedBy(as_given, "some of the stories, or None for all"),
        'Which stories are shown, in any part: "economy", "sociology", "weather".',
    )
    senses: tuple[str, ...] = setting(
        SENSES,
        SomeOf(SENSES),
        'In which sense conditions: a letter per variable, p (value 1 is "high") or m (value 1 is '
        '"low"). Value 0 is "normal".',
    )
    content: Content = setting(
        "meaningful",
        OneOf(CONTENTS),
        '"meaningful" tells the stories. All others have random names of ten characters for '
        "variables, drawn for each session, in a world of which nothing is known; values are high "
        'or low, strong or weak, powerful or weak, without "normal", and there are no mechanisms. '
        'The domain is then a triple of names. "all" (letters, digits and symbols), "alnum" '
        '(letters and digits) and "num_symb" (digits and symbols) are the thesis\'s kinds: each '
        "character is drawn from the whole of its alphabet, so that a name may by chance lack one "
        "part of it. Of symbols only those occur that neither quote nor bracket nor end a "
        'sentence. "letters", "letters_digits" and "digits_symbols" are kinds of ours, with six '
        "characters of the first sort and four of the second.",
    )
    overload: Overload = setting(
        "none",
        OneOf(OVERLOADS),
        'What is appended that has nothing to do with the question: "d" the description of '
        "another domain's variable to each variable, \"e\" another domain's mechanism to each "
        'link, "de" both, "none" neither.',
    )
    control: bool = setting(
        False,
        YES_OR_NO,
        "Whether the appended text is filler without meaning, of the same length: each word is "
        "replaced by one with as many letters. (Tokens may differ: the words are not English.) The "
        'thesis reports overload="e" for variables with meaning, and the control of "de" for those '
        "without.",
    )
    directions: Directions = setting(
        "both",
        OneOf(DIRECTIONS),
        '"both", or "one": 11 questions of the collider, about C1, or about the effect given C2 '
        "alone; 13 of the fork, about C1 and C2. A chain has no second direction.",
    )
    stories: str | None = setting(
        None,
        WORDS,
        "A TOML file with other domains; None for ours, `cover_stories.toml`.",
        last=True,
    )

    def prepare(self) -> None:
        if self.control and self.overload == "none":
            raise ValueError(
                "A control is one of an overload; got control=True and overload='none'. "
                "Set overload to d, e or de."
            )
        stories = load_stories(self.stories or SHIPPED)
        self._all_domains = tuple(stories)
        self.domains = SomeOf(self._all_domains)("domains", self.domains or self._all_domains)
        self._settings["domains"] = self.domains

        self._scenes = {
            (d, s): stories[domain].scene(sense)
            for d, domain in enumerate(stories)
            for s, sense in enumerate(SENSES)
        }
        self._distractions = [
            self._all_domains.index(story.words["distraction"]) for story in stories.values()
        ]
        self._constants = {"graph": GRAPHS.index(self.graph)}
        self._named = len(self._all_domains), 3
        self._contexts = [
            (*question, self._all_domains.index(domain), SENSES.index(sense), r)
            for r in range(self.repeats)
            for domain in self.domains
            for sense in self.senses
            for question in questions(self.graph, self.directions)
        ]
        self._load_words()

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        if "graph" in frame and frame["graph"].isin([1, 2]).all():
            return cls(graph=GRAPHS[int(frame["graph"].iloc[0])])
        return cls()

    def complete(self, trials: Trials) -> pd.DataFrame:
        """Return the table with the columns that follow from others.

        If query, first, second and third are absent and `task` is there, they follow from it. A
        task is a roman number (I to XI) or a letter (a to k) of the collider's tasks. With
        directions="one" nothing else is needed. Otherwise `queried` says which variable was queried
        (C1, C2 or E), and in task II, which asks about the effect in both directions, `present`
        says which cause is present (C1 or C2). Domains and senses may be given by name. If there is
        only one domain, sense or graph, its column may be absent.

        Raises
        ------
        ValueError : At the first trial whose task, variable, domain or sense is unknown.
        """
        frame = trials.frame
        added: dict[str, Any] = {}
        columns_of_question = self.fields.stimulus[1:5]
        if (
            "task" in frame
            and not set(columns_of_question) & set(frame)
            and self.graph == "collider"
        ):
            names = [name for name in ("task", "queried", "present") if name in frame]
            kinds = frame.groupby(names, sort=False, dropna=False).ngroup().to_numpy()
            firsts = np.unique(kinds, return_index=True)[1]  # the first row of each kind
            questions = np.array([self._found(trials, row) for row in firsts.tolist()])
            added |= dict(zip(columns_of_question, questions[kinds].T, strict=True))
        if "graph" not in frame:
            added["graph"] = GRAPHS.index(self.graph)
        for name, chosen, known in (
            ("domain", self.domains, self._all_domains),
            ("sense", self.senses, SENSES),
        ):
            if name not in frame and len(chosen) == 1:
                added[name] = known.index(chosen[0])
            elif name in frame and not pd.api.types.is_numeric_dtype(frame[name]):
                added[name] = positions_of(trials, name, known)
        return frame.assign(**added) if added else frame

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        grid = {(GRAPHS.index(self.graph), *context[:-1]) for context in self._contexts}
        columns = [trials.numbers(name) for name in self.fields.stimulus]
        rows = pd.MultiIndex.from_arrays(columns)
        yield (
            f"Trials ask questions of the grid of {self!r}",
            rows.isin(pd.MultiIndex.from_tuples(list(grid))),
            self.fields.stimulus,
            "Use the settings that they were made with, or leave such rows out.",
        )

    def right(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the answers of a noisy-OR: priors .5, strengths .8, leak .1.

        Stories tell no numbers; these values lie in the middle of those that fit people's answers.
        """
        named = VARIABLES[self.graph]
        edges = [(named[cause], named[effect]) for cause, effect in EDGES[self.graph]]
        effects = {effect for _, effect in edges}
        bases = {name: 0.1 if name in effects else 0.5 for name in named}
        told = {**columns_of(CausalNetwork(dict.fromkeys(edges, 0.8), bases)), "fourth": NOT_TOLD}
        every = {name: np.full(len(columns["query"]), value) for name, value in told.items()}
        return 100.0 * exact_answers({**columns, **every})

    def shortcuts(self, observation: Observation) -> Mapping[str, float]:
        """Return how many variables are shown to be present, to be absent, and which is queried."""
        given = [observation[name] for name in ("first", "second", "third")]
        return {
            "variables told to be present": given.count(PRESENT),
            "variables told to be absent": given.count(ABSENT),
            "the effect is asked": float(observation["query"] == 2),
        }

    def _in_words(self, context: Context, names: Names) -> str:
        domain, sense = context[4:6]
        scene = self._scenes[domain, sense]
        if names:
            scene = self._abstract(names[domain], SENSES[sense])
        return self._question(context, scene, self._story(scene, domain, sense))

    def _abstract(self, names: Sequence[str], sense: str) -> Scene:
        """Return a scene whose variables have names without meaning."""
        words = self._words
        variables = []
        for ordinal, name, letter in zip(_PLACES, names, sense, strict=True):
            present, absent = (
                words[f"abstract_{ordinal}_{which}"].render(name=name)
                for which in (letter, "m" if letter == "p" else "p")
            )
            variables.append(Variable("", present, absent, words["abstract_causes"].text))
        return Scene(
            words["abstract_introduction"].render(**dict(zip(_PLACES, names, strict=True))),
            words["abstract_one"].text,
            words["abstract_many"].text,
            tuple(variables),
            {},
        )

    def _story(self, scene: Scene, domain: int, sense: int) -> dict[str, str]:
        """Return what all prompts of a scene have in common."""
        words = self._words
        kind = "" if self.content == "meaningful" else "abstract_"
        other = self._scenes[self._distractions[domain], sense]
        variables = [
            words[f"{kind}variable"].render(
                description=variable.description,
                one=scene.one,
                many=scene.many,
                present=variable.present,
                absent=variable.absent,
                more=self._more("d", elsewhere.description),
            )
            for variable, elsewhere in zip(scene.variables, other.variables, strict=True)
        ]
        links = [
            words[f"{kind}link"].render(
                cause=_opening(scene.variables[cause].present),
                causes=scene.variables[cause].causes,
                effect=scene.variables[effect].present,
                mechanism=scene.mechanisms.get((cause, effect), ""),
                more=self._more("e", other.mechanisms[cause, effect]),
            )
            for cause, effect in EDGES[self.graph]
        ]
        return {
            "introduction": scene.introduction,
            "variables": "\n".join(line.strip() for line in variables),
            "links": "\n".join(line.strip() for line in links),
            "together": words[f"together_{self.graph}"].text,
            "one": scene.one,
            "answer": words[f"answer_{self.answer}"].text,
        }

    def _more(self, part: str, text: str) -> str:
        """Return what an overload appends to a variable (d) or a link (e)."""
        if part not in self.overload or self.overload == "none":
            return ""
        return filler(text, self._words["filler"].text) if self.control else text

    def _question(self, context: Context, scene: Scene, story: Mapping[str, str]) -> str:
        query, *values = context[:4]
        words = self._words
        facts = [
            variable.present if value == PRESENT else variable.absent
            for variable, value in zip(scene.variables, values, strict=True)
            if value != NOT_TOLD
        ]
        if len(facts) == 1:
            observed = words["observed_one"].render(one_fact=facts[0])
        else:
            observed = words["observed_two"].render(one_fact=facts[0], other_fact=facts[1])
        return words["prompt"].render(
            **story, observed=observed, asked=scene.variables[query].present
        )

    def _found(self, trials: Trials, row: int) -> Question:
        """Return the question that a row gives by task and variable."""
        at = trials.frame.iloc[row]
        said = str(at["task"]).strip()
        named = [t for t in TASKS if said.casefold() in (t.roman.casefold(), t.letter)]
        if not named:
            raise ValueError(
                f"Tasks of {self.name} are I to XI or the letters a to k; "
                f"{trials.row_name(row)} has "
                f"{at['task']!r}. Correct it, or leave the row out."
            )
        task = named[0]
        either = {0: task.question}
        if task.mirrored is not None and self.directions == "both":
            either[1] = task.mirrored
        if len(either) == 1 and "queried" not in trials.frame:
            return either[0]
        column = "present" if task.roman == "II" and len(either) == 2 else "queried"
        names = VARIABLES["collider"]
        by_name = {
            names[q[1:].index(PRESENT) if column == "present" else q[0]]: q for q in either.values()
        }
        value = str(at[column]).strip().upper() if column in trials.frame else None
        if value not in by_name:
            rule = (
                "which cause is present" if column == "present" else "which variable is asked about"
            )
            got = "there is no such column" if value is None else f"it has {at[column]!r}"
            raise ValueError(
                f"In task {task.roman} of {self.name} the column {column!r} says {rule} "
                f"({' or '.join(by_name)}); in {trials.row_name(row)} {got}. Fill it in, or set "
                "directions='one' if all questions are those in the first direction."
            )
        return by_name[value]


def _opening(phrase: str) -> str:
    """Return a phrase with the capital that opens a sentence."""
    return phrase[:1].upper() + phrase[1:]
