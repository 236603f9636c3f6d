"""Keys in what is written down, as they stand there."""

from __future__ import annotations

import json
import os
from urllib.parse import quote

MASK = b"[key]"
SHORTEST_KEY = 12  # characters; a shorter one also stands in answers by chance
SECRETS = ("_KEY", "_TOKEN", "_SECRET")  # how names of variables end that hold a key


def spellings_of(key: str) -> tuple[bytes, ...]:
    """Return a key as it stands in a text, in JSON, and in an address; none of a short one."""
    if len(key) < SHORTEST_KEY:
        return ()
    escaped = json.dumps(key)[1:-1]
    spellings = {key, escaped, escaped.replace("/", "\\/"), quote(key, safe="")}
    return tuple(spelling.encode() for spelling in sorted(spellings, key=len, reverse=True))


def known_keys(*variables: str | None) -> tuple[bytes, ...]:
    """Return the keys in these environment variables, and in all that are named like keys.

    Each comes in all spellings that are masked, the longest first: one key may begin another.
    """
    names = {name for name in os.environ if name.upper().endswith(SECRETS)}
    values = {os.environ.get(name, "").strip() for name in (*names, *filter(None, variables))}
    spellings = {spelling for value in values for spelling in spellings_of(value)}
    return tuple(sorted(spellings, key=lambda spelling: (-len(spelling), spelling)))


def masked(content: bytes, keys: tuple[bytes, ...]) -> bytes:
    """Return bytes without these keys."""
    for key in keys:
        if key in content:
            content = content.replace(key, MASK)
    return content
