"""What is said of a design's gaps is true of sessions that were not looked at."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from claims import check
from claims import identifiability as claims
from fits.test_identifiability import PRODUCT, coin, logs, sums

from knownminds.agents import (
    Perseverator,
    RandomResponder,
    RescorlaWagner,
    RescorlaWagnerDual,
    WinStayLoseShift,
    simulate,
)
from knownminds.agents.parameters import IDENTITY
from knownminds.environments import InstrumentalLearning
from knownminds.inference import ModelData, identifiability

SESSIONS, STEP = 40, 1e-5
TOYS = InstrumentalLearning(4, win_probability=((0.5, 0.5),) * 2)  # two contexts


def apart_but_for_one(context, q, unused, r):
    return np.log(q / r), (1 / q, 0, -1 / r)


def scores_of(model, place, theta):
    """Slopes of log-likelihoods in z at the true values, [M, S, K], by central differences."""
    m, k = theta.shape
    truth = np.repeat(theta, SESSIONS, axis=0)
    data = ModelData.read(model, simulate(model, truth, place, 77))
    z, found = model.parameters.unconstrain(truth), np.empty((m * SESSIONS, k))
    for column in range(k):
        step = STEP * (np.arange(k) == column)
        ends = [data.log_likelihood(model.parameters.constrain(z + s))[0] for s in (step, -step)]
        found[:, column] = (ends[0] - ends[1]) / (2 * STEP)
    return found.reshape(m, SESSIONS, k)


def prove(model, place, **given):
    found = identifiability(model, place, **{"subjects": 8} | given)
    theta = found.theta
    names = list(model.parameters.names)
    facts = SimpleNamespace(
        content=json.loads(found.to_json()),
        theta=theta,
        model=model,
        place=place,
        sd=model.parameters.sd,
        names=names,
        scores=scores_of(model, place, theta) if names else np.empty((len(theta), 1, 0)),
    )
    lines = [line for line in str(found).splitlines() if "  " not in line]
    assert set(found.sentences) <= set(lines)
    check(claims.REPORT, lines, facts)
    return lines


@pytest.mark.parametrize(
    "model", [RescorlaWagner, RescorlaWagnerDual, Perseverator, WinStayLoseShift]
)
@pytest.mark.parametrize("visits", [1, 2, 12, 96])
def test_what_a_bandit_does_not_tell_is_told(model, visits):
    prove(model, InstrumentalLearning(visits))


@pytest.mark.parametrize(
    "model",
    [
        coin(logs(1, -1), q="log", r="log"),
        coin(logs(1, 1, 1), a="log", b="log", c="log"),
        coin(logs(1, -1, 1), a="log", b="log", c="log"),
        coin(logs(1, -2), q="log", r="log"),
        coin(sums(1, 1), a="identity", b="identity"),
        coin(sums(1, -1), a="identity", b="identity"),
        coin(sums(1, 1, -1), a="identity", b="identity", c="identity"),
        coin(apart_but_for_one, q="log", unused="log", r="log"),
        coin(
            lambda context, a, b, c: (
                (np.log(a / c), (1 / a, 0, -1 / c))
                if context == 0
                else (np.log(b / c), (0, 1 / b, -1 / c))
            ),
            a="log",
            b="log",
            c="log",
        ),
        PRODUCT,
    ],
)
def test_parameters_that_enter_together_are_told_so(model):
    told = prove(model, TOYS)
    assert any(" only through " in line or " cannot both " in line for line in told)
    assert any("the one theta" in line for line in prove(model, TOYS, subjects=1))


def test_gaps_at_some_theta_and_none_are_told():
    """The slope of max(a, 0) is 0 at every theta below 0: nothing is said of it there."""
    bent = coin(lambda context, a: (max(a, 0.0), (float(a > 0),)), a=(IDENTITY, 1.0))
    assert any(line.startswith("at ") for line in prove(bent, TOYS))
    none = prove(RandomResponder, InstrumentalLearning(24))
    assert none[-1] == "There is no parameter to estimate."
