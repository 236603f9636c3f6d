"""Ambiguity: a bet on an urn of known proportions, or on an urn that is partly unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.fields import Field, Fields, Numbers, setting
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.words.history import FIRST

from .offers import Offers

BALLS = 100  # balls in an urn
CLOSE = 1e-9


def _increasing(what: str) -> Numbers:
    return Numbers(
        f"are {what} in rising order",
        lambda v: np.all((v >= 0) & (v <= 1)) and np.all(np.diff(v) > 0),
        decimals=2,
    )


class Ambiguity(Offers):
    """Which of two bets on drawing a red ball, from a known urn or one that is partly unknown.

    Both bets pay the same prize. The ambiguous urn has 100 balls, and the least and the largest
    number of red ones is shown. The middle of these two takes each of `middles`, and their distance
    takes each of `widths`, as far as both fit into an urn. The known urn has more or fewer red
    balls than this middle, by each of `steps`, as far as it then has between 1 and 99.

    Performance is whether the urn with the larger middle was chosen; a known urn's middle is its
    share.
    """

    name = "ambiguity"
    summary = "a bet on an urn of known proportions or on a partly unknown one, no rewards"
    source = "Ellsberg 1961; Dimmock, Kouwenberg and Wakker 2016"
    usual_model = "alpha_maxmin"
    fields = Fields(
        *(
            Field(f"{side}_{name}", (0.0, 1.0), f"{name} of red balls in urn {side}", unit="share")
            for side in "ab"
            for name in ("least", "most")
        ),
        FIRST,
    )
    shipped = Path(__file__).with_suffix(".toml")
    performance_bounds = (0.0, 1.0)
    offered = ("least", "most")
    thought = "I weigh how many red balls either urn may hold."

    middles: Sequence[float] = setting(
        (0.1, 0.25, 0.5, 0.75, 0.9),
        _increasing("shares of red balls in hundredths"),
        "Middles of the possible shares of red balls in the ambiguous urn.",
    )
    widths: Sequence[float] = setting(
        (0.2, 0.5, 1.0),
        _increasing("shares of unknown balls in hundredths"),
        "Unknown parts of the ambiguous urn.",
    )
    steps: Sequence[float] = setting(
        (-0.3, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.3),
        Numbers("are different numbers between -1 and 1, in hundredths",
                lambda v: np.all(np.abs(v) < 1) and len(set(v.tolist())) == len(v),
                decimals=2),
        "Red balls of the known urn less the middle of the ambiguous one, as a share.",
    )  # fmt: skip

    def _questions(self) -> dict[str, NDArray[np.float64]]:
        rows = []
        for middle, width, step in product(self.middles, self.widths, self.steps):
            low, high = round(middle - width / 2, 4), round(middle + width / 2, 4)
            known = round(middle + step, 4)
            if width > 0 and low >= 0 and high <= 1 and 0 < known < 1:
                rows.append((known, known, low, high))
        if not rows:
            raise ValueError(
                "An ambiguous urn has at least one unknown ball, and what may be red lies from 0 "
                f"to 1; of middles {list(self.middles)} and widths {list(self.widths)} none fit "
                "together. Take narrower ones."
            )
        names = ("a_least", "a_most", "b_least", "b_most")
        return dict(zip(names, np.array(rows, dtype=float).T, strict=True))

    def _sentence(self, offer: Mapping[str, float]) -> str:
        least, most = (f"{round(BALLS * offer[name], 2):g}" for name in ("least", "most"))
        if least == most:
            other = f"{round(BALLS * (1 - offer['least']), 2):g}"
            return self._words["known"].render(red=least, other=other)
        return self._words["unknown"].render(least=least, most=most)

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return whether the larger middle was chosen; NaN where both are alike."""
        x = {name: trials.numbers(name) for name in self.fields.stimulus}
        lead = x["b_least"] + x["b_most"] - x["a_least"] - x["a_most"]
        action = trials.numbers("action")
        known = np.isfinite(action) & (np.abs(lead) > CLOSE)
        return np.where(known, (action == (lead > 0)).astype(float), np.nan)

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        for side in "ab":
            least, most = f"{side}_least", f"{side}_most"
            yield (
                f"The least share of red balls in urn {side} is not above the most",
                trials.numbers(least) <= trials.numbers(most),
                (least, most),
                "Exchange the two columns.",
            )
