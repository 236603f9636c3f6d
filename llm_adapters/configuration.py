"""Participants: a language model with its settings, its price, and the name that it goes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from knownminds.calling import SETTINGS, Sampling
from knownminds.members import unknown

from .adapter import given

_NUMBERS = {"temperature": float, "top_p": float, "max_tokens": int, "top_log_probabilities": int}
FORM = "PROVIDER:MODEL, or PROVIDER:MODEL?SETTING=VALUE&SETTING=VALUE"


@dataclass(frozen=True)
class Participant:
    """A language model as it is configured; two configurations of one model are two participants.

    It is written ``openai:gpt-5?reasoning_effort=low``, with the fields of `Sampling` but the seed,
    and with ``price`` and ``name``. What stands behind the question mark is written as in an
    address: ``%20`` is a space and ``%26`` is &.

    Parameters
    ----------
    llm : "provider:model"
    sampling : the settings that are its own
    price : "INPUT,OUTPUT" or "INPUT,OUTPUT,CACHED" in dollars per million tokens; "" for the
        known price
    name : what it is called instead of its model; "" if model and settings are its name

    Raises
    ------
    ValueError : If a setting is none, or has no such value.
    """

    llm: str
    sampling: Mapping[str, Any] = field(default_factory=dict)
    price: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        for name in self.sampling:
            if name not in SETTINGS:
                known = [*SETTINGS, "price", "name"]
                raise ValueError(unknown("setting of a participant", name, known))
        try:
            Sampling(**self.sampling)
        except (TypeError, ValueError) as error:
            raise ValueError(f"A setting of {self.llm} is none: {error}") from None
        if self.name != self.name.strip() or not self.name.isprintable():
            raise ValueError(
                "The name of a participant is one line without spaces around it; got "
                f"{self.name!r}."
            )
        if "system" in self.sampling and not self.name:
            raise ValueError(
                "A system message is too long to be part of a name; give the participant with one "
                f"a name: {self.llm}?name=...&system=..."
            )

    @classmethod
    def read(cls, text: str) -> Participant:
        """Read what was typed; ValueError if it has another form."""
        llm, mark, more = text.partition("?")
        try:
            pairs = parse_qsl(more, True, strict_parsing=True) if mark else []
        except ValueError:
            raise ValueError(f"A language model is named {FORM}; got {text!r}.") from None
        values: dict[str, Any] = dict(pairs)
        if len(values) < len(pairs):
            raise ValueError(f"A participant has each setting once; got {text!r}.")
        if "" in values.values():
            raise ValueError(f"Each setting of a participant has a value; got {text!r}.")
        price, name = values.pop("price", ""), values.pop("name", "")
        for setting in _NUMBERS.keys() & values.keys():
            try:
                values[setting] = _NUMBERS[setting](values[setting])
            except ValueError:
                raise ValueError(
                    f"{setting} of a participant is a number; got {values[setting]!r} in {text!r}."
                ) from None
        return cls(llm, values, price, name)

    @classmethod
    def of_table(cls, name: str, table: Mapping[str, Any]) -> Participant:
        """Return the participant of a table: model, price, and settings of its own."""
        values = dict(table) if isinstance(table, Mapping) else {}
        llm, price = values.pop("model", None), values.pop("price", "")
        if not (isinstance(llm, str) and isinstance(price, str)):
            raise ValueError(
                f'The table of a participant says model = "PROVIDER:MODEL", and may say price = '
                f'"INPUT,OUTPUT"; got {table!r} for {name}.'
            )
        return cls(llm, values, price, name)

    def __str__(self) -> str:
        provider, colon, _ = self.llm.partition(":")
        return f"{provider}{colon}{self.called}"

    @property
    def called(self) -> str:
        """Its name, or that of its model with its settings."""
        return self.name or named(self.llm.partition(":")[2], **self.sampling)

    @property
    def own_name(self) -> str:
        """What it is called, if that is not its model's name; else empty."""
        return self.called if self.sampling or self.name else ""

    @property
    def text(self) -> str:
        """Return how it is typed."""
        more = {**self.sampling, "price": self.price, "name": self.name}
        typed = urlencode({name: value for name, value in more.items() if value != ""}, safe=",")
        return f"{self.llm}?{typed}" if typed else self.llm

    def settings(self, usual: Sampling) -> Sampling:
        """Return the settings with its own; ValueError if both say another value."""
        for name, value in given(usual).items():
            if self.sampling.get(name, value) != value:
                raise ValueError(
                    f"{name} is {self.sampling[name]!r} in {self.llm}, and {value!r} beside it. "
                    "Say it once."
                )
        return replace(usual, **self.sampling)


def named(model: str, **settings: Any) -> str:
    """Return the name of a model in a configuration: gpt-5?reasoning_effort=low."""
    own = {name: settings[name] for name in SETTINGS if settings.get(name) not in (None, "")}
    return f"{model}?{urlencode(own, safe=',')}" if own else model
