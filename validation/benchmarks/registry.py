"""Which papers there are, and where their plans are kept."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from knownminds.environments import unknown
from knownminds.members import folder_of, listed

if TYPE_CHECKING:
    from .paper import Paper

PAPERS = listed("papers")


def plan_of(name: str) -> Path:
    """Return the plan of a paper that a package brings; ValueError names the nearest if none is."""
    if name not in PAPERS:
        raise ValueError(unknown("benchmark", name, PAPERS))
    package, path = PAPERS[name]
    return folder_of(package).joinpath(*path.split(".")[:-1], "plans", f"{name}.toml")


def paper_of(name: str) -> Paper:
    """Return a paper by name."""
    paper: Paper = import_module(PAPERS[name].module).PAPER
    return paper
