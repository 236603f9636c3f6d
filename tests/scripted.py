"""An adapter that replies as it is told."""

from knownminds.llm_adapters import Capabilities, Reply, Usage


class Scripted:
    """Replies as told, one item after another: texts, replies, or errors; then `rest`."""

    model, provider, base_url = "scripted", "test", ""
    capabilities = Capabilities()

    def __init__(self, *script, rest=""):
        self.script, self.rest = list(script), rest

    async def complete(self, prompt, *, settings):
        item = self.script.pop(0) if self.script else self.rest
        if isinstance(item, BaseException):
            raise item
        return item if isinstance(item, Reply) else Reply(item, usage=Usage(7, 2), model_served="m")

    async def close(self):
        pass
