"""Line ratio: how long the shorter of two lines is, as a share of the longer one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.environment import Observation
from knownminds.environments.fields import Field, Fields

from . import drawing
from .magnitude import Magnitude

if TYPE_CHECKING:
    from PIL.Image import Image

_DASHES = 100  # of the longer line


class LineRatio(Magnitude):
    """How long the shorter of two lines is, as a share of the longer one.

    In words the longer line is 100 dashes; in a picture it is 400 px long. Which of the two stands
    above is drawn anew for each stimulus. Ratios are multiples of .01, those of the windows as
    they are of .02 (11 values in steps of .04). What a session is made of: see `Magnitude`.
    """

    name = "line_ratio"
    summary = "how long the shorter of two lines is relative to the longer, in dashes or a picture"
    source = "BayesBench (anonymous authors 2025)"
    shipped = Path(__file__).with_suffix(".toml")
    fields = Fields(
        *Magnitude.fields,
        Field("shorter", (0, np.inf), "0 if the shorter line stands above, 1 below", "wording"),
    )
    n_wording = 1
    default_ranges: ClassVar = {"short": (0.1, 0.5), "medium": (0.3, 0.7), "long": (0.5, 0.9)}
    limits = (1 / _DASHES, 1.0)
    ceiling = 1.0
    thought = "I compare the length of the shorter line with that of the longer one."

    def _make(
        self, targets: NDArray[np.float64], uniforms: NDArray[np.float64]
    ) -> dict[str, NDArray[Any]]:
        return {
            "value": np.round(targets * _DASHES) / _DASHES,
            "shorter": (uniforms[:, :, 0] >= 0.5).astype(np.int64),
        }

    @property
    def _separator(self) -> str:
        return " / "

    def _text(self, observation: Observation) -> list[str]:
        shorter = "-" * round(float(observation["value"]) * _DASHES)
        longer = "-" * _DASHES
        return [longer, shorter] if observation["shorter"] else [shorter, longer]

    def _value_told(self, lines: Sequence[str]) -> float:
        if len(lines) != 2 or set("".join(lines)) != {"-"} or not all(lines):
            raise ValueError(f"Two lines are two rows of dashes; got {lines!r}.")
        shorter, longer = sorted(map(len, lines))
        return shorter / longer

    def _drawn(self, observation: Observation) -> Image:
        value, blur = float(observation["value"]), float(observation["blur"])
        return drawing.two_lines(value, bool(observation["shorter"]), blur)

    def _value_shown(self, png: bytes) -> float:
        return round(drawing.ratio_in(png) * _DASHES) / _DASHES
