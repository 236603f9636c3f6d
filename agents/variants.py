"""Variants of a model: some of its parameters are fixed, or follow from the others."""

from __future__ import annotations

import sys
from typing import Any

from .model import Model


def holding(
    model: type[Model],
    name: str,
    summary: str = "",
    *,
    source: str | None = None,
    doc: str = "",
    **values: Any,
) -> type[Model]:
    """Make the model in which some parameters of another one are not free.

    Parameters
    ----------
    model : The model with more parameters; it becomes `nested_in` of the new one.
    name, summary, source, doc : The name of the new model, what it does, where it comes from, and
        its docstring. Source and docstring, and then the summary, are those of `model` unless they
        are given.
    values : By parameter: a number, the name of the parameter that it equals, a function of the
        model's parameters (`lambda self: 1 - self.alpha`), or a `Parameter` with another prior.
    """
    title = "".join(part.capitalize() for part in name.split("_"))
    body: dict[str, Any] = {
        "__module__": sys._getframe(1).f_globals["__name__"],
        "__doc__": doc or f"A `{model.__name__}` with {_written(values)}.",
        "name": name,
        "summary": summary or model.summary,
        "source": model.source if source is None else source,
        "nested_in": model.name,
    }
    return type(title, (model,), body | {key: _attribute(v) for key, v in values.items()})


def _attribute(value: Any) -> Any:
    if isinstance(value, str):
        return property(lambda self: getattr(self, value))
    return property(value) if callable(value) else value


def _written(values: dict[str, Any]) -> str:
    """Return the values that parameters have, as a sentence."""
    return ", ".join(
        f"{name} = {value}" if isinstance(value, str | float | int) else f"another prior of {name}"
        for name, value in values.items()
    )
