"""Settings: class attributes that are declared, checked, and passed to the constructor."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

from .fields import WORDS, Fields, Setting, jsonable

T = TypeVar("T")


class OfClass(Generic[T]):
    """An attribute that a function computes from the class, when it is first read."""

    def __init__(self, compute: Callable[[Any], T]):
        self.compute = lru_cache(maxsize=None)(compute)

    def __get__(self, instance: object, owner: type) -> T:
        """Return the value for the class, whether it is read off the class or an object."""
        return self.compute(owner)


def settings_of(kind: type) -> dict[str, Setting]:
    """Return the settings of a class by attribute: its own, then those of its base.

    A setting of the base that the class redefines as something else is left out.
    """
    bases = [base for base in kind.__mro__[1:] if issubclass(base, Configured)]
    inherited = bases[0].setting_table if bases else {}
    kinds = inspect.get_annotations(kind)
    settings = {
        name: replace(declared, kind=str(kinds.get(name, "Any")))
        for name, declared in vars(kind).items()
        if isinstance(declared, Setting)
    }
    kept = {name: declared for name, declared in inherited.items() if name not in vars(kind)}
    first = {name: declared for name, declared in settings.items() if not declared.last}
    return {**first, **kept, **settings}


def signature_of(kind: type[Configured]) -> inspect.Signature:
    """Return the signature of a constructor that takes the settings of a class."""
    return inspect.Signature(
        [
            inspect.Parameter(
                declared.called or name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=declared.default,
                annotation=declared.kind,
            )
            for name, declared in kind.setting_table.items()
        ]
    )


def shown_signature(kind: type[Configured]) -> inspect.Signature | None:
    """Return the signature of the settings; None for a class with a constructor of its own."""
    return signature_of(kind) if kind.__init__ is Configured.__init__ else None


def size_of(kind: type[Configured]) -> str | None:
    """Return the setting to which the number of trials is proportional; None if it is fixed."""
    table = kind.setting_table.items()
    return next((declared.called or name for name, declared in table if declared.size), None)


class Configured:
    """Something with settings, which are class attributes that `setting` makes.

    Attributes
    ----------
    setting_table : All settings, by attribute.
    size : The setting to which the number of trials is proportional; None if it is fixed.
    """

    name: ClassVar[str]
    fields: Fields = Fields()
    setting_table = OfClass(settings_of)
    size: str | None = OfClass(size_of)  # type: ignore[assignment]
    __signature__ = OfClass(shown_signature)

    def __init__(self, *values: Any, **settings: Any):
        given = signature_of(type(self)).bind(*values, **settings)
        given.apply_defaults()
        self._settings: dict[str, Any] = {}
        for name, declared in self.setting_table.items():
            called = declared.called or name
            self._settings[called] = declared.rule(called, given.arguments[called])
            setattr(self, name, self._settings[called])
        self.prepare()

    def prepare(self) -> None:
        """Check settings against each other, and make what follows from them; this runs once."""

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, JSON-able: `make(name, **settings)` rebuilds it."""
        return {name: jsonable(value) for name, value in self._settings.items()}

    @property
    def recorded_settings(self) -> dict[str, Any]:
        """The settings that are saved with trials: all except paths of words."""
        table = self.setting_table.items()
        words = {declared.called or name for name, declared in table if declared.rule is WORDS}
        return {name: value for name, value in self.settings.items() if name not in words}

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self.settings.items())
        return f"{type(self).__name__}({inside})"
