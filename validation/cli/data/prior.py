"""`knownminds prior`."""

from __future__ import annotations

from knownminds.validation.cli.study import study
from knownminds.validation.data.questions import Prior

study(Prior)
