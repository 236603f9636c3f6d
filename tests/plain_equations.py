"""Equations and layouts that several tests compute by hand."""

from fractions import Fraction
from math import comb, factorial, log

import numpy as np

from knownminds.agents import play
from knownminds.inference import ModelData


def beta(a, b):
    return Fraction(factorial(a - 1) * factorial(b - 1), factorial(a + b - 1))


def exact_support(a, b, c, d):
    """The log Bayes factor by the binomial expansion of (1 - uv)^a, in fractions.

    With u = 1 - w0 and v = 1 - w1: the integral of (1 - uv)^a (uv)^b (1 - u)^c u^d.
    """
    whole = sum(
        (-1) ** k * comb(a, k) * beta(b + d + k + 1, c + 1) * Fraction(1, b + k + 1)
        for k in range(a + 1)
    )
    return log(whole / beta(a + c + 1, b + d + 1))


def gambles_of(row):
    """The amounts and chances of both options of a risky choice."""
    return [
        [(row[f"{s}_{p}"], row[f"{s}_{p}_chance"]) for p in ("low", "middle", "high")
         if row[f"{s}_{p}_chance"] > 0]
        for s in "ab"
    ]  # fmt: skip


def judgements(model, responses, values, windows=None, unit=1.0, ceiling=1.0):
    """The trials of one observer of magnitudes, as a model reads them."""
    n = len(responses)
    columns = {
        "response": np.asarray(responses, dtype=float),
        "value": np.broadcast_to(np.asarray(values, dtype=float), (n,)),
        "window": np.ones(n) if windows is None else np.asarray(windows, dtype=float),
        "unit": np.full(n, unit),
        "ceiling": np.full(n, ceiling),
    }
    return ModelData.of_columns(model, ["a"], np.zeros(n, dtype=np.int64), [], columns, 0)


def session(model, theta, environment):
    """The session that an agent with these parameters plays."""
    agent = model.from_theta(np.asarray(theta, dtype=float), actions=environment.n_actions)
    return play(agent, environment, 5)


def log_likelihood(model, theta, environment, trials):
    """What an agent gives the answers of a session, one after the other, without a kernel."""
    agent = model.from_theta(np.asarray(theta, dtype=float), actions=environment.n_actions)
    total = 0.0
    for row in trials.frame.to_dict("records"):
        given = (row.get(name) for name in ("action", "response"))
        total += agent.log_probability(row, *given)
    return total
