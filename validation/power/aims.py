"""What a power study counts: tests that reject, narrow intervals, or equivalence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.inference.analysis import LEVEL

MASS = 1 - 2 * LEVEL  # of the interval that two one-sided tests at this level make
INNER = ("inner_low", "inner_high")  # its ends in the rows of a study that looks for equivalence


@dataclass(frozen=True)
class Aim:
    """What is counted of data sets; of neither, the tests that reject.

    Parameters
    ----------
    width : The 95% interval is narrower than this: precision (Kelley and Maxwell 2003; Kruschke
        2013).
    rope : Half the width of a region around the null value (of practical equivalence); the 90%
        interval lies inside it: two one-sided tests at 5% (Schuirmann 1987).
    """

    width: float | None = None
    rope: float | None = None

    def __post_init__(self) -> None:
        if self.width is not None and self.rope is not None:
            raise ValueError(
                "A study counts narrow intervals or equivalence; got --width and --rope. Leave "
                "one of them out."
            )
        for name, value in (("width", self.width), ("rope", self.rope)):
            if value is not None and not 0 < value < np.inf:
                raise ValueError(f"--{name} is a number above 0; got {value:g}.")

    @property
    def options(self) -> dict[str, float]:
        """What a cell's options say of it; nothing where rejections are counted."""
        aims = {"width": self.width, "rope": self.rope}
        return {name: value for name, value in aims.items() if value is not None}

    @property
    def tests(self) -> bool:
        """Whether rejections are counted."""
        return not self.options

    def name(self, drawn: float) -> str:
        """Name the share; `drawn` is the spread of the effects of the data sets."""
        if self.width is not None:
            return "precision"
        if self.rope is not None:
            return "equivalence"
        return "assurance" if drawn else "power"

    def reached(self, table: pd.DataFrame, null: float) -> NDArray[np.bool_]:
        """Say which data sets count, [rows]; those without an estimate do not."""
        names = {"width": ("low", "high"), "rope": INNER}
        if self.tests:
            return table["p_value"].to_numpy(dtype=float) < LEVEL
        (kind,) = self.options
        low, high = (table[name].to_numpy(dtype=float) for name in names[kind])
        if self.width is not None:
            mask: NDArray[np.bool_] = high - low < self.width
            return mask
        assert self.rope is not None
        inside: NDArray[np.bool_] = (low > null - self.rope) & (high < null + self.rope)
        return inside
