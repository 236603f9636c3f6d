"""Names of variables that mean nothing, drawn from alphabets."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Content = Literal[
    "meaningful", "all", "alnum", "num_symb", "letters", "letters_digits", "digits_symbols"
]
CONTENTS: tuple[str, ...] = get_args(Content)

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_SYMBOLS = "!#$+=?@^~"  # none of these quotes, brackets, marks up or ends a sentence
# These are the thesis's kinds: each character is drawn from one alphabet.
_MIXED = {
    "all": _LETTERS + _DIGITS + _SYMBOLS,
    "alnum": _LETTERS + _DIGITS,
    "num_symb": _DIGITS + _SYMBOLS,
}
_ALPHABETS = {  # for the greater and the smaller part of a name
    "letters": (_LETTERS, _LETTERS),
    "letters_digits": (_LETTERS, _DIGITS),
    "digits_symbols": (_DIGITS, _SYMBOLS),
}
LENGTH = 10  # characters in a name
_SECOND = 4  # how many of them come from the second alphabet


def random_name(uniforms: NDArray[np.float64], content: str) -> str:
    """Make a name of ten characters from uniforms[2, 10]."""
    position, chosen = uniforms
    if content in _MIXED:
        mixed = _MIXED[content]
        return "".join(mixed[int(u * len(mixed))] for u in chosen)
    second = np.isin(np.arange(LENGTH), np.argsort(position)[:_SECOND])
    alphabets = _ALPHABETS[content]
    picked = (alphabets[int(s)] for s in second)
    return "".join(
        letters[int(u * len(letters))] for letters, u in zip(picked, chosen, strict=True)
    )
