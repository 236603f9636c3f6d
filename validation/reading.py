"""What people type, read and checked: NAME=VALUE, ranges, dates, experiments."""

from __future__ import annotations

import datetime
import inspect
import json
import re
from collections.abc import Iterable, Sequence
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
    """Read values from NAME=VALUE; what is neither JSON nor a number such as .5 is text."""
    settings: dict[str, Any] = {}
    for name, value in _pairs(option, texts):
        number = re.sub(r"^([+-]?)(?=\.\d)", r"\g<1>0", value).removeprefix("+")
        try:
            settings[name] = json.loads(number)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def read_contaminants(option: str, texts: Sequence[str] | None) -> Contaminants:
    """Read a table of rates."""
    from knownminds.agents import Contaminants

    given = read_numbers(option, texts)
    _check_known(f"rate of {option}", given, Contaminants)
    return Contaminants(**given)


def read_caps(option: str, texts: Sequence[str] | None) -> Caps:
    """Read caps: dollars as they are written, all others as whole numbers."""
    pairs = dict(_pairs(option, texts))
    _check_known("cap", pairs, Caps)
    given: dict[str, Any] = {
        name: value if "dollars" in name else _whole(option, name, value)
        for name, value in pairs.items()
    }
    return Caps(**given)


def _check_known(kind: str, given: Iterable[str], of: type[Any]) -> None:
    known = list(inspect.signature(of).parameters)
    for name in given:
        if name not in known:
            raise ValueError(unknown(kind, name, known))


def read_temperature(option: str, text: str) -> float:
    """Read a number, or the name of a paper in `TEMPERATURES`."""
    if text in TEMPERATURES:
        return TEMPERATURES[text]
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"A temperature is a number from 0 to 2, or that of {', '.join(TEMPERATURES)}; got "
            f"{text!r}."
        ) from None


def read_range(option: str, text: str) -> tuple[int, int]:
    """Read LOW-HIGH."""
    low, dash, high = text.partition("-")
    if not (dash and low.isdecimal() and high.isdecimal() and int(low) <= int(high)):
        raise ValueError(f"{option} takes LOW-HIGH, 0-500 for instance; got {text!r}.")
    return int(low), int(high)


def read_day(option: str, text: str) -> datetime.date:
    """Read a date."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{option} takes YYYY-MM-DD; got {text!r}.") from None


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


def read_mapping(option: str, columns: str) -> dict[str, str]:
    """Read ours=yours,..."""
    return dict(_pairs(option, columns.split(",")))
