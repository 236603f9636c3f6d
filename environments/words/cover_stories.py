"""Cover stories of causal graphs: three variables, and how one of them brings about another.

A story is told in a sense condition, three letters of p and m. Each letter says which of a
variable's two unusual values is its value 1. Its value 0 is the usual one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

SENSES = ("ppp", "pmm", "mpm", "mmp")
SHIPPED = Path(__file__).with_suffix(".toml")
Edge = tuple[int, int]  # positions of cause and effect

_PAIRS = ("pp", "pm", "mp", "mm")
_STORY = ("introduction", "one", "many", "distraction")
_VARIABLE = ("description", "p", "m", "normal", "causes")
_EDGES: dict[str, Edge] = {"1_to_3": (0, 2), "2_to_3": (1, 2), "1_to_2": (0, 1)}
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Variable:
    """A variable in one of its senses.

    Parameters
    ----------
    description : A sentence that describes it; empty for a variable without meaning.
    present, absent : Its values 1 and 0, worded as something that one can have.
    causes : The verb that links it to its effect.
    """

    description: str
    present: str
    absent: str
    causes: str


@dataclass(frozen=True)
class Scene:
    """A story in one sense condition.

    Parameters
    ----------
    introduction : The opening text.
    one, many : The things that have the variables, in singular and plural.
    variables : The variables, in the order of the graph's positions.
    mechanisms : A sentence for each edge; none if variables have no meaning.
    """

    introduction: str
    one: str
    many: str
    variables: tuple[Variable, ...]
    mechanisms: Mapping[Edge, str]


@dataclass(frozen=True)
class Story:
    """A domain of knowledge in all sense conditions.

    Parameters
    ----------
    words : Introduction, one, many, and the domain whose texts serve as its distraction.
    variables : For each variable the description, its names in sense p, in sense m and normally,
        and its verb.
    mechanisms : A sentence for each edge and pair of senses.
    """

    words: Mapping[str, str]
    variables: tuple[Mapping[str, str], ...]
    mechanisms: Mapping[Edge, Mapping[str, str]]

    def scene(self, sense: str) -> Scene:
        """Return the story in a sense condition."""
        variables = tuple(
            Variable(words["description"], words[letter], words["normal"], words["causes"])
            for letter, words in zip(sense, self.variables, strict=True)
        )
        mechanisms = {
            (cause, effect): sentences[sense[cause] + sense[effect]]
            for (cause, effect), sentences in self.mechanisms.items()
        }
        words = self.words
        return Scene(words["introduction"], words["one"], words["many"], variables, mechanisms)


def load_stories(file: str | Path) -> dict[str, Story]:
    """Read the stories of a TOML file, by domain.

    Raises
    ------
    ValueError : If the file cannot be read, or a text is missing or unknown. The error names it.
    """
    path = Path(file)
    try:
        domains = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"Stories are a readable TOML file; {path.name} is not: {error}") from None
    if not domains:
        raise ValueError(f"A file of stories has a table per domain; {path.name} has none.")
    stories = {}
    for domain, table in domains.items():
        where = f"the domain {domain!r} of {path.name}"
        entries = _entries(table, (*_STORY, "variable", "mechanism"), where)
        words = _texts({name: entries[name] for name in _STORY}, _STORY, where)
        if not isinstance(entries["variable"], list) or len(entries["variable"]) != 3:
            raise ValueError(f"A story has three tables 'variable'; {where} has not.")
        variables = tuple(
            _texts(variable, _VARIABLE, f"variable {i} of {where}")
            for i, variable in enumerate(entries["variable"], 1)
        )
        edges = _entries(entries["mechanism"], tuple(_EDGES), f"'mechanism' in {where}")
        mechanisms = {
            edge: _texts(edges[name], _PAIRS, f"'mechanism.{name}' in {where}")
            for name, edge in _EDGES.items()
        }
        stories[domain] = Story(words, variables, mechanisms)
    for domain, story in stories.items():
        other = story.words["distraction"]
        if other not in stories or other == domain:
            raise ValueError(
                f"The distraction of a domain is another one ({', '.join(stories)}); that of "
                f"{domain!r} in {path.name} is {other!r}."
            )
    return stories


def _entries(table: Any, names: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return a table after checking that it has exactly these entries."""
    entries = table if isinstance(table, dict) else {}
    missing = [name for name in names if name not in entries]
    strange = [name for name in entries if name not in names]
    if missing or strange:
        what = f"lacks {missing[0]!r}" if missing else f"has an unknown {strange[0]!r}"
        raise ValueError(
            f"Stories have the entries of the shipped file; {where} {what}. "
            "Copy the shipped file and change its sentences."
        )
    return entries


def _texts(table: Any, names: tuple[str, ...], where: str) -> dict[str, str]:
    entries = _entries(table, names, where)
    for name, text in entries.items():
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"A story is made of texts; {name!r} in {where} is {text!r}.")
    return {name: text.strip() for name, text in entries.items()}


def filler(text: str, words: str) -> str:
    """Replace each word of a text by a word without meaning that has as many letters.

    So the filler has as many sentences, words and characters as the text, and capitals at the same
    places.

    Parameters
    ----------
    words : The words that may be used, with blanks between them; those of each length are used in
        turn.

    Raises
    ------
    ValueError : If no word is as long as one of the text.
    """
    lengths = {len(word) for word in words.split()}
    next_of = {n: cycle([word for word in words.split() if len(word) == n]) for n in lengths}

    def replaced(match: re.Match[str]) -> str:
        word = match[0]
        if len(word) not in next_of:
            raise ValueError(
                f"The filler needs words of every length; it has none of {len(word)} letters, "
                f"as {word!r} has. Add one."
            )
        other = next(next_of[len(word)])
        return other.capitalize() if word[0].isupper() else other

    return _WORD.sub(replaced, text)
