"""The sentence that answers an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from knownminds.members import elsewhere


def unknown(kind: str, name: str, names: Iterable[str], where: str = "") -> str:
    """Return a sentence that a name is unknown, with the nearest names or else all names.

    A member of a package that is not installed is named with the package.
    """
    package = elsewhere().get(name)
    if package is not None:
        return (
            f"The {kind} {name!r} is part of {package}, which is not installed: "
            f"pip install {package} (in a checkout: pip install -e ./more)."
        )
    known = sorted(names)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"Nearest: {', '.join(near)}." if near else f"There are: {', '.join(known) or 'none'}."
    return f"There is no {kind} named {name!r}{where}. {hint}"
