"""Language models in the participant's chair, and known minds that answer in their stead.

`ADAPTERS` lists every adapter by name; `load` imports one, and with it the package it needs.
"""

from importlib import import_module
from typing import Any

from knownminds.environments import unknown

from .adapter import (
    Adapter,
    AdapterError,
    Capabilities,
    Keyed,
    ModelChanged,
    NoCredit,
    NoKey,
    NoReply,
    NotCapable,
    RateLimited,
    Rejected,
    Reply,
    Sampling,
    ServerFailed,
    TellsOutcomes,
    TokenLogProbability,
    TryAgain,
    UnknownModel,
    Unreachable,
    UnreadableReply,
    Unusable,
    Usage,
    check_capable,
    key_variable_of,
)
from .known_minds.synthetic import Synthetic
from .runs.participant import run_session, run_sessions

# What is shipped is named, so that nothing is imported before it is used; what others bring is a
# class.
ADAPTERS: dict[str, str | type] = {
    "anthropic": "providers.anthropic:Anthropic",
    "google": "providers.google:Google",
    "inspect": "providers.inspect:Inspect",
    "openai": "providers.openai:OpenAI",
    "synthetic": "known_minds.synthetic:Synthetic",
    "transformers": "providers.transformers:Transformers",
}


def load(name: str) -> Any:
    """Return the class of an adapter; ImportError says what to install if a package is missing."""
    if name not in ADAPTERS:
        raise ValueError(unknown("adapter", name, ADAPTERS))
    found = ADAPTERS[name]
    if not isinstance(found, str):
        return found
    module, _, adapter = found.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), adapter)


__all__ = [
    "ADAPTERS",
    "Adapter",
    "AdapterError",
    "Capabilities",
    "Keyed",
    "ModelChanged",
    "NoCredit",
    "NoKey",
    "NoReply",
    "NotCapable",
    "RateLimited",
    "Rejected",
    "Reply",
    "Sampling",
    "ServerFailed",
    "Synthetic",
    "TellsOutcomes",
    "TokenLogProbability",
    "TryAgain",
    "UnknownModel",
    "Unreachable",
    "UnreadableReply",
    "Unusable",
    "Usage",
    "check_capable",
    "key_variable_of",
    "load",
    "run_session",
    "run_sessions",
]

if __name__ != "knownminds.llm_adapters":
    raise ImportError(f"import knownminds.llm_adapters, not {__name__}")
