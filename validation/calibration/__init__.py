"""Are posteriors right? Simulation-based calibration and its test of ranks.

Imported by the command line, reports and gates; itself imports engine and pages.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    from knownminds.validation.moved import from_module

    return from_module(__name__, "calibration", name)
