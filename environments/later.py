"""Packages that take long to import; each is imported at its first use.

Write `from knownminds.environments.later import pandas as pd` instead of `import pandas as pd`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


class Later(ModuleType):
    """A module that is imported when one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        """Import the module once, and return its attribute of this name."""
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Return how another process gets the module."""
        return import_module, (self.__name__,)


if TYPE_CHECKING:
    import formulaic as formulaic
    import pandas as pandas
else:
    formulaic = Later("formulaic")
    pandas = Later("pandas")
