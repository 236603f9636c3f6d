"""Powers of amounts and delays in models of decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALLEST = 1e-300  # the logarithm of this is finite


def power(x: Any, exponent: Any) -> Any:
    """Return x**exponent of numbers from 0 on; 0 at x = 0, whatever the exponent."""
    return np.where(x > 0, np.exp(exponent * np.log(np.maximum(x, SMALLEST))), 0.0)
