"""Which models meet which experiments in the contract tests: all of either, not all pairs."""

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make


def pairs(retold=None):
    """Pair each model with the first experiment it plays, and each experiment with a model.

    `retold` keeps the experiments whose prompts tell of the past, or those whose do not.
    """
    places = [name for name in ENVIRONMENTS if retold in (None, make(name).past != "none")]
    found = []
    for name, model in AGENTS.items():
        playable = [place for place in places if model.plays(make(place))]
        found += [(name, place) for place in playable[:1]]
    for place in places:
        if place not in {p for _, p in found}:
            found += [(n, place) for n, model in AGENTS.items() if model.plays(make(place))][-1:]
    return found
