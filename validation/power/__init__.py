"""Does a design detect an effect, and does a measure mean what its name says?

Imported by the command line, reports, gates and costs; itself imports engine and pages.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    from knownminds.validation.moved import from_module

    return from_module(__name__, "power_study", name)
