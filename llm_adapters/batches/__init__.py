"""Batches of requests, which providers answer within a day at half the price: one file for each.

Imported by runs; itself imports the contract and providers.
"""

from typing import Any

from knownminds.llm_adapters.adapter import Adapter, Failed
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


def check_takes_batches(adapter: Adapter) -> type[Batches]:
    """Return the batches of an adapter's provider; `Failed` if it takes none."""
    if adapter.provider not in BATCHES:
        message = (
            f"Batches are taken by {', '.join(sorted(BATCHES))}; {adapter.provider}:"
            f"{adapter.model} is asked call by call. Leave --batch out."
        )
        raise Failed(message, "stop", "setting", charged=False)
    return BATCHES[adapter.provider]


def batches_of(adapter: Adapter) -> Batches:
    """Return the batches of an adapter's provider; `Failed` if it takes none."""
    http: Any = adapter
    assert isinstance(http, Http)
    return check_takes_batches(adapter)(http)


__all__ = ["BATCHES", "Batches", "batches_of", "check_takes_batches"]
