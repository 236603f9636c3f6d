"""`knownminds power`."""

from __future__ import annotations

from knownminds.validation.cli.study import study
from knownminds.validation.power.questions import Power

study(Power)
