"""How much more is explored where plays are left, for information and at random."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
import scipy
from scipy.special import expit

from knownminds.agents import Agent, HorizonExplorer
from knownminds.agents.parameters import Array
from knownminds.environments import Horizon, Trials
from knownminds.inference.measure import Dial, Estimate, Measure, with_columns
from knownminds.inference.regression import coefficient, estimate_of

TENS = 10.0  # differences of points are counted in tens, as by `horizon_explorer`
GRID = np.arange(-90.0, 90.5, 0.5)  # differences of observed means over which truths integrate
_COLUMNS = ("horizon", "play", "mean_0", "mean_1", "count_0", "count_1", "action")
_TRUE = ("true_mean_0", "true_mean_1")


class Exploration(Measure):
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

    def __init__(self, kind: Literal["directed", "random"], released: bool = False):
        self.kind = kind
        self.released = released
        self.name = f"{kind}_exploration" + ("_released" if released else "")
        what = {
            "directed": "pull of the machine that is known less, more so where plays are left",
            "random": "choices that follow the means less where plays are left",
        }
        self.unit = 1.0 if released else TENS
        ending = ", by true means in single points and with the horizon as -1/1"
        self.summary = what[kind] + ending * released
        moved = {"directed": "A_6", "random": "s_6"}
        self.dial = Dial({moved[kind]: 1.0}, reach=3.0, steps=121)

    def estimate(self, trials: Trials) -> Estimate:
        """Regress the first free choices of all sessions."""
        frame = with_columns(trials, self.name, (*_COLUMNS, *_TRUE) if self.released else _COLUMNS)
        equal = frame["count_0"] == frame["count_1"]
        asked = (frame["play"] == 0) & (equal if self.kind == "random" else ~equal)
        answered = frame["action"].notna()
        first = frame[asked & answered]
        # The machine whose choice is regressed: number 1, or the one that was seen once.
        one: Array = np.ones(len(first))
        if self.kind == "directed":
            one = (first["count_1"] < first["count_0"]).to_numpy().astype(float)
        means = _TRUE if self.released else ("mean_0", "mean_1")
        mean_0, mean_1 = (first[name].to_numpy(dtype=float) for name in means)
        lead = (2.0 * one - 1.0) * (mean_1 - mean_0) / self.unit
        long = (first["horizon"].to_numpy(dtype=float) > 1).astype(float)
        horizon = 2.0 * long - 1.0 if self.released else long
        subject = first["subject"]
        clusters = subject if subject.nunique() > 1 else first["session"]
        regression = coefficient(
            "horizon" if self.kind == "directed" else "difference x horizon",
            (first["action"].to_numpy(dtype=float) == one).astype(float),
            {"difference": lead, "horizon": horizon, "difference x horizon": lead * horizon},
            clusters=clusters,
        )
        sign = 1.0 if self.kind == "directed" else -1.0
        unanswered = int((asked & ~answered).sum())
        return estimate_of(regression, self.name, "game", unanswered, clusters, sign)

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the coefficient in infinitely many games of the default design, [n].

        Exact, by numerical integration over the means that can be observed, for
        `horizon_explorer` and its members; other models do not go by the means, and have 0.
        """
        if not issubclass(model, HorizonExplorer):
            return np.zeros(len(theta))
        return self._regressed(self._shares(model, theta))

    def group_truth(self, model: type[Agent], theta: Array) -> float:
        """Return the coefficient when agents with parameters theta[n, P] are pooled."""
        if not issubclass(model, HorizonExplorer):
            return 0.0
        pooled = self._shares(model, theta).mean(axis=0, keepdims=True)
        return float(self._regressed(pooled)[0])

    def _shares(self, model: type[HorizonExplorer], theta: Array) -> Array:
        """Return how often the machine is chosen, [n, 2 horizons, differences]."""
        named = dict(zip(model.parameters.names, np.asarray(theta, dtype=float).T, strict=True))
        shares = []
        for horizon in (1, 6):
            bonus = named.get(f"A_{horizon}", named.get("A"))
            noise = named.get(f"s_{horizon}", named.get("s"))
            assert bonus is not None
            assert noise is not None
            ahead = GRID / TENS + bonus[:, None] * (self.kind == "directed")
            bias, scale = named["B"][:, None], noise[:, None]
            share = expit((ahead + bias) / scale)
            if self.kind == "directed":  # the machine seen once is number 1 in half of the games
                share = (share + expit((ahead - bias) / scale)) / 2
            shares.append(share)
        stacked = np.stack(shares, axis=1)
        return np.asarray(stacked @ self._chances) if self.released else stacked

    @cached_property
    def _chances(self) -> Array:
        """Chance of each observed difference, given each true one: [observed, true]."""
        design = Horizon()
        counts = (1, 3) if self.kind == "directed" else (2, 2)
        # Points are rounded, which adds the variance of a uniform number.
        spread = np.sqrt((design.sd**2 + 1 / 12) * sum(1 / n for n in counts))
        chances: Array = scipy.stats.norm.pdf(GRID[:, None], self._differences, spread)
        return np.asarray(chances / chances.sum(axis=0))

    @cached_property
    def _differences(self) -> Array:
        """Differences of the true means, all equally likely."""
        gaps = Horizon().differences
        both: Array = np.concatenate([-gaps, gaps])
        return both

    def _regressed(self, shares: Array) -> Array:
        """Return the coefficient that a regression finds in shares [n, 2, differences], [n].

        With the interaction in it, the regression is one of its own for each horizon.
        """
        if self.released:
            x, weight = self._differences / TENS, np.ones(len(self._differences))
        else:
            x, weight = GRID / TENS, self._chances.mean(axis=1)
        level, slope = _logistic(x, weight / weight.sum(), shares)
        result = level if self.kind == "directed" else -slope * (self.unit / TENS)
        effect: Array = (result[:, 1] - result[:, 0]) * (0.5 if self.released else 1.0)
        return effect


def _logistic(x: Array, weight: Array, share: Array, rounds: int = 60) -> tuple[Array, Array]:
    """Return intercepts and slopes of regressions of share[..., m] on x[m], by Newton's method."""
    level = np.zeros(share.shape[:-1])
    slope = np.zeros(share.shape[:-1])
    for _ in range(rounds):
        p = expit(level[..., None] + slope[..., None] * x)
        residual = weight * (share - p)
        information = weight * p * (1.0 - p)
        g_0, g_1 = residual.sum(axis=-1), residual @ x
        h_0, h_1, h_2 = information.sum(axis=-1), information @ x, information @ x**2
        determinant = np.maximum(h_0 * h_2 - h_1**2, 1e-300)
        step_0 = (h_2 * g_0 - h_1 * g_1) / determinant
        step_1 = (h_0 * g_1 - h_1 * g_0) / determinant
        # Long steps from where p is almost flat would overshoot.
        shorter = np.minimum(1.0, 4.0 / np.maximum(np.hypot(step_0, step_1), 1e-12))
        level, slope = level + shorter * step_0, slope + shorter * step_1
        if max(np.abs(step_0).max(), np.abs(step_1).max()) < 1e-10:
            break
    return level, slope
