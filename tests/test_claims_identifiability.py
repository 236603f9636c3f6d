"""What is said of a design's gaps is true of sessions that were not looked at."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from claims import check
from claims import identifiability as claims

from knownminds.agents import (
    Perseverator,
    RandomResponder,
    RescorlaWagner,
    RescorlaWagnerDual,
    WinStayLoseShift,
    simulate,
)
from knownminds.environments import InstrumentalLearning
from knownminds.inference import ModelData, identifiability

SESSIONS, STEP = 40, 1e-5


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
    lines = [line for line in str(found).splitlines() if "     " not in line]
    assert set(found.sentences) <= set(lines)
    check(claims.REPORT, lines, facts)
    return lines


@pytest.mark.parametrize(
    "model", [RescorlaWagner, RescorlaWagnerDual, Perseverator, WinStayLoseShift]
)
@pytest.mark.parametrize("visits", [1, 2, 12, 96])
def test_what_a_bandit_does_not_tell_is_told(model, visits):
    prove(model, InstrumentalLearning(visits))


def test_gaps_of_other_kinds_are_told():
    told = prove(RescorlaWagner, InstrumentalLearning(24), theta=[[0.3, 2.0, 0.1]])
    # Without rewards expectations stay equal, and neither rate nor temperature shows.
    nothing = InstrumentalLearning(24, win_probability=((0, 0),) * 4)
    told += prove(RescorlaWagner, nothing, theta=[[0.3, 2.0, 0.1]])
    told += prove(RescorlaWagner, nothing)
    told += prove(RandomResponder, InstrumentalLearning(24))
    for words in ("not at all", "There is no parameter", "the one theta looked at"):
        assert any(words in line for line in told), words
