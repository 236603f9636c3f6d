"""Batches of requests, which providers answer within a day at half the price: one file for each.

Imported by runs; itself imports the contract and providers.
"""

from knownminds.llm_adapters.adapter import Adapter, refused
from knownminds.llm_adapters.providers.http import Http

from .anthropic import AnthropicBatches
from .contract import Batches
from .google import GoogleBatches
from .openai import OpenAIBatches

BATCHES: dict[str, type[Batches]] = {
    "anthropic": AnthropicBatches,
    "google": GoogleBatches,
    "openai": OpenAIBatches,
}


def batches_of(adapter: Adapter) -> Batches:
    """Return the batches of an adapter's provider; `Failed` if it takes none."""
    if not isinstance(adapter, Http) or adapter.provider not in BATCHES:
        raise refused(
            f"Batches are taken by {', '.join(sorted(BATCHES))}; {adapter.provider}:"
            f"{adapter.model} is asked call by call. Leave --batch out."
        )
    return BATCHES[adapter.provider](adapter)


__all__ = ["BATCHES", "Batches", "batches_of"]
