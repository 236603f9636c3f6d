"""Line ratio: how long the shorter of two lines is, as a share of the longer one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from knownminds.environments.fields import Field, Fields
from knownminds.environments.turn import Observation

from . import drawing
from .decoupling import HUNDREDTHS, dashes, length
from .magnitude import Magnitude
from .placing import LONGEST, MOST, PLACED, indent, lie, placed

_DASHES = 100  # dashes of the longer line
FEWEST, LEAST = 3, 10.0  # least length of the shorter decoupled line, in dashes and in px


class LineRatio(Magnitude):
    """How long the shorter of two lines is, as a share of the longer one.

    In words the longer line is 100 dashes; in a picture it is 400 px long. For each stimulus it is
    drawn anew which of the two stands above. Ratios are multiples of .01; in the usual windows they
    are multiples of .02 (11 values in steps of .04). `Magnitude` says how a session is made.

    Decoupled lines have 3 to 200 dashes, each after up to 40 spaces, or 10 to 440 px; in a picture
    they lie anywhere in their halves, and both are turned by up to 40 degrees. Neither the length
    of the shorter line nor that of the longer one reveals the ratio. Each still tells something
    about it: in the window from .1 to .5 ratios differ by more than lengths can hide.
    """

    name = "line_ratio"
    summary = "how long the shorter of two lines is relative to the longer, in dashes or a picture"
    source = "BayesBench (Ma, Wang and Fountas 2025, arXiv 2512.02719)"
    shipped = Path(__file__).with_suffix(".toml")
    fields = Fields(
        *Magnitude.fields,
        Field("shorter", (0, np.inf), "0 if the shorter line stands above, 1 below", "wording"),
    )
    n_wording = 1
    default_ranges: ClassVar = {"short": (0.1, 0.5), "medium": (0.3, 0.7), "long": (0.5, 0.9)}
    limits = (1 / _DASHES, 1.0)
    ceiling = 1.0
    decoupled: ClassVar = (PLACED, 2)
    thought = "I compare the length of the shorter line with that of the longer one."

    def _make(
        self, targets: NDArray[np.float64], uniforms: NDArray[np.float64]
    ) -> dict[str, NDArray[Any]]:
        made = {
            "value": np.round(targets * HUNDREDTHS) / HUNDREDTHS,
            "shorter": (uniforms[:, :, 0] >= 0.5).astype(np.int64),
        }
        if self.stimuli == "published":
            return made
        return made | placed(uniforms[:, :, 1], uniforms[:, :, 2])

    def _text(self, observation: Observation) -> list[str]:
        value = float(observation["value"])
        if self.stimuli == "published":
            part, whole, spaces = round(value * _DASHES), _DASHES, (0, 0)
        else:
            wanted = length(FEWEST / value, MOST, float(observation["size"]))
            part, whole = dashes(value, wanted, MOST)
            spaces = indent(observation, 0), indent(observation, 1)
        shorter, longer = (" " * s + "-" * n for s, n in zip(spaces, (part, whole), strict=True))
        return [longer, shorter] if observation["shorter"] else [shorter, longer]

    def _value_in(self, lines: Sequence[str]) -> float:
        if self.stimuli == "decoupled":
            lines = [line.strip(" ") for line in lines]
        if len(lines) != 2 or set("".join(lines)) != {"-"} or not all(lines):
            raise ValueError(f"Two lines are two rows of dashes; got {lines!r}.")
        shorter, longer = sorted(map(len, lines))
        return round(shorter / longer * HUNDREDTHS) / HUNDREDTHS

    def shortcuts(self, observation: Observation) -> dict[str, float]:
        """Return the dashes of the shorter line, of the longer one, and of both."""
        shorter, longer = sorted(len(line.strip(" ")) for line in self._text(observation))
        return {
            "dashes of the shorter line": shorter,
            "dashes of the longer line": longer,
            "dashes of both lines": shorter + longer,
        }

    def _drawn(self, observation: Observation) -> Image:
        value, blur = float(observation["value"]), float(observation["blur"])
        below = bool(observation["shorter"])
        if self.stimuli == "published":
            return drawing.two_lines(value, below, blur)
        whole = length(LEAST / value, LONGEST, float(observation["size"]))
        lengths = [whole, value * whole] if below else [value * whole, whole]
        turn, centres = lie(observation, lengths)
        return drawing.turned_lines(lengths, turn, centres, blur)
