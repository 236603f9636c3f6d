"""Batches of requests, which providers answer within a day at half the price: one file for each.

Imported by runs; itself imports the contract and providers.
"""

from importlib import import_module
from typing import Any

from knownminds.llm_adapters import load
from knownminds.llm_adapters.adapter import Adapter, NotCapable

from .contract import Batches

# As in `ADAPTERS`: the names of what is shipped, or classes.
BATCHES: dict[str, str | type] = {
    "anthropic": "anthropic:AnthropicBatches",
    "google": "google:GoogleBatches",
    "openai": "openai:OpenAIBatches",
}


def check_takes_batches(adapter: Adapter) -> str | type:
    """Return where the batches of an adapter's provider are; NotCapable if it takes none."""
    provider = adapter.provider
    found = BATCHES.get(provider)
    # What stands before an adapter, such as failures of a rehearsal, may bear its name.
    if found is None or (isinstance(found, str) and not isinstance(adapter, load(provider))):
        raise NotCapable(
            f"Batches are taken by {', '.join(sorted(BATCHES))}; {provider}:{adapter.model} is "
            "asked call by call. Leave --batch out."
        )
    return found


def batches_of(adapter: Adapter) -> Batches:
    """Return the batches of an adapter's provider; NotCapable if it takes none."""
    found = check_takes_batches(adapter)
    kind: Any = found
    if isinstance(found, str):
        module, _, name = found.partition(":")
        kind = getattr(import_module(f"{__name__}.{module}"), name)
    batches: Batches = kind(adapter)
    return batches


__all__ = ["BATCHES", "Batches", "batches_of", "check_takes_batches"]
