"""Do known minds come through words as they are?

Imported by the command line and reports; itself imports engine and pages.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    from knownminds.validation.moved import from_module

    return from_module(__name__, "channel_study", name)
