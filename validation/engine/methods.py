"""What was done, in the words of a methods section: sentences filled in with the options."""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Mapping
from functools import cache
from string import Formatter
from typing import Any

MOST = 12  # values of an option in a sentence; the table of options has all


@cache
def _sentences() -> dict[str, Any]:
    file = importlib.resources.files("knownminds.validation.engine") / "methods.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def methods_text(verb: str, options: Mapping[str, Any], version: str) -> str:
    """Return the paragraph of a methods section; "" for a verb that computes nothing.

    Parameters
    ----------
    verb : The command, "recover" for instance.
    options : The values of its options. A sentence that names a value that was not given is left
        out.
    version : Of knownminds.
    """
    content = _sentences()
    if verb not in content:
        return ""
    values = {
        name.replace(" ", "_"): _Value(value, content["words"].get(name, {}))
        for name, value in {**options, "version": version}.items()
        if value not in (None, False, "", 0.0, [], (), {}) or (value == 0 and name == "seed")
    }
    return " ".join(
        sentence.format_map(values)
        for sentence in [*content[verb], *content["always"]]
        if all(name in values for _, name, _, _ in Formatter().parse(sentence) if name)
    )


class _Value:
    """A value in a sentence; with a noun as its format it is counted."""

    def __init__(self, value: Any, words: Mapping[str, str]) -> None:
        if isinstance(value, Mapping):
            value = [f"{name} = {one}" for name, one in value.items()]
        self.values = value if isinstance(value, list | tuple) else [value]
        self.texts = [words.get(str(one), _number(one)) for one in self.values]
        if len(self.texts) > MOST:
            self.texts = [*self.texts[: MOST - 1], f"and {len(self.texts) - MOST + 1} more"]

    def __format__(self, noun: str) -> str:
        joined = " or " if noun else ", "
        text = joined.join(self.texts)
        if not noun:
            return text
        return f"{text} {noun}" if self.values == [1] else f"{text} {noun}s"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
