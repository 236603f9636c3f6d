"""What a server sends to harm: answers without bound, bodies without end, keys in disguise."""

import asyncio
import json
from urllib.parse import quote

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

from fault_server import FaultServer

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import Sampling, UnreadableReply
from knownminds.llm_adapters.masking import masked
from knownminds.llm_adapters.providers.anthropic import Anthropic
from knownminds.llm_adapters.providers.endpoint import MOST_BYTES
from knownminds.llm_adapters.providers.google import Google
from knownminds.llm_adapters.providers.openai import OpenAI

KEY = "sk-canary/0123+456=89abcdef"
PROMPT = Prompt((Message("user", "Which one, A or B?"),))
ADAPTERS = {"openai": OpenAI, "anthropic": Anthropic, "google": Google}


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_answer_without_bound_is_left_unread_and_told(name):
    async def ask(server):
        model = {"anthropic": "claude-3-5-haiku"}.get(name, "m")
        adapter = ADAPTERS[name](model, base_url=server.address[name], key_variable=None)
        try:
            with pytest.raises(UnreadableReply, match=f"at most {MOST_BYTES:,} bytes"):
                await adapter.complete(PROMPT, settings=Sampling(max_tokens=9))
        finally:
            await adapter.close()

    with FaultServer(script=["flood"]) as server:
        asyncio.run(ask(server))
        assert server.flooded <= MOST_BYTES + 2**24  # and what waits in sockets, of 2**26


SPELT = {
    "as it is": lambda key: key,
    "percent": lambda key: quote(key, safe=""),
    "percent, in small letters": lambda key: quote(key, safe="").lower(),
    "percent throughout": lambda key: "".join(f"%{ord(c):02X}" for c in key),
    "escaped slash": lambda key: json.dumps(key).replace("/", "\\/")[1:-1],
    "escaped throughout": lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
}


@pytest.mark.parametrize("way", SPELT)
def test_a_key_is_masked_however_it_is_spelt(way):
    said = f"x {SPELT[way](KEY)} y"
    assert masked(said, KEY) == "x [key] y"
    assert masked("100% of \\u00e9 and a \\/", KEY) == "100% of \\u00e9 and a \\/"
