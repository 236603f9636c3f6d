"""For the site generator: an entry `name : text` of a docstring is a text and no type."""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^([\w*][\w*, ]*) : (?=.)", re.MULTILINE)


class Entries(griffe.Extension):
    """Puts the text of each entry into a line of its own, as NumPy's style wants it."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = ENTRY.sub(r"\1\n    ", obj.docstring.value)
