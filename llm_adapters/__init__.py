"""Language models in the participant's chair, and known agents that answer in their stead.

`ADAPTERS` lists every adapter by name; `load` imports one, and with it the package it needs.
"""

from functools import partial
from importlib import import_module
from typing import Any

from knownminds.calling import Sampling
from knownminds.environments import unknown
from knownminds.members import listed

from .adapter import (
    Adapter,
    Failed,
    InProcess,
    Reply,
    TellsContinuations,
    TokenLogProbability,
    Usage,
    check_heeds,
)
from .known_agents.synthetic import Synthetic
from .providers.openai import HOSTS
from .runs.runner import run_session

# What a package lists is named, so that nothing is imported before it is used; a file brings a
# class.
ADAPTERS: dict[str, str | type] = {
    **{name: place.module for name, place in listed("adapters").items()},
    **dict.fromkeys(HOSTS, f"{__name__}.providers.openai:OpenAI"),
}


def load(name: str) -> Any:
    """Return what makes an adapter; ImportError says what to install if a package is missing."""
    if name not in ADAPTERS:
        raise ValueError(unknown("adapter", name, ADAPTERS))
    entry = ADAPTERS[name]
    if not isinstance(entry, str):
        return entry
    module, _, adapter = entry.partition(":")
    made = getattr(import_module(module), adapter)
    return partial(made, provider=name) if name in HOSTS else made


__all__ = [
    "ADAPTERS",
    "HOSTS",
    "Adapter",
    "Failed",
    "InProcess",
    "Reply",
    "Sampling",
    "Synthetic",
    "TellsContinuations",
    "TokenLogProbability",
    "Usage",
    "check_heeds",
    "load",
    "run_session",
]

if __name__ != "knownminds.llm_adapters":
    raise ImportError(f"import knownminds.llm_adapters, not {__name__}")
