"""Which values of an experiment's settings a search for the best design goes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from .environment import Environment
from .fields import OneOf, SomeOf


@dataclass(frozen=True)
class Span:
    """Numbers from `least` to `most`, as likely near either end.

    Parameters
    ----------
    least, most : The ends; with both above 0 numbers are spread evenly by their ratio, else by
        difference.
    step : Numbers are multiples of it; whole numbers with 1.
    even : Whether to spread them by difference in any case.
    """

    least: float
    most: float
    step: float = 1.0
    even: bool = False

    def at(self, share: float) -> float:
        """Return the number at this share of the way, in [0, 1)."""
        if self.least > 0 and not self.even:
            value = exp(log(self.least) + share * (log(self.most) - log(self.least)))
        else:
            value = self.least + share * (self.most - self.least)
        value = min(max(round(value / self.step) * self.step, self.least), self.most)
        return int(value) if float(self.step).is_integer() else round(value, 10)


@dataclass(frozen=True)
class Among:
    """Some values."""

    values: Sequence[Any]

    def at(self, share: float) -> Any:
        """Return the value at this share of the way, in [0, 1)."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


@dataclass(frozen=True)
class Searched:
    """What a search tries for a setting.

    Parameters
    ----------
    parts : what is varied, one after the other
    make : makes the setting's value of a value of each part
    """

    parts: tuple[Span | Among, ...]
    make: Callable[..., Any] = lambda value: value

    def at(self, shares: Sequence[float]) -> Any:
        """Return the setting at these shares of the way of each part."""
        return self.make(*(p.at(s) for p, s in zip(self.parts, shares, strict=True)))


def ranges_of(environment: Environment) -> dict[str, Searched]:
    """Return what a search tries for the settings of an experiment, by name.

    Of an experiment that declares nothing as `searched`: its size, from an eighth to eight times
    what it is.
    """
    declared: Mapping[str, Span | Among | Searched | None] = environment.searched
    if not declared:
        name = environment.size or ""
        size = environment.settings.get(name, 1)
        declared = {name: Span(-(-size // 8), 8 * size)} if name else {}
    return {
        name: how if isinstance(how, Searched) else Searched((how or _all_of(environment, name),))
        for name, how in declared.items()
    }


def _all_of(environment: Environment, name: str) -> Among:
    """Return all that the rule of a setting allows; of several, each one and all together."""
    table = environment.setting_table
    (rule,) = (table[key].rule for key in table if name in (table[key].called, key))
    if isinstance(rule, SomeOf):
        return Among((*([one] for one in rule.known), list(rule.known)))
    return Among(rule.known if isinstance(rule, OneOf) else (True, False))
