from collections import Counter

import numpy as np
import pytest

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import (
    AdapterError,
    Capabilities,
    RateLimited,
    Reply,
    Sampling,
    ServerFailed,
    Unreachable,
    UnreadableReply,
    Usage,
)
from knownminds.llm_adapters.known_minds.faulty import Faults, Faulty

HELLO = Prompt((Message("user", "Hello?"),))


class Answering:
    """Says the same to everyone, and counts."""

    model, provider, base_url, key_variable = "m", "test", "http://x", "SOME_KEY"
    capabilities = Capabilities(images=True)
    calls = 0
    closed = False

    async def complete(self, prompt, *, settings):
        self.calls += 1
        return Reply("machine", usage=Usage(3, 2), raw="{machine}", request_id="r")

    async def close(self):
        self.closed = True


def ask(adapter, prompt=HELLO, seed=0):
    try:
        adapter.complete(prompt, settings=Sampling(seed=seed)).send(None)  # it never waits
    except AdapterError as error:
        return error
    except StopIteration as end:
        return end.value


@pytest.mark.parametrize(
    ("fault", "kind", "charged", "asked"),
    [
        ("rate_limited", RateLimited, False, False),
        ("told_to_wait", RateLimited, False, False),
        ("failed", ServerFailed, None, False),
        ("timed_out", Unreachable, None, False),
        ("cut_off", Unreachable, None, True),
        ("unreadable", UnreadableReply, True, True),
    ],
)
def test_failures_are_those_of_a_provider_and_say_what_may_have_been_paid(
    fault, kind, charged, asked
):
    inner = Answering()
    faulty = Faulty(inner, script=[fault], retry_after=3.0)
    error, reply = ask(faulty), ask(faulty)
    assert type(error) is kind
    assert error.charged is charged
    assert inner.calls == 1 + asked  # the second call is answered
    assert reply == Reply("machine", usage=Usage(3, 2), raw="{machine}", request_id="r")
    if kind is RateLimited:
        assert error.retry_after == (3.0 if fault == "told_to_wait" else None)
    if fault == "unreadable":
        assert error.raw == '{"text": "machine'


def test_faults_strike_at_their_rates_whatever_the_order_of_the_calls():
    faults = Faults(rate_limited=0.1, failed=0.2, garbage=0.05, truncated=0.15)
    prompts = [Prompt((Message("user", f"{i}"),)) for i in range(500)]
    calls = [(prompt, seed) for prompt in prompts for seed in (0, 1)] * 2

    def happens(seed, order):
        faulty = Faulty(Answering(), faults, seed)
        found = [[] for _ in calls]
        for i in order:
            reply = ask(faulty, *calls[i])
            found[i % 1000].append(getattr(reply, "text", type(reply).__name__))
        return found[:1000]

    n = len(calls)
    one = happens(1, range(n))
    # The two calls of the same prompt and seed keep their order: they are told apart by it.
    other = happens(1, [*reversed(range(1000)), *reversed(range(1000, n))])
    assert one == other
    assert one != happens(2, range(n))
    counts = Counter(text for pair in one for text in pair)
    for name, rate in (("RateLimited", 0.1), ("ServerFailed", 0.2), ("mac", 0.15)):
        assert abs(counts[name] / n - rate) < 4 * np.sqrt(rate * (1 - rate) / n)
    again = sum(first == second for first, second in one) / 1000
    alike = sum((count / n) ** 2 for count in counts.values())  # independent: repeats are chance
    assert abs(again - alike) < 4 * np.sqrt(alike * (1 - alike) / 1000)
