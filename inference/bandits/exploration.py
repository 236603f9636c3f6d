"""How much more players explore, for information and at random, if more plays are left."""

from __future__ import annotations

from typing import Literal

import numpy as np

from knownminds.agents import HorizonExplorer
from knownminds.environments import Trials
from knownminds.inference.measure import Dial, with_columns
from knownminds.inference.regression import Design, RegressionMeasure

TENS = 10.0  # differences of points are counted in tens, as in `horizon_explorer`
_COLUMNS = ("horizon", "play", "mean_0", "mean_1", "count_0", "count_1", "action")
_TRUE = ("true_mean_0", "true_mean_1")


def exploration(kind: Literal["directed", "random"], released: bool = False) -> RegressionMeasure:
    """An effect of the horizon on the first free choices of games, by logistic regression.

    The choice is regressed on a difference D of the machines' means, the horizon H, and D x H.
    Directed exploration uses games in which one machine was seen once and the other three times.
    There the choice of the machine seen once is regressed, D is its lead, and the measure is the
    coefficient of H. Random exploration uses games in which both were seen twice. There the choice
    of machine 1 is regressed, D is its lead, and the measure is minus the coefficient of D x H.
    Sessions are pooled, with errors that are robust to dependence within subjects (within sessions,
    if there is one subject). Where a player is so consistent that its choices are separated, the
    estimate is by Firth's penalised likelihood; the released form then has none.

    For a `horizon_explorer` without side bias, directed exploration is A_6 / s_6 - A_1 / s_1, and
    random exploration is 1 / s_1 - 1 / s_6. Both are in units of the decision noise. So directed
    exploration is not zero for a player whose bonus stays the same while the noise grows.

    Parameters
    ----------
    kind : "directed" or "random".
    released : As in CogBench's released code: D is the difference of the true means, which no
        player knows, in single points. H is coded -1 and 1, so that coefficients are half as large.
        By default D is the difference of the observed means, in tens of points, and H is 0 in games
        with one free play and 1 in longer ones. The released D makes random exploration smaller by
        another factor of ten.
    """
    directed = kind == "directed"
    name = f"{kind}_exploration" + ("_released" if released else "")
    means = _TRUE if released else ("mean_0", "mean_1")

    def design(trials: Trials) -> Design:
        columns = (*_COLUMNS, *_TRUE) if released else _COLUMNS
        with_columns(trials, name, columns)
        action, play, horizon = (trials.numbers(n) for n in ("action", "play", "horizon"))
        count, other = trials.numbers("count_0"), trials.numbers("count_1")
        counts = (play == 0) & ((count != other) if directed else (count == other))
        # The choice of this machine is regressed: number 1, or the one that was seen once.
        machine = np.where((other < count) | (not directed), 1.0, 0.0)
        low, high = (trials.numbers(n) for n in means)
        lead = (2.0 * machine - 1.0) * (high - low) / (1.0 if released else TENS)
        long = (horizon > 1).astype(float)
        long = 2.0 * long - 1.0 if released else long
        chosen = np.where(np.isnan(action), np.nan, action == machine)
        return counts, chosen, {"difference": lead, "horizon": long, "both": lead * long}

    what = "pull of the machine that is known less, more so" if directed else (
        "choices that follow the means less"
    )  # fmt: skip
    ending = ", by true means in single points and with the horizon as -1/1" if released else ""
    return RegressionMeasure(
        design,
        name=name,
        summary=f"{what} where plays are left{ending}",
        source="Wilson, Geana, White, Ludvig and Cohen 2014; CogBench",
        environments=("horizon",),
        rational="horizon_blind",
        violator="horizon_explorer",
        dial=Dial({"A_6" if directed else "s_6": 1.0}, reach=3.0, steps=13),
        of="horizon" if directed else "both",
        sign=1.0 if directed else -1.0,
        unit="game",
        penalised=not released,
        # Other models do not go by the means.
        has_null=lambda model: (
            model.name == "horizon_blind" or not issubclass(model, HorizonExplorer)
        ),
    )


EXPLORATION = tuple(
    exploration(kind, released) for kind in ("directed", "random") for released in (False, True)
)
