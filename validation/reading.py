"""What people type, read and checked: NAME=VALUE, ranges, dates, experiments."""

from __future__ import annotations

import datetime
import inspect
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from knownminds.calling import Caps
from knownminds.members import unknown

if TYPE_CHECKING:
    from knownminds.agents import Contaminants

# At which temperature the models of a paper answer. CogBench (Coda-Forno et al. 2024, section 3)
# and the colliders (thesis, section on prompting) draw the most probable answer, where a model
# allows it; BayesBench (section on models) takes 0.7. The others set none: diagnosis does
# not say, and revealed beliefs are read from probabilities, before anything is drawn.
TEMPERATURES = {"cogbench": 0.0, "colliders": 0.0, "magnitudes": 0.7}


def read_settings(option: str, texts: Sequence[str] | None) -> dict[str, Any]:
    """Read values from NAME=VALUE; what is no JSON is text."""
    settings: dict[str, Any] = {}
    for name, value in _pairs(option, texts):
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def read_contaminants(texts: Sequence[str] | None) -> Contaminants:
    """Read --contaminate: a table of rates."""
    from knownminds.agents import Contaminants

    given = read_numbers("--contaminate", texts)
    known = list(inspect.signature(Contaminants).parameters)
    for name in given:
        if name not in known:
            raise ValueError(unknown("rate of --contaminate", name, known))
    return Contaminants(**given)


def read_caps(texts: Sequence[str] | None) -> Caps:
    """Read --cap."""
    given: dict[str, Any] = {}
    known = list(inspect.signature(Caps).parameters)
    for name, value in _pairs("--cap", texts):
        if name not in known:
            raise ValueError(unknown("cap", name, known))
        given[name] = value if "dollars" in name else _whole("--cap", name, value)
    return Caps(**given)


def read_temperature(text: str | None) -> float | None:
    """Read --temperature: a number, or the name of a paper in `TEMPERATURES`."""
    if text is None or text in TEMPERATURES:
        return TEMPERATURES[text] if text else None
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"A temperature is a number from 0 to 2, or that of {', '.join(TEMPERATURES)}; got "
            f"{text!r}."
        ) from None


def read_range(option: str) -> Callable[[str], tuple[int, int]]:
    """Return what reads LOW-HIGH."""

    def read(text: str) -> tuple[int, int]:
        low, dash, high = text.partition("-")
        if not (dash and low.isdecimal() and high.isdecimal() and int(low) <= int(high)):
            raise ValueError(f"{option} takes LOW-HIGH, 0-500 for instance; got {text!r}.")
        return int(low), int(high)

    return read


def read_day(text: str) -> datetime.date:
    """Read --date."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"--date takes YYYY-MM-DD; got {text!r}.") from None


def _whole(option: str, name: str, value: str) -> int:
    """Read a whole number."""
    if not value.isdecimal():
        raise ValueError(f"{option} {name} takes a whole number from 0 on; got {value!r}.")
    return int(value)


def _pairs(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Split NAME=VALUE; each name once."""
    pairs = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise ValueError(f"{option} takes NAME=VALUE; got {text!r}.")
        pairs.append((name.strip(), value.strip()))
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{option} names each thing once; got {name!r} twice.")
    return pairs


def _number(option: str, name: str, value: str) -> float:
    """Read a number."""
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{option} {name} takes a number; got {value!r}.") from None


def read_numbers(option: str, texts: Sequence[str] | None) -> dict[str, float]:
    """Read numbers from NAME=VALUE."""
    return {name: _number(option, name, value) for name, value in _pairs(option, texts)}


def read_texts(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Read texts from NAME=VALUE."""
    return dict(_pairs(option, texts))


def read_mapping(columns: str | None) -> dict[str, str]:
    """Read --columns: ours=yours,..."""
    texts = [] if columns is None else columns.split(",")
    return dict(_pairs("--columns", texts))
