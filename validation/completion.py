"""Names that the shell completes, read off the registries without importing what they list."""

from __future__ import annotations

import ast
import importlib.util
import re
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import typer

# Each registry is in its package's __init__.py.
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
    file = _file_of(package)
    if kind == "measures":  # which are made in loops: their names stand in a file beside this one
        return Path(__file__).with_name("measures.txt").read_text(encoding="utf-8").split()
    text = file.read_text(encoding="utf-8")
    if kind == "environments":
        listed = text.partition(f"\n{registry}: ")[2].partition("}\n")[0]
        classes = re.findall(r"^ +(\w+),$", listed, re.MULTILINE)
    else:  # the registry is made of the classes that the files of models export
        modules = re.findall(r"^from \.([\w.]+) import \*", text, re.MULTILINE)
        files = [file.parent.joinpath(*module.split(".")).with_suffix(".py") for module in modules]
        classes = [name for one in files for name in _exported(one.read_text("utf-8"))]
    return [re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in classes]


def _exported(text: str) -> Iterator[str]:
    """Go through the names in the `__all__` of a file."""
    for line in ast.parse(text).body:
        if not (isinstance(line, ast.Assign) and isinstance(line.value, ast.List)):
            continue
        if any(isinstance(name, ast.Name) and name.id == "__all__" for name in line.targets):
            entries = line.value.elts
            yield from (str(one.value) for one in entries if isinstance(one, ast.Constant))


def _file_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"{package} is not installed whole; install knownminds again.")
    return Path(spec.origin)


def check_member(*kinds: str, besides: Iterable[str] = ()) -> Callable[[str], str]:
    """Return a function that refuses a name of no member before anything that computes is loaded.

    Once a registry itself is loaded, as it is where plugins add to it, that is left to those who
    look the name up.

    Parameters
    ----------
    kinds
        "environment", "model" or "measure".
    besides
        Further names that are good.
    """
    kind = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)

    def check(value: str) -> str:
        packages = [REGISTRIES[f"{one}s"][0] for one in kinds]
        known = [*(name for one in kinds for name in names(f"{one}s")), *besides]
        if not value or any(package in sys.modules for package in packages) or value in known:
            return value
        # The sentence's file: importing it from its package would load the whole floor.
        file = _file_of("knownminds.environments").parent / "words" / "names.py"
        raise ValueError(runpy.run_path(str(file))["unknown"](kind, value, known))

    return check


def model_or_usual(context: typer.Context, model: str | None) -> str:
    """Return the model that was named, or the usual one of the command's experiment."""
    if model is not None or context.resilient_parsing:
        return check_member("model")(model or "")
    from knownminds.validation.engine.usual_models import usual_model

    return usual_model(context.params.get("environment"))


def completes(*kinds: str) -> Callable[[str], list[str]]:
    """Return a function that completes a word to the names of these kinds."""

    def complete(incomplete: str) -> list[str]:
        return [name for kind in kinds for name in names(kind) if name.startswith(incomplete)]

    return complete
