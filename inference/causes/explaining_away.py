"""How much less likely a cause is judged once the other cause is known to be present."""

from __future__ import annotations

from knownminds.inference.measure import Dial

from .cell_contrast import CellContrast


class ExplainingAway(CellContrast):
    """VII - VI: P(Ci | E = 1) - P(Ci | E = 1, Cj = 1), from raw answers as shares of 1.

    How much a rational agent explains away depends on what it takes the strengths and the prior
    to be, from 0 (if the effect comes by itself) to 1/2 (rare causes that always work). So there
    is no value that all rational agents have, and no test of one; the interval says whether 0 is
    among the values that the answers allow.

    Parameters
    ----------
    released
        As the published numbers are: VIII - VI, with the other cause known to be absent in the
        first task, of cells that hold the questions about both causes. In a noisy-OR it is never
        smaller, and reaches 1.
    """

    source = "Rehder and Waldmann 2017; Dettki 2025"
    null = float("nan")
    rational = ""
    violator = "mutation_sampler"
    # Stronger causes, a smaller leak, and a longer walk where there is one.
    minus = "VI"

    def __init__(self, released: bool = False):
        self.plus = "VIII" if released else "VII"
        self.pooled = released
        # Walks so short that they hardly leave the prototypes have no difference VII - VI either.
        direction = {"b": -1.0, "m1": 1.0, "m2": 1.0, "lambda": 1.0}
        self.dial = Dial(direction, reach=4.0 if released else 1.7, steps=25)
        self.name = "explaining_away" + ("_released" if released else "")
        ending = ", from the other cause's absence to its presence" if released else ""
        self.summary = f"judgement of a cause that the other cause takes away{ending}"
