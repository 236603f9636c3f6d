"""How much more is explored where plays are left, for information and at random."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import expit

from knownminds.agents import Agent, HorizonExplorer
from knownminds.agents.parameters import Array
from knownminds.environments import Horizon, Trials
from knownminds.inference.measure import Dial, with_columns
from knownminds.inference.regression import RegressionMeasure

TENS = 10.0  # differences of points are counted in tens, as by `horizon_explorer`
GRID = np.arange(-90.0, 90.5, 0.5)  # differences of observed means over which truths integrate
_COLUMNS = ("horizon", "play", "mean_0", "mean_1", "count_0", "count_1", "action")
_TRUE = ("true_mean_0", "true_mean_1")


class Exploration(RegressionMeasure):
    """An effect of the horizon on the first free choices of games, by logistic regression.

    The choice is regressed on a difference D of the machines' means, the horizon H and D x H.
    Directed exploration is read off the games in which one machine was seen once and the other
    three times: choice of the one seen once, D its lead, and the coefficient of H. Random
    exploration is read off the games in which both were seen twice: choice of machine 1, D its
    lead, and minus the coefficient of D x H. Sessions are pooled, with errors that are robust to
    dependence within subjects (within sessions, if there is one subject).

    Of a `horizon_explorer` without side bias, directed exploration is A_6 / s_6 - A_1 / s_1 and
    random exploration is 1 / s_1 - 1 / s_6. Both are thus in units of the decision noise, and
    directed exploration is not zero in somebody whose bonus stays while the noise grows.

    Parameters
    ----------
    kind
        "directed" or "random".
    released
        As in CogBench's released code: D is the difference of the true means, which nobody
        knows, and H is coded -1 and 1, so that coefficients are half as large. By default D is
        the difference of the observed means, in tens of points, and H is 0 in games with one
        free play and 1 in longer ones. The released D is in single points, so that random
        exploration is smaller by another factor of ten.
    """

    source = "Wilson, Geana, White, Ludvig and Cohen 2014; CogBench"
    environments = ("horizon",)
    rational = "horizon_blind"
    violator = "horizon_explorer"
    kinds = HorizonExplorer  # others do not go by the means
    unit = "game"

    def __init__(self, kind: Literal["directed", "random"], released: bool = False):
        self.kind = kind
        self.released = released
        self.name = f"{kind}_exploration" + ("_released" if released else "")
        what = {
            "directed": "pull of the machine that is known less, more so where plays are left",
            "random": "choices that follow the means less where plays are left",
        }
        ending = ", by true means in single points and with the horizon as -1/1"
        self.summary = what[kind] + ending * released
        self.of = "horizon" if kind == "directed" else "difference x horizon"
        self.sign = 1.0 if kind == "directed" else -1.0
        moved = {"directed": "A_6", "random": "s_6"}
        self.dial = Dial({moved[kind]: 1.0}, reach=3.0, steps=121)

    def design(self, trials: Trials) -> tuple[NDArray[np.bool_], Array, dict[str, Array]]:
        """Return the first free choices, whether they are of the machine, and the regressors."""
        names = (*_COLUMNS, *_TRUE) if self.released else _COLUMNS
        frame = with_columns(trials, self.name, names)
        columns = {name: frame[name].to_numpy(dtype=float, na_value=np.nan) for name in names}
        action, once = columns["action"], columns["count_1"] < columns["count_0"]
        equal = columns["count_0"] == columns["count_1"]
        counts = (columns["play"] == 0) & (equal if self.kind == "random" else ~equal)
        # The machine whose choice is regressed: number 1, or the one that was seen once.
        machine = np.where(once | (self.kind == "random"), 1.0, 0.0)
        low, high = (columns[name] for name in (_TRUE if self.released else ("mean_0", "mean_1")))
        lead = (2.0 * machine - 1.0) * (high - low) / (1.0 if self.released else TENS)
        horizon = (columns["horizon"] > 1).astype(float)
        horizon = 2.0 * horizon - 1.0 if self.released else horizon
        chosen = np.where(np.isnan(action), np.nan, action == machine)
        regressors = {
            "difference": lead,
            "horizon": horizon,
            "difference x horizon": lead * horizon,
        }
        return counts, chosen, regressors

    def group_truth(self, model: type[Agent], theta: Array) -> float:
        """Return the coefficient in infinitely many games of the default design.

        Exact, by numerical integration over the means that can be observed, for
        `horizon_explorer` and its members; other models do not go by the means, and have 0.
        """
        if self.has_null(model):
            return self.null
        values = dict(zip(model.parameters.names, np.asarray(theta, dtype=float).T, strict=True))
        directed, unit = self.kind == "directed", 1.0 if self.released else TENS
        shares = []
        for horizon in (1, 6):
            bonus, noise = (values.get(f"{k}_{horizon}", values.get(k)) for k in ("A", "s"))
            assert bonus is not None
            assert noise is not None
            ahead = GRID / TENS + bonus[:, None] * directed
            bias, scale = values["B"][:, None], noise[:, None]
            share = expit((ahead + bias) / scale)
            if directed:  # the machine that was seen once is as often number 0 as number 1
                share = (share + expit((ahead - bias) / scale)) / 2.0
            shares.append(share.mean(axis=0))
        gaps, chances = _chances(self.kind)
        x, weight = GRID / unit, chances.mean(axis=1)
        if self.released:
            x, weight = gaps / unit, np.ones(len(gaps))
            shares = [share @ chances for share in shares]
        long = np.repeat([-1.0 if self.released else 0.0, 1.0], len(x))
        lead = np.tile(x, 2)
        regressors = np.column_stack([np.ones(len(lead)), lead, long, lead * long])
        coefficients = _logistic(regressors, np.tile(weight, 2), np.concatenate(shares))
        return float(self.sign * coefficients[2 if directed else 3])


@cache
def _chances(kind: str) -> tuple[Array, Array]:
    """Return the differences of true means, all equally likely, and chances of observed ones.

    The latter are given each true one, [observed, true].
    """
    design = Horizon()
    gaps = np.concatenate([-design.differences, design.differences])
    counts = (1, 3) if kind == "directed" else (2, 2)
    # Points are rounded, which adds the variance of a uniform number.
    spread = np.sqrt((design.sd**2 + 1 / 12) * sum(1 / n for n in counts))
    chances = scipy.stats.norm.pdf(GRID[:, None], gaps, spread)
    return gaps, chances / chances.sum(axis=0)


def _logistic(x: Array, weight: Array, share: Array) -> Array:
    """Return the most likely coefficients of a logistic regression of shares on x."""
    import statsmodels.api as sm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of shares that are predicted perfectly
        model = sm.GLM(share, x, sm.families.Binomial(), freq_weights=weight / weight.sum())
        return np.asarray(model.fit(tol=1e-12, maxiter=200).params)
