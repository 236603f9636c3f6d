"""Which models lie within which: at best, an outer model is no less likely than an inner one."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from knownminds.environments import unknown

from . import AGENTS
from .model import Model
from .parameters import Array


@dataclass(frozen=True)
class Nesting:
    """A model whose likelihood another model has, or approaches, at some of its parameters.

    Parameters
    ----------
    inner, outer : The two models.
    values : Parameters of the outer model that are not attributes of the inner one. Each is a
        number, the name of the inner parameter that it equals, or a function of the inner
        parameters. A parameter that the inner model leaves open may have any value. A limit is
        written as 0, 1 or infinity.
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


def nestings_of(outer: type[Model]) -> list[Nesting]:
    """Return the nestings of the models that lie within this one, as they are known now.

    Either the inner model says so by `nested_in`, or the outer one by `contains`.
    """
    inside = [m for m in AGENTS.values() if vars(m).get("nested_in") == outer.name]
    told = vars(outer).get("contains", {})
    missing = next((name for name in told if name not in AGENTS), None)
    if missing is not None:
        raise ValueError(f"{outer.name} contains {missing!r}. {unknown('model', missing, AGENTS)}")
    return [
        *(Nesting(inner, outer, {}) for inner in inside),
        *(Nesting(AGENTS[name], outer, values) for name, values in told.items()),
    ]
