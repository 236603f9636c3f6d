"""What judgements of causal strength follow: power or contrast, and how common the effect is."""

from __future__ import annotations

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.inference.measure import Dial
from knownminds.inference.session_measure import SessionRows, mean_by, session_measure

from .causal_strength import COUNTS, PREVENT, judged_contrast, judged_power


@session_measure(
    name="power_weight",
    summary="where judgements lie between contrast (0) and causal power (1)",
    source="Buehner, Cheng and Clifford 2003",
    environments=("causal_strength",),
    columns=(*COUNTS, "kind", "response"),
    reason="no table in which power and contrast differ",
    violator="strength_judge",
    dial=Dial({"w": 1.0}, reach=2.0, steps=9),
)
def power_weight(rows: SessionRows) -> Array:
    """Where answers lie between the contrast (0) and causal power (1).

    It is the slope of the line through the origin of (answer - contrast) on (power - contrast), as
    shares of 1, over the tables of a session in which the two differ. Noise that is cut off at the
    ends of the scale pulls it a little.
    """
    columns = dict(rows.columns)
    contrast = judged_contrast(columns)
    return rows.slope(judged_power(columns) - contrast, rows["response"] / 100.0 - contrast)


@session_measure(
    name="frequency_illusion",
    summary="rise of judgements with the effect's frequency where the cause makes no difference",
    source="Allan and Jenkins 1983; Griffiths and Tenenbaum 2005",
    environments=("causal_strength",),
    columns=(*COUNTS, "kind", "response"),
    reason="no tables without a contrast that differ",
    rational="power_pc",
    violator="causal_support",
    dial=Dial({"gain": 1.0}, reach=0.5, steps=14, lowest=-6.0),
)
def frequency_illusion(rows: SessionRows) -> Array:
    """How much answers rise with how common the effect is, where the cause makes no difference.

    It is a slope over the tables of a session whose contrast is 0: of the answers, as shares of 1,
    on the share of cases with the effect (or without it, if the question is about prevention). Both
    have their mean among the tables of their kind subtracted. Judges that go by contrast or power
    have 0.
    """
    a, b, c, d = (rows[name] for name in COUNTS)
    prevents = rows["kind"] == PREVENT
    share = (a + c) / (a + b + c + d)
    frequent, answer = np.where(prevents, 1.0 - share, share), rows["response"] / 100.0
    flat = (a * d == b * c) & np.isfinite(answer)
    group = (2 * rows.session + prevents)[flat]
    x, y = np.zeros((2, len(flat)))
    for sides, values in ((x, frequent[flat]), (y, answer[flat])):
        sides[flat] = values - mean_by(group, values, 2 * rows.n)[group]
    return rows.slope(x, y)
