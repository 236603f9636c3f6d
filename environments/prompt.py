"""What is sent to a participant: messages, and the templates they are made from."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from .names import unknown

Role = Literal["system", "user", "assistant"]

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True)
class Prompt:
    """All that a participant is shown for one answer: messages, and images as PNG bytes."""

    messages: tuple[Message, ...]
    images: tuple[bytes, ...] = ()

    @property
    def hash(self) -> str:
        """SHA-256 of everything that is shown."""
        shown = [[m.role, m.content] for m in self.messages]
        pictures = [hashlib.sha256(image).hexdigest() for image in self.images]
        return hashlib.sha256(json.dumps([shown, pictures]).encode()).hexdigest()

    @property
    def text(self) -> str:
        """The messages one below the other, for a person to read."""
        return "\n\n".join(f"[{m.role}]\n{m.content}" for m in self.messages)


@dataclass(frozen=True)
class Template:
    """A text with ``{placeholders}`` that can be filled in and read back."""

    text: str

    def __post_init__(self) -> None:
        """Check that what is filled in can be told apart again."""
        touching = re.search(r"\{\w+\}\{\w+\}", self.text)
        if touching:
            raise ValueError(
                f"Two placeholders need text between them; got {touching[0]} in {self.text!r}."
            )

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The names in braces."""
        return frozenset(_PLACEHOLDER.findall(self.text))

    def render(self, **values: object) -> str:
        """Fill in the placeholders; values the text does not ask for are left out.

        Raises
        ------
        ValueError
            If a placeholder has no value.
        """
        missing = sorted(self.placeholders - values.keys())
        if missing:
            raise ValueError(
                f"Every placeholder needs a value; {{{missing[0]}}} has none among "
                f"{', '.join(sorted(values))}, in the template {self.text!r}."
            )
        return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), self.text)

    def read(self, text: str) -> dict[str, str] | None:
        """Return what the placeholders stand for in `text`, or None if it is another text."""
        found = self._pattern.fullmatch(text)
        return found.groupdict() if found else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces, seen = [], set[str]()
        for i, piece in enumerate(_PLACEHOLDER.split(self.text)):
            if i % 2 == 0:
                pieces.append(re.escape(piece))
            else:  # the second mention must repeat the first
                pieces.append(f"(?P={piece})" if piece in seen else f"(?P<{piece}>.+?)")
                seen.add(piece)
        return re.compile("".join(pieces), re.DOTALL)


def load_templates(
    path: str | os.PathLike[str], required: Mapping[str, Sequence[str]]
) -> dict[str, Template]:
    """Read a TOML file of templates.

    Parameters
    ----------
    required
        Name of each template -> the placeholders that its text must have, without which what it
        says could not be read back.

    Raises
    ------
    ValueError
        If the file is not there or not TOML, or if a template or placeholder is missing or unknown.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"Templates are read from a TOML file; there is none at {file}.")
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"Templates are written in TOML; {file.name} is not: {error}") from None
    for name, text in content.items():
        if name not in required:
            raise ValueError(unknown("template", name, required, f" in {file.name}"))
        if not isinstance(text, str):
            raise ValueError(f"Templates are texts; {name!r} in {file.name} is {text!r}.")
    for name, placeholders in required.items():
        if name not in content:
            raise ValueError(
                f"Templates need the texts {', '.join(required)}; {file.name} has no {name!r}."
            )
        absent = [p for p in placeholders if f"{{{p}}}" not in content[name]]
        if absent:
            raise ValueError(
                f"The template {name!r} must mention {{{absent[0]}}}, or it could not be read "
                f"back; {file.name} has {content[name]!r}."
            )
    return {name: Template(text.strip("\n")) for name, text in content.items()}
