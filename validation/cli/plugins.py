"""What a command is told of files of the user's: `--plugin FILE`, `knownminds.toml`."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SETTINGS = "knownminds.toml"


def taken_from(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command's words into those without plugins, and the files of `--plugin`."""
    rest, files = [], []
    words = iter(arguments)
    for word in words:
        if word == "--plugin":
            files.append(next(words, ""))
        elif word.startswith("--plugin="):
            files.append(word.partition("=")[2])
        else:
            rest.append(word)
    return rest, files


def load_all(files: Sequence[str]) -> None:
    """Make known what the folder's settings list, and `files`.

    The registries are only imported if there is something to add to them.

    Raises
    ------
    ValueError : If something cannot be loaded, or a name is taken.
    """
    listed = [*listed_in(Path.cwd()), *files]
    if not listed:
        return
    from knownminds.llm_adapters import ADAPTERS
    from knownminds.validation.engine.members import load_file

    for file in listed:
        module = load_file(file)
        for value in vars(module).values():
            provider = getattr(value, "provider", None)
            is_local = isinstance(value, type) and value.__module__ == module.__name__
            if is_local and isinstance(provider, str) and hasattr(value, "complete"):
                ADAPTERS[provider] = value


def failed_in(error: Exception) -> str:
    """Say which function of a plugin has failed, in which line; "" if none has."""
    members: Any = sys.modules.get("knownminds.validation.engine.members")
    if members is None or not (files := members.loaded_files()):
        return ""
    from knownminds.environments.conformance import place_of

    return place_of(error, files)


def listed_in(folder: Path) -> list[str]:
    """Return the plugins that `knownminds.toml` in this folder lists."""
    file = folder / SETTINGS
    if not file.is_file():
        return []
    try:
        listed = tomllib.loads(file.read_text(encoding="utf-8")).get("plugins", [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file} is no TOML: {error}.") from None
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ValueError(f'{file} lists files as plugins = ["my_study.py"]; got {listed!r}.')
    return [os.fspath(folder / name) for name in listed]
