"""`knownminds design`."""

from __future__ import annotations

from knownminds.validation.cli.study import study
from knownminds.validation.design.questions import Design

study(Design)
