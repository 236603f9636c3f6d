"""What is sent to a participant: messages, and the templates they are made from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True)
class Prompt:
    """All that a participant is shown for one answer: messages, and images as PNG bytes."""

    messages: tuple[Message, ...]
    images: tuple[bytes, ...] = ()

    @property
    def hash(self) -> str:
        """SHA-256 of everything that is shown."""
        shown = [[m.role, m.content] for m in self.messages]
        pictures = [hashlib.sha256(image).hexdigest() for image in self.images]
        return hashlib.sha256(json.dumps([shown, pictures]).encode()).hexdigest()
