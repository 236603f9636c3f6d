"""An adapter that replies by a script, and failures as adapters raise them."""

from knownminds.llm_adapters import Failed, InProcess, Reply, Sampling, Usage


class Scripted(InProcess):
    """Replies in order, one item after another: texts, replies, or errors; then `rest`."""

    model, provider = "scripted", "test"
    heeds = frozenset(vars(Sampling()))

    def __init__(self, *script, rest=""):
        self.script, self.rest = list(script), rest

    async def complete(self, prompt, *, settings):
        item = self.script.pop(0) if self.script else self.rest
        if isinstance(item, BaseException):
            raise item
        return item if isinstance(item, Reply) else Reply(item, usage=Usage(7, 2), model_served="m")


def rejected(said):
    """What it means that a prompt is not taken."""
    return Failed(said, "skip", "prompt 400", charged=False)


def unreadable(said):
    """What it means that an answer cannot be read."""
    return Failed(said, "skip", "unreadable")


def often(said, wait=None):
    """What it means to be called too often."""
    return Failed(said, "retry", "often", charged=False, wait=wait)


def server_failed(said):
    """What it means that a server fails."""
    return Failed(said, "retry", "server 500")


def unreachable(said, charged=None):
    """What it means that a server cannot be reached."""
    return Failed(said, "retry", "connection", charged=charged)
