"""Which models lie within which: at best, an outer model is no less likely than an inner one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import AGENTS
from .model import Model
from .parameters import Array


@dataclass(frozen=True)
class Nesting:
    """A model whose likelihood another model has, or approaches, at some of its parameters.

    Parameters
    ----------
    inner, outer
        The two models.
    values
        Parameters of the outer model that are not attributes of the inner one. Each is a number,
        the name of the inner parameter that it equals, or a function of the inner parameters. A
        parameter that the inner model leaves open may have any value. A limit is written as 0, 1 or
        infinity.
    """

    inner: type[Model]
    outer: type[Model]
    values: dict[str, Any]

    def embed(self, theta: Array) -> Array:
        """Return parameters of the outer model, given those of the inner one [N, P]."""
        named = dict(zip(self.inner.parameters.names, np.asarray(theta).T, strict=True))
        agent = object.__new__(self.inner)
        agent.__dict__.update(named)

        def column(name: str) -> Any:
            value = self.values.get(name, name)
            if callable(value):
                return value(SimpleNamespace(**named))
            return getattr(agent, value) if isinstance(value, str) else value

        columns = [column(name) for name in self.outer.parameters.names]
        return np.stack([np.broadcast_to(c, len(theta)) for c in columns], axis=-1)


# These come besides the models that themselves say in which model they lie (`nested_in`).
_ROWS: tuple[tuple[str, str, dict[str, float | str | Callable[[Any], Any]]], ...] = (
    ("perseverator", "rescorla_wagner", {"alpha": 0.5, "beta": 0.0}),
    ("rescorla_wagner", "rescorla_wagner_choice_kernel", {"alpha_c": 1.0, "beta_c": "kappa"}),
    ("rescorla_wagner", "forgetting_learner", {"phi": 0.0}),
    ("rescorla_wagner", "pearce_hall", {"eta": 0.0}),
    (
        "rescorla_wagner",
        "outcome_sensitivity",
        {"rho_win": lambda inner: inner.beta / 2, "rho_loss": lambda inner: inner.beta / 2},
    ),
    ("perseverator", "choice_kernel", {"alpha_c": 1.0, "beta_c": "kappa"}),
    ("choice_kernel", "rescorla_wagner_choice_kernel", {"alpha": 0.5, "beta": 0.0}),
    ("random_responder", "perseverator", {"kappa": 0.0}),
    ("random_responder", "horizon_blind", {"A": 0.0, "B": 0.0, "s": float("inf")}),
    ("random_responder", "thompson_explorer", {"w_random": 0.0}),
    (
        "exponential_discounter",
        "quasi_hyperbolic_discounter",
        {"beta": 1.0, "delta": lambda inner: np.exp(-inner.k)},
    ),
    ("exponential_discounter", "constant_sensitivity_discounter", {"s": 1.0}),
    ("hyperbolic_discounter", "generalised_hyperbolic_discounter", {"s": 1.0}),
    ("hyperbolic_discounter", "rachlin_discounter", {"s": 1.0}),
    ("hyperbolic_discounter", "fixed_cost_discounter", {"b": 0.0}),
    ("noisy_or", "mutation_sampler", {"lambda": float("inf")}),
    ("noisy_or", "associative_reasoner", {"k": 0.0}),
    ("expected_utility", "prospect_theory_tversky_kahneman", {}),
    ("random_responder", "minimax", {"error": 1.0}),
    ("cue_weigher_optimal", "cue_weigher_blurred", {"per_pixel": 0.0}),
    ("ambiguity_neutral", "ambiguity_insensitive", {"aversion": 0.0, "insensitivity": 0.0}),
    ("random_utility", "prospect_utility", {"gamma": 1.0}),
    ("random_utility", "prospect_utility_tversky_kahneman", {"gamma": 1.0}),
    ("random_utility", "noisy_reporter", {}),
    ("random_utility", "outcome_peeker", {"delta": 0.0}),
    ("random_utility", "misreporter", {"kappa": 0.0}),
    ("random_utility", "incoherent_believer", {"kappa": 0.0}),
    ("random_utility", "frame_dependent", {"kappa": 0.0}),
    ("random_utility", "non_monotone_decider", {"kappa": 0.0}),
)


def _nested() -> tuple[Nesting, ...]:
    inside = [(name, vars(model).get("nested_in")) for name, model in AGENTS.items()]
    rows: list[tuple[str, str, dict[str, Any]]]
    rows = [(inner, outer, {}) for inner, outer in inside if outer]
    return tuple(
        Nesting(AGENTS[inner], AGENTS[outer], values) for inner, outer, values in (*rows, *_ROWS)
    )


NESTED = _nested()
