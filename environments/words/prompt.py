"""What is sent to a participant: messages, and the templates they are made from."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]

# This is the help for the setting of an experiment's words.
OTHER_WORDS = (
    'Other words: "paraphrase_2" or "paraphrase_3", which ship, or a TOML file of your own; None '
    "for the first wording."
)
_PARAPHRASE = re.compile(r"paraphrase_\w+")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Message:
    """One message of a conversation; images are PNG bytes, shown before its words."""

    role: Role
    content: str
    images: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        """Check that images come from the user, since providers accept no others."""
        if self.images and self.role != "user":
            raise ValueError(f"Images belong to messages of the user; got some of {self.role!r}.")


@dataclass(frozen=True)
class Prompt:
    """All that a participant is shown for one answer."""

    messages: tuple[Message, ...]

    @property
    def images(self) -> tuple[bytes, ...]:
        """The images of all messages, in order."""
        return tuple(image for message in self.messages for image in message.images)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of everything that is shown."""
        shown = [[m.role, m.content] for m in self.messages]
        pictures = [
            [i, hashlib.sha256(image).hexdigest()]
            for i, message in enumerate(self.messages)
            for image in message.images
        ]
        return hashlib.sha256(json.dumps([shown, pictures]).encode()).hexdigest()

    def behind(self, system: str | None) -> Prompt:
        """Return the prompt with a system message in front; unchanged for None."""
        if system is None:
            return self
        return Prompt((Message("system", system), *self.messages))

    def begun(self, answer_prefix: str | None) -> Prompt:
        """Return the prompt with the beginning of its answer at the end; unchanged for None."""
        if answer_prefix is None:
            return self
        return Prompt((*self.messages, Message("assistant", answer_prefix)))

    @property
    def text(self) -> str:
        """The messages one below the other, for a person to read."""
        return "\n\n".join(f"[{m.role}]\n{m.content}" for m in self.messages)


@dataclass(frozen=True)
class Template:
    """A text with {placeholders} that can be filled in and read back."""

    text: str

    def __post_init__(self) -> None:
        """Check that neighbouring placeholders can be told apart when the text is read back."""
        touching = re.search(r"\{[a-z_]+\}\{[a-z_]+\}", self.text)
        if touching:
            raise ValueError(
                f"Two placeholders need text between them; got {touching[0]} in {self.text!r}."
            )

    @cached_property
    def _parts(self) -> list[str]:
        """The text, cut at the placeholders; their names stand at the odd positions."""
        return _PLACEHOLDER.split(self.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the placeholders."""
        return frozenset(self._parts[1::2])

    def render(self, **values: object) -> str:
        """Fill in every placeholder; ValueError names one that has no value."""
        words = list(self._parts)
        try:
            words[1::2] = [str(values[name]) for name in words[1::2]]
        except KeyError as error:
            raise ValueError(
                f"Every placeholder needs a value; {{{error.args[0]}}} in {self.text!r} has none."
            ) from None
        return "".join(words)

    def renamed(self, rename: Callable[[str], str]) -> Template:
        """Return the same wording with other names of placeholders."""
        return Template(_PLACEHOLDER.sub(lambda match: f"{{{rename(match[1])}}}", self.text))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        seen: set[str] = set()
        pattern = ""
        for k, part in enumerate(self._parts):
            if k % 2 == 0:
                pattern += re.escape(part)
            elif part in seen:
                pattern += f"(?P={part})"
            else:
                seen.add(part)
                pattern += f"(?P<{part}>.+?)"
        return re.compile(pattern, re.DOTALL)

    def read(self, text: str) -> dict[str, str] | None:
        """Return the texts in the placeholders, or None if a text does not have this form."""
        match = self._pattern.fullmatch(text)
        return match.groupdict() if match else None


@lru_cache(maxsize=64)
def _parsed(text: str) -> Mapping[str, Any]:
    return tomllib.loads(text)


def paraphrases_of(shipped: Path) -> Mapping[str, Mapping[str, str]]:
    """Return further wordings of an experiment by name: what differs from the `shipped` file."""
    beside = shipped.with_name(f"{shipped.stem}.paraphrases.toml")
    return _parsed(beside.read_text(encoding="utf-8")) if beside.is_file() else {}


def texts_of(templates: str | Path | None, shipped: Path) -> Mapping[str, Any]:
    """Return the templates of a wording: the shipped one, a paraphrase of it, or a user's file.

    Raises
    ------
    ValueError : If there is no such paraphrase, or the file cannot be read.
    """
    path = shipped
    beside: Mapping[str, Any] = {}
    if templates is not None and _PARAPHRASE.fullmatch(str(templates)):
        known = paraphrases_of(shipped)
        if templates not in known:
            raise ValueError(
                f"The shipped wordings of {shipped.stem} are {', '.join(['shipped', *known])}; got "
                f"{str(templates)!r}."
            )
        beside = known[str(templates)]
    elif templates is not None:
        path = Path(templates)
    try:
        return {**_parsed(path.read_text(encoding="utf-8")), **beside}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(
            f"Templates are a readable TOML file; {path.name} is not: {error}"
        ) from None


def load_templates(file: str | Path | None, shipped: Path) -> dict[str, Template]:
    """Read templates from a TOML file of strings.

    All wordings say the same: they have the same templates, and each template has the same
    placeholders.

    Parameters
    ----------
    file : The file; or the name of a paraphrase ("paraphrase_2"); or None for the shipped wording.
    shipped : The file that ships with the experiment.

    Raises
    ------
    ValueError : If the file cannot be read, or a template or a placeholder is missing or unknown.
    """
    path, same = Path(file or shipped), _templates_of(None, shipped)
    if file is None:
        return same
    templates = _templates_of(file, shipped)
    missing, extra = sorted(same.keys() - templates.keys()), sorted(templates.keys() - same.keys())
    if missing or extra:
        what = f"lacks {missing[0]!r}" if missing else f"has an unknown {extra[0]!r}"
        raise ValueError(
            f"A template file holds {', '.join(sorted(same))}; {path.name} {what}. "
            "Copy the shipped file and change its sentences."
        )
    for name, template in templates.items():
        names = same[name].names
        lacks, strange = sorted(names - template.names), sorted(template.names - names)
        if lacks or strange:
            shown = ", ".join(f"{{{word}}}" for word in sorted(names)) or "no placeholders"
            what = f"lacks {{{lacks[0]}}}" if lacks else f"has {{{strange[0]}}}"
            raise ValueError(
                f"Other wordings say the same: the template {name!r} uses {shown}; {path.name} "
                f"{what}. Copy the shipped file and change its sentences."
            )
    return templates


def _templates_of(file: str | Path | None, shipped: Path) -> dict[str, Template]:
    """Return the templates of a wording; ValueError if one is not a string."""
    templates = {}
    for name, text in texts_of(file, shipped).items():
        if not isinstance(text, str):
            raise ValueError(
                f"A template is a string; {name!r} in {Path(file or shipped).name} is not."
            )
        templates[name] = Template(text.strip())
    return templates
