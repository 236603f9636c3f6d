"""`knownminds recover`."""

from __future__ import annotations

from knownminds.validation.cli.study import study
from knownminds.validation.recovery.questions import Recover

study(Recover)
