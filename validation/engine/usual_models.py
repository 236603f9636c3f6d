"""The usual model of an experiment, where none is named."""

from __future__ import annotations

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, Environment, make

FIRST = "rescorla_wagner_dual"  # wherever it plays


def usual_model(environment: Environment | str | None) -> str:
    """Return the name of the usual model of an experiment, also of one that a plugin brings.

    It is the one that the experiment names, else `FIRST`, else the first by name that plays it: of
    those of the experiment's own package, or of the user's files, if there are any.
    """
    if environment is None or (isinstance(environment, str) and environment not in ENVIRONMENTS):
        return FIRST
    place = make(environment) if isinstance(environment, str) else environment
    if place.usual_model:
        return place.usual_model
    if AGENTS[FIRST].plays(place):
        return FIRST
    home = type(place).__module__.partition(".")[0]
    playing = [model for model in AGENTS.values() if len(model.parameters) and model.plays(place)]
    others = {m.name for m in playing if m.__module__.partition(".")[0] != home}
    playing.sort(key=lambda m: (m.name in others and AGENTS.is_listed(m.name), m.name))
    return playing[0].name if playing else "random_responder"
