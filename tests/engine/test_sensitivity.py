"""What studies say they would have found is planted into fresh ones, and found as often as said."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from knownminds.validation.engine.monte_carlo import Agreement
from knownminds.validation.engine.sensitivity import (
    found_difference,
    found_share,
)

N, STUDIES = 150, 400
# 400 studies count a chance of 80% with an error of 2%.
LOW, HIGH = 0.80 - 3 * 0.02, 0.80 + 3 * 0.02


def study(rng, bias=0.0, slope=0.8):
    truth = rng.standard_normal(N)
    return truth, slope * truth + 0.5 * rng.standard_normal(N) + bias


def scored(truth, estimate):
    agreement = Agreement()
    agreement.add(truth, estimate)
    return agreement


def test_planted_biases_and_shrinkages_are_found_as_often_as_promised():
    rng = np.random.default_rng(1)
    own = [scored(*study(rng)) for _ in range(60)]
    bias = np.mean([found_difference(one.bias.error) for one in own])
    shrinkage = np.mean([found_difference(one.shrinkage.error) for one in own])
    found = np.zeros((2, STUDIES))
    for k in range(STUDIES):
        one = scored(*study(rng, bias=bias)).bias
        found[0, k] = abs(one.value) > 1.96 * one.error
        one = scored(*study(rng, slope=0.8 - shrinkage)).shrinkage
        found[1, k] = one.value - 0.2 > 1.96 * one.error
    for share in found.mean(axis=1):
        assert LOW < share < HIGH


@pytest.mark.parametrize(("promised", "above"), [(0.05, True), (0.05, False), (0.9, False)])
def test_planted_shares_are_found_as_often_as_promised(promised, above):
    rng = np.random.default_rng(3)
    share = found_share(400, promised, above)
    low, high = proportion_confint(rng.binomial(400, share, 4000), 400, 0.05, method="wilson")
    told = low > promised if above else high < promised
    # exact, but for counting: 4,000 draws have an error of .6%, and counts are whole numbers
    assert abs(told.mean() - 0.8) < 3 * 0.0063
    near = (share + promised) / 2
    low, high = proportion_confint(rng.binomial(400, near, 4000), 400, 0.05, method="wilson")
    assert (low > promised if above else high < promised).mean() < 0.5
