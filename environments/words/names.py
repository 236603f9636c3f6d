"""The sentence that answers an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown(kind: str, name: str, names: Iterable[str], where: str = "") -> str:
    """Return a sentence that a name is unknown, with the nearest names or else all names."""
    known = sorted(names)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"Nearest: {', '.join(near)}." if near else f"There are: {', '.join(known) or 'none'}."
    return f"There is no {kind} named {name!r}{where}. {hint}"
