"""The design that is recommended for a model, and what it leaves open."""

from __future__ import annotations

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
    environment, settings, trials, sessions
        The experiment, the settings that differ from the shipped ones, trials per session (None: as
        shipped), and sessions per subject.
    open
        Parameters that the design does not recover, each with the reason.
    kept
        Parameters that are recovered even if answers are shuffled within a session, with the
        reason.
    control
        Why the model has no shuffled control; empty if it has one.
    uncalibrated
        Why its definition rules out calibrated posteriors; empty if they are claimed.
    note
        What else one should know, in a sentence or more.
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
def _shipped() -> dict[str, RecommendedDesign]:
    text = Path(__file__).with_name("recommended.toml").read_text(encoding="utf-8")
    return {name: RecommendedDesign(**design) for name, design in tomllib.loads(text).items()}


class Recommended:
    """The design of a model as a class attribute: that of `recommended.toml`, or of its base."""

    def __get__(self, instance: object, owner: type) -> RecommendedDesign | None:
        """Return the design; None if there is none."""
        names = [vars(base).get("name") for base in owner.__mro__]
        return next((_shipped()[name] for name in names if name in _shipped()), None)
