"""Settings: class attributes that are declared, checked, and passed to the constructor."""

from __future__ import annotations

from typing import Any, ClassVar

from .fields import WORDS, Fields, Setting, documented, jsonable, settings_of, signature_of


class Configured:
    """Something with settings, which are class attributes that `setting` makes.

    Attributes
    ----------
    setting_table
        All settings, by attribute; made from the `setting`s of the class.
    size
        The setting to which the number of trials is proportional; None if it is fixed.
    """

    name: ClassVar[str]
    fields: Fields = Fields()
    setting_table: ClassVar[dict[str, Setting]] = {}
    size: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Gather the settings of a class."""
        super().__init_subclass__(**kwargs)
        cls.setting_table = settings_of(cls, cls.setting_table)
        for name in [name for name, declared in vars(cls).items() if isinstance(declared, Setting)]:
            delattr(cls, name)  # an attribute is read faster if its class has none of that name
        sizes = [
            declared.called or name for name, declared in cls.setting_table.items() if declared.size
        ]
        if sizes:
            cls.size = sizes[0]
        # A class with a constructor of its own keeps that constructor's signature.
        has_constructor = "__init__" in vars(cls)
        cls.__signature__ = None if has_constructor else signature_of(cls.setting_table)  # type: ignore[attr-defined]
        if cls.__doc__ and "__doc__" in vars(cls):
            cls.__doc__ = documented(cls.__doc__, cls.fields, cls.setting_table)

    def __init__(self, *values: Any, **settings: Any):
        given = signature_of(self.setting_table).bind(*values, **settings)
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
        """Show the settings."""
        inside = ", ".join(f"{k}={v!r}" for k, v in self.settings.items())
        return f"{type(self).__name__}({inside})"
