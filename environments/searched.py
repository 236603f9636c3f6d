"""Which values of a setting a search for the best design goes through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any


@dataclass(frozen=True)
class Span:
    """Numbers from `least` to `most`, as likely near either end.

    Parameters
    ----------
    least, most
        The ends; with both above 0 numbers are spread evenly by their ratio, else by difference.
    step
        Numbers are multiples of it; whole numbers with 1.
    even
        Whether to spread them by difference in any case.
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

    def __str__(self) -> str:
        """Read as a range."""
        return f"{self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class Among:
    """Some values."""

    values: tuple[Any, ...]

    def at(self, share: float) -> Any:
        """Return the value at this share of the way, in [0, 1)."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def __str__(self) -> str:
        """List them."""
        return " | ".join(str(list(v)) if isinstance(v, tuple) else str(v) for v in self.values)


@dataclass(frozen=True)
class Searched:
    """What a search tries for a setting, declared with it (`setting(..., searched=...)`).

    Parameters
    ----------
    parts
        What is varied, one after the other.
    make
        Makes the setting's value of a value of each part.
    told
        What the parts are, in a few words; "" where there is one.
    """

    parts: tuple[Span | Among, ...]
    make: Callable[..., Any] = lambda value: value
    told: str = ""

    def at(self, shares: Sequence[float]) -> Any:
        """Return the setting at these shares of the way of each part."""
        return self.make(*(p.at(s) for p, s in zip(self.parts, shares, strict=True)))

    def __str__(self) -> str:
        """Say what is tried."""
        spans = ", ".join(map(str, self.parts))
        return f"{self.told}: {spans}" if self.told else spans


def span(least: float, most: float, step: float = 1.0, *, even: bool = False) -> Searched:
    """Search numbers; see `Span`."""
    return Searched((Span(least, most, step, even),))


def among(*values: Any) -> Searched:
    """Search some values."""
    return Searched((Among(values),))
