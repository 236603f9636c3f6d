"""Where modules of this floor went when it was laid out in rooms.

`from knownminds.validation.parameter_recovery import recover` goes on working and says what to
write instead. Three names have become rooms, which look up what their module had.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

FLOOR = "knownminds.validation"
MOVED = {
    "audit": "power.audit",
    "budget": "costs.budget",
    "coherence_audit": "diagnosis.coherence_audit",
    "consistency_audit": "magnitudes.consistency_audit",
    "exchange": "data.exchange",
    "fit": "data.fit",
    "gallery": "gates.gallery",
    "measured": "data.scores_of_trials",
    "merging": "engine.merging",
    "model_recovery": "recovery.model_recovery",
    "parameter_recovery": "recovery.parameter_recovery",
    "phenotype": "data.phenotype",
    "recovery_surface": "recovery.recovery_surface",
    "revealed": "chance.revealed",
    "run": "costs.connect",
    "running": "engine.engine",
    "simulated_data": "engine.simulated_data",
    "smallest_design": "power.smallest_design",
    "study": "engine.study",
    "verdicts": "engine.verdicts",
}


class Moved(MetaPathFinder, Loader):
    """Finds the modules of `MOVED` where they are now."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a name that has moved."""
        floor, _, module = name.rpartition(".")
        return ModuleSpec(name, self) if floor == FLOOR and module in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system; `exec_module` puts the right one in its place."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that is meant in place of this one, and say where it is."""
        now = f"{FLOOR}.{MOVED[module.__name__.rpartition('.')[2]]}"
        warnings.warn(
            f"{module.__name__} is now {now}; the old name goes with 0.4.0, not before June 2027.",
            DeprecationWarning,
            stacklevel=2,
        )
        sys.modules[module.__name__] = import_module(now)


def from_module(room: str, module: str, name: str) -> Any:
    """Return what a room's module has by a name that the room itself is asked for."""
    if name.startswith("_"):
        raise AttributeError(f"module {room!r} has no attribute {name!r}")
    return getattr(import_module(f"{room}.{module}"), name)
