"""`knownminds calibrate`."""

from __future__ import annotations

from knownminds.validation.calibration.questions import Calibrate
from knownminds.validation.cli.study import study

study(Calibrate)
