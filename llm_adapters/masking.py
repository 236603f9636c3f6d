"""Keys in texts, also where a server repeats them in another spelling."""

from __future__ import annotations

import re
from functools import lru_cache

MASK = "[key]"


def masked(text: str, key: str) -> str:
    """Return a text without a key, however it is spelt: as it is, percent-encoded, or escaped."""
    if key in text:
        text = text.replace(key, MASK)
    if "%" in text or "\\/" in text or "\\u" in text:
        text = _spelt(key).sub(MASK, text)
    return text


@lru_cache(maxsize=32)
def _spelt(key: str) -> re.Pattern[str]:
    """Return a pattern of a key in which each character may be `%2F`, `\\/` or `\\u002f`."""
    return re.compile("".join(_one(character) for character in key))


def _one(character: str) -> str:
    encoded = "".join(f"%{byte:02x}" for byte in character.encode())
    ways = [re.escape(character), _any_case(encoded)]
    if ord(character) < 2**16:
        ways.append(r"\\u" + _any_case(f"{ord(character):04x}"))
    if character == "/":
        ways.append(r"\\/")
    return f"(?:{'|'.join(ways)})"


def _any_case(digits: str) -> str:
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else re.escape(d) for d in digits)
