"""Which models meet which experiments in the contract tests: all of either, not all pairs."""

from functools import cache

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make


@cache
def made(name):
    """Make an experiment as it comes; whoever asks changes nothing."""
    return make(name)


def pairs(retold=None):
    """Pair each model with the first experiment it plays, and each experiment with a model.

    `retold` keeps the experiments whose prompts tell of the past, or those whose do not.
    """
    places = [name for name in ENVIRONMENTS if retold in (None, made(name).past != "none")]
    found = []
    for name, model in AGENTS.items():
        playable = [place for place in places if model.plays(made(place))]
        found += [(name, place) for place in playable[:1]]
    for place in places:
        if place not in {p for _, p in found}:
            found += [(n, place) for n, model in AGENTS.items() if model.plays(made(place))][-1:]
    return found
