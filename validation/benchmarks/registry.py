"""Which papers there are, and where their plans are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from knownminds.environments import unknown
from knownminds.validation.engine.question import load

if TYPE_CHECKING:
    from .paper import Paper

PLANS = Path(__file__).parent / "plans"
# Each is a module of this folder, with its PAPER.
PAPERS = ("cogbench", "colliders", "magnitudes", "diagnosis", "revealed_belief")


def plan_of(name: str) -> Path:
    """Return the plan of a paper that ships; ValueError names the nearest if there is none."""
    if name not in PAPERS:
        raise ValueError(unknown("benchmark", name, PAPERS))
    return PLANS / f"{name}.toml"


def paper_of(name: str) -> Paper:
    """Return a paper by name."""
    paper: Paper = load(f"benchmarks.{name}", "PAPER")
    return paper
