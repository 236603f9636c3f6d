"""Contexts of chance in words that a person would use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from knownminds.environments.chance import choice, coins, dice, preference
from knownminds.inference.chance.belief_contexts import scenario_of, values_of_context

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
_KNOWN = {
    "smaller": "below the middle or on it",
    "larger": "above the middle",
    "even": "even",
    "odd": "odd",
    "not_first": "not the lowest",
    "not_middle": "not the middle",
}


def in_words(scenario: str, context: str) -> str:
    """Return what a context is about: "two dice of 6 faces, thrown again after 4"."""
    words = _WORDS.get(scenario) or scenario_of(scenario).in_words
    return words(values_of_context(context))


def observation_words(values: Mapping[str, int]) -> str:
    """Return what is known of the sum of some dice: "even and not the lowest"; "" for nothing."""
    names = [dice.OBSERVATIONS[values[k]] for k in ("observation", "second") if values[k] >= 0]
    return " and ".join(_KNOWN[name] for name in names)


def _dice(values: Mapping[str, int]) -> str:
    n, kind = values["dice"], dice.KINDS[values["kind"]]
    what = f"{_NUMBERS[n]} {'die' if n == 1 else 'dice'} of {values['faces']} faces"
    known = observation_words(values)
    noun = "number" if n == 1 else "sum"
    return {
        "single": f"{what}, thrown once",
        "independent": f"{what}, thrown again; the first throw shows {values['previous']}",
        "dependent": f"{what}, the sum of two throws; the first shows {values['previous']}",
        "observation": f"{what}, the {noun} is {known}",
        "two_observations": f"{what}, the {noun} is {known}",
    }[kind]


def _coins(values: Mapping[str, int]) -> str:
    face, weight = coins.FACES[values["face"]], values["weight"]
    what = f"{face} among {_NUMBERS[values['coins']]} coins"
    what += "" if weight == 1 else f", {weight} times as often as not"
    kind = coins.KINDS[values["kind"]]
    return {
        "single": f"{what}, tossed once",
        "independent": f"{what}, tossed again; {values['previous']} in the first toss",
        "dependent": f"{what}, in two tosses together; {values['previous']} in the first",
    }[kind]


def _choice(values: Mapping[str, int]) -> str:
    what = f"one of {_NUMBERS[values['options']]} options"
    before = choice.OPTIONS[values["previous"]] if values["previous"] >= 0 else ""
    return f"{what}, picked again; {before} the first time" if before else f"{what}, picked once"


def _preference(values: Mapping[str, int]) -> str:
    names = preference.NAMES[values["pair"]]
    first, other = names[values["first"]], names[1 - values["first"]]
    weight = values["weight"]
    what = f"{first} or {other}" + ("" if weight == 1 else f", {first} {weight} times as often")
    before = names[values["previous"]] if values["previous"] >= 0 else ""
    return f"{what}, drawn again; {before} the first time" if before else f"{what}, drawn once"


_WORDS: Mapping[str, Callable[[Mapping[str, int]], str]] = {
    "dice": _dice,
    "coins": _coins,
    "choice": _choice,
    "preference": _preference,
}
