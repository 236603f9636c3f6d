"""Names that the shell completes, and that a command refuses before anything is computed."""

from __future__ import annotations

import sys
from collections.abc import Callable

from knownminds.members import listed, unknown


def check_member(*kinds: str) -> Callable[[str], str]:
    """Return a function that refuses a name of no member before anything that computes is loaded.

    Once the registries are loaded, as they are where plugins add to them, that is left to those who
    look the name up.

    Parameters
    ----------
    kinds : "environment", "model", "measure" or "audit"
    """
    kind = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)

    def check(value: str) -> str:
        known = [name for one in kinds for name in listed(f"{one}s")]
        if not value or "knownminds.environments" in sys.modules or value in known:
            return value
        if value.endswith(".py"):
            raise ValueError(
                f"A file of your own goes with --plugin {value}; the {kind} is then called by the "
                "name that it has in it."
            )
        raise ValueError(f"{unknown(kind, value, known)} One of your own comes with --plugin FILE.")

    return check


def completes(*kinds: str) -> Callable[[str], list[str]]:
    """Return a function that completes a word to the names of these kinds."""

    def complete(incomplete: str) -> list[str]:
        return [name for kind in kinds for name in listed(kind) if name.startswith(incomplete)]

    return complete
