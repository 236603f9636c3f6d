"""A trace of earlier choices, shared by learners and by responders that repeat themselves."""

from __future__ import annotations

from typing import Any

from .compiler.definition import real, unit

ALPHA_C = unit(
    "how fast the trace of choices follows them",
    mean=-0.5,
    sd=1.0,
    source="Wilson and Collins 2019",
)
BETA_C = real(
    "weight of the trace, in log-odds; below 0 choices alternate",
    mean=1.0,
    sd=1.5,
    source="Wilson and Collins 2019, where it is positive",
)


def follow_choice(trace: Any, alpha_c: Any, action: Any) -> None:
    """Step the traces of all actions, [n_actions], toward the one that was chosen."""
    trace *= 1 - alpha_c
    trace[action] += alpha_c
