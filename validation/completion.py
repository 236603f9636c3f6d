"""Names that the shell completes, read off the registries without importing what they list."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable
from pathlib import Path

# Each registry is one dictionary, written out in its package's __init__.py.
REGISTRIES = {
    "environments": ("knownminds.environments", "ENVIRONMENTS"),
    "models": ("knownminds.agents", "AGENTS"),
    "measures": ("knownminds.inference", "MEASURES"),
}


def names(kind: str) -> list[str]:
    """Return the names of a registry, in its order.

    Importing the registries takes seconds, at every press of the key; reading them does not.

    Parameters
    ----------
    kind
        "environments", "models" or "measures".
    """
    package, registry = REGISTRIES[kind]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"{package} is not installed whole; install knownminds again.")
    for line in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if (
            isinstance(line, ast.AnnAssign)
            and isinstance(line.target, ast.Name)
            and line.target.id == registry
            and isinstance(line.value, ast.Dict)
        ):
            return [str(key.value) for key in line.value.keys if isinstance(key, ast.Constant)]
    raise ImportError(f"{package} writes out no dictionary {registry}.")


def completes(*kinds: str) -> Callable[[str], list[str]]:
    """Return a function that completes a word to the names of these kinds."""

    def complete(incomplete: str) -> list[str]:
        return [name for kind in kinds for name in names(kind) if name.startswith(incomplete)]

    return complete
