"""The wordings of an experiment that a run can have."""

from __future__ import annotations

from knownminds.environments import Environment
from knownminds.environments.conditions import shipped_words
from knownminds.environments.words.prompt import paraphrases_of
from knownminds.validation.engine.arguments import set_to

SHIPPED = "shipped"


def wordings(environment: Environment, k: int, option: str = "--paraphrases") -> list[str]:
    """Return the names of k wordings that an experiment has, the shipped one first.

    Raises
    ------
    ValueError : If it has fewer, or its templates are set already.
    """
    if environment.settings.get("templates") is not None:
        raise ValueError(
            f"{option} takes the wordings that ship; templates="
            f"{environment.settings['templates']} is set. Leave one of them out."
        )
    known = [SHIPPED, *paraphrases_of(shipped_words(environment))]
    if not 1 <= k <= len(known):
        raise ValueError(
            f"{environment.name} has {len(known)} wording{'s' * (len(known) > 1)}; got "
            f"{option} {k}."
        )
    return known[:k]


def wordings_of(environment: Environment) -> dict[str, Environment]:
    """Return an experiment in all of its wordings, by name; alone if its words are set."""
    if environment.settings.get("templates") is not None:
        return {str(environment.settings["templates"]): environment}
    known = [SHIPPED, *paraphrases_of(shipped_words(environment))]
    named = {name: {} if name == SHIPPED else {"templates": name} for name in known}
    return {name: set_to(environment, settings) for name, settings in named.items()}
