"""Any adapter on a bad day: failures by chance, which hang on the prompt and not on the order."""

from scripted import often, server_failed, unreachable

from knownminds.environments import session_stream
from knownminds.llm_adapters import InProcess

FAULTS = ("often", "told_to_wait", "failed", "timed_out", "cut_off")


class Faulty(InProcess):
    """An adapter whose calls go wrong, each fault with its probability; "cut_off" is paid for."""

    def __init__(self, adapter, shares, seed=0, wait=1.0):
        self.adapter, self.shares, self.seed, self.wait = adapter, dict(shares), seed, wait
        self.model, self.provider, self.heeds = adapter.model, adapter.provider, adapter.heeds
        self._asked = {}

    async def complete(self, prompt, *, settings):
        call = (prompt.hash, settings.seed or 0)
        before = self._asked[call] = self._asked.get(call, -1) + 1
        u = session_stream(self.seed, int(prompt.hash[:8], 16), call[1], before).random()
        fault = None
        for name in FAULTS:
            u -= self.shares.get(name, 0.0)
            if u < 0:
                fault = name
                break
        if fault in ("often", "told_to_wait"):
            raise often("called too often (429)", self.wait if fault == "told_to_wait" else None)
        if fault == "failed":
            raise server_failed("the server failed (500)")
        if fault == "timed_out":
            raise unreachable("no answer in time")
        reply = await self.adapter.complete(prompt, settings=settings)
        if fault == "cut_off":
            raise unreachable("the connection broke")
        return reply
