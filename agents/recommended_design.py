"""The design that is recommended for a model, and what it leaves open."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RecommendedDesign:
    """A design that recovers a model's parameters; `docs/gates.py` checks what it claims.

    Parameters
    ----------
    environment, settings, trials, sessions : The experiment, the settings that differ from the
        shipped ones, trials per session (None: as shipped), and sessions per subject.
    open : Parameters that the design does not recover, each with the reason.
    kept : Parameters that are recovered even if answers are shuffled within a session, with the
        reason.
    control : Why the model has no shuffled control; empty if it has one.
    uncalibrated : Why its definition rules out calibrated posteriors; empty if they are claimed.
    note : What else one should know, in a sentence or more.
    """

    environment: str
    trials: int | None = None
    sessions: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    control: str = ""
    uncalibrated: str = ""
    note: str = ""


@cache
def _beside(module: str) -> dict[str, RecommendedDesign]:
    """Return the designs in `recommended.toml` beside a module; none if there is no such file."""
    here = getattr(sys.modules.get(module), "__file__", None)
    file = Path(here or "").with_name("recommended.toml")
    if here is None or not file.is_file():
        return {}
    text = file.read_text(encoding="utf-8")
    return {name: RecommendedDesign(**design) for name, design in tomllib.loads(text).items()}


class Recommended:
    """The design of a model as a class attribute.

    It is that of `recommended.toml` beside the file of the class, or of its nearest base.
    """

    def __get__(self, instance: object, owner: type) -> RecommendedDesign | None:
        named = [(base.__module__, vars(base).get("name")) for base in owner.__mro__]
        found = (_beside(module).get(str(name)) for module, name in named)
        return next((design for design in found if design is not None), None)
