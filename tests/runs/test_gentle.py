"""How many calls are under way at a time, held against providers that take only so many."""

import asyncio

import pytest

pytest.importorskip("openai")


from knownminds.llm_adapters.runs.admission import FIRST, Caps, Gate
from knownminds.llm_adapters.runs.ledger import Spent


class Fixed(Gate):
    """Always as many calls as are allowed; those that are too many wait, as they are told to."""

    def __init__(self, concurrency, caps, spent):
        super().__init__(concurrency, caps, spent)
        self.allowed = concurrency

    def slow_down(self, entered, wait):
        self._opens = max(self._opens, self.now() + wait)

    def went_well(self):
        """Change nothing."""


class Skipping(asyncio.SelectorEventLoop):
    """A loop whose clock goes to the next appointment at once."""

    def __init__(self):
        super().__init__()
        self.clock = 0.0

    def time(self):
        return self.clock

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.clock = max(self.clock, self._scheduled[0]._when)
        super()._run_once()


SECONDS = 10


async def _live(gate, rate, latency):
    """Call a provider that takes `rate` calls a second; return answers, refusals and the peak."""
    stock, last, told, peak = float(rate), 0.0, {True: 0, False: 0}, 0

    async def session(k):
        nonlocal stock, last, peak
        while gate.now() < SECONDS:
            due = await gate.enter(k, Spent(1))
            entered = gate.now()
            peak = max(peak, gate.under_way)
            stock, last = min(rate, stock + rate * (entered - last)), entered
            taken = stock >= 1
            stock -= taken
            await asyncio.sleep(latency if taken else 0.005)
            gate.leave(k, due, Spent(1))
            told[taken] += 1
            if taken:
                gate.went_well()
            else:
                gate.slow_down(entered, 0.1)
                await gate.pause(0.1)

    await asyncio.gather(*(session(k) for k in range(32)))
    return told[True], told[False], peak


@pytest.mark.parametrize(("rate", "latency"), [(50, 0.2), (100, 0.05)])
def test_a_limit_is_nearly_used_and_seldom_passed(rate, latency):
    seen = {}
    for kind in (Fixed, Gate):
        loop = Skipping()
        try:
            gate = kind(32, Caps(), {})
            seen[kind] = loop.run_until_complete(_live(gate, rate, latency))
        finally:
            loop.close()
    answers, refusals, peak = seen[Gate]
    assert answers > 0.9 * rate * SECONDS
    assert refusals < 0.1 * seen[Fixed][1]
    # The doubling of the beginning may end in one round of calls that are all refused.
    assert refusals < 32 + 0.05 * answers
    assert peak <= 32


def test_calls_rise_from_a_few_while_answers_come_and_never_beyond_what_is_allowed():
    gate = Gate(8, Caps(), {})
    seen = [gate.allowed]
    for _ in range(20):
        gate.went_well()
        seen.append(gate.allowed)
    assert seen == [*range(FIRST, 9), *[8] * (21 - (9 - FIRST))]
    assert Gate(1, Caps(), {}).allowed == 1
