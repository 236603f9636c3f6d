"""Which values of an experiment's settings a search for the best design goes through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from knownminds.environments import Environment
from knownminds.environments.causes.networks import NAMED_GRAPHS
from knownminds.environments.decisions.gambles import SETS
from knownminds.environments.fields import OneOf, SomeOf


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

    Of an experiment without a row in `RANGES` its size, from an eighth to eight times what it is.
    """
    declared = RANGES.get(environment.name)
    if declared is None:
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


# Of a low rate (0) and a high one (1) which pairs are offered, a casino each.
_CASINOS = (
    ((0, 0), (0, 1), (1, 0), (1, 1)),
    ((0, 1), (1, 0)),
    ((0, 0), (0, 1), (1, 0)),
    ((0, 1), (1, 0), (1, 1)),
    ((0, 0), (1, 1)),
)
Ranges = dict[str, Span | Among | Searched | None]

_MAGNITUDE: Ranges = {
    "n_values": Span(3, 33),
    "repeats": Span(1, 12),
    "continuous": Among((False, True)),
}
# By experiment and setting; None for all that the setting can be.
RANGES: dict[str, Ranges] = {
    "marker_location": _MAGNITUDE,
    "line_ratio": _MAGNITUDE,
    "maze_distance": _MAGNITUDE,
    "duration": _MAGNITUDE,
    "cue_conflict": _MAGNITUDE,
    "instrumental_learning": {
        "n_visits": Span(4, 96),
        "win_probability": Searched(
            (Span(0.0, 0.45, 0.05), Span(0.5, 1.0, 0.05), Among(_CASINOS)),
            lambda low, high, casinos: [[(low, high)[k] for k in pair] for pair in casinos],
        ),
    },
    "collider": {"directions": None, "repeats": Span(1, 20)},
    "balloon_risk": {
        "n_balloons": Span(3, 60),
        "maxima": Searched(
            (Span(4, 16), Span(1.0, 4.0, 0.5, even=True), Span(1, 3, even=True)),
            lambda least, times, n: [round(least * times**k) for k in range(n)],
        ),
    },
    "horizon": {
        "n_games": Span(10, 200),
        "long_horizon": Span(2, 12),
        "long_share": Span(0.0, 1.0, 0.05),
        "unequal_share": Span(0.0, 1.0, 0.05),
        "differences": Searched(
            (Span(1, 10), Span(1, 6, even=True), Span(1.2, 3.0, 0.1)),
            lambda least, n, ratio: [float(round(least * ratio**k)) for k in range(n)],
        ),
    },
    "probabilistic_reasoning": {
        "n_problems": Span(1, 60),
        "informative": Among(
            ([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0.1, 0.9], [0.3, 0.7], [0.1, 0.3, 0.7, 0.9])
        ),
        "uninformative": Among(([0.4, 0.5, 0.5, 0.6], [0.5], [0.2, 0.8], [0.1, 0.4, 0.6, 0.9])),
    },
    "temporal_discounting": {
        "design": Among(("adaptive", "grid")),  # pairs are a list of the user's own
        "shares": Searched(
            (Span(0.02, 0.5, 0.02), Span(0.6, 0.98, 0.02), Span(2, 12)),
            lambda low, high, n: [round(low + k * (high - low) / (n - 1), 4) for k in range(n)],
        ),
        "delays": Searched(
            (Span(1, 12), Span(13, 360), Span(2, 12)),
            lambda low, high, n: sorted(
                {round(low * (high / low) ** (k / (n - 1))) for k in range(n)}
            ),
        ),
        "losses": None,
        "n_repeats": Span(1, 4),
    },
    "diagnosis": {"n_contexts": Span(10, 500), "repeats": Span(1, 10), "elicitations": None},
    "two_step": {
        "n_days": Span(10, 200),
        "transition": Span(0.55, 0.95, 0.05),
        "drift": Span(0.0, 0.2, 0.025),
        "rates": Searched((Span(0.0, 0.4, 0.05), Span(0.6, 1.0, 0.05)), lambda *ends: [*ends]),
    },
    "restless_bandit": {
        "n_blocks": Span(1, 16),
        "block_length": Searched(
            (Span(4, 40), Among((0, 2, 4, 8))), lambda shortest, wider: [shortest, shortest + wider]
        ),
        "high": Span(42, 80, 2.0, even=True),
        "sd": Span(2, 32),
    },
    "reversal_learning": {
        "n_plays": Span(20, 480),
        "win_probability": Searched(
            (Span(0.55, 1.0, 0.05), Span(0.0, 0.45, 0.05)), lambda *rates: [*rates]
        ),
        "block_length": Searched(
            (Span(3, 40), Among((1.0, 1.5, 2.0))),
            lambda fewest, times: [fewest, round(fewest * times)],
        ),
        "criterion": None,
    },
    "iowa_gambling": {"n_cards": Span(20, 400)},
    "causal_inference": {
        "graph": Among(tuple(NAMED_GRAPHS)),
        "told": Among((1, 2, 3)),
        "interventions": None,
        "repeats": Span(1, 20),
    },
    "causal_strength": {
        "cases": Among((4, 8, 16, 32)),
        "levels": Among((3, 5, 9)),
        "repeats": Span(1, 20),
    },
    "risky_choice": {"problems": Among(tuple(SETS)), "repeats": Span(1, 8)},
    "adjusting_amount": {"losses": None, "questions": Span(2, 10), "repeats": Span(1, 8)},
}
# The paper's values of settings of which experiments ship others.
PAPERS: dict[str, dict[str, Any]] = {"temporal_discounting": {"design": "adaptive", "n_repeats": 1}}
