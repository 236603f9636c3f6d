"""What studies say they would have found is planted into fresh ones, and found as often as said."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from knownminds.validation.calibration.rank_uniformity import noticeable, simultaneous_band
from knownminds.validation.engine.monte_carlo import Agreement
from knownminds.validation.engine.sensitivity import (
    Distances,
    found_difference,
    found_share,
    replicates_for,
    trials_for_share,
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


def test_intervals_made_narrower_are_found_as_often_as_promised():
    rng = np.random.default_rng(2)
    own = Distances()
    truth = rng.standard_normal(100_000)  # the factor is that of the law, not of one study
    own.add(truth, np.full(100_000, -1.645), np.full(100_000, 1.645))
    factor = own.found_narrowing(0.9, float(np.sqrt(0.09 / 1000)))
    assert 0.8 < factor < 1
    found = []
    for _ in range(STUDIES):
        held = int((abs(rng.standard_normal(1000)) < 1.645 * factor).sum())
        found.append(proportion_confint(held, 1000, 0.05, method="wilson")[1] < 0.9)
    assert LOW < np.mean(found) < HIGH


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


def test_half_the_excess_is_found_by_the_number_that_is_said():
    rng = np.random.default_rng(4)
    half = (found_share(400, 0.05) + 0.05) / 2
    more = trials_for_share(half, 0.05)
    assert 3 * 400 < more < 5 * 400
    low, _ = proportion_confint(rng.binomial(more, half, 4000), more, 0.05, method="wilson")
    assert 0.77 < (low > 0.05).mean() < 0.86  # two digits of the number, and whole counts


def test_errors_half_as_large_take_four_times_as_many():
    assert replicates_for(0.5, 1.0, 100) == 400
    assert replicates_for(0.5, 1.0, 33) == 140  # 132, to two digits, rounded up


def ranks(rng, n, width=1.0, shift=0.0):
    """Ranks of truths among 99 draws of a normal posterior that is planted wrong."""
    draws = width * rng.standard_normal((n, 99)) - shift
    return (draws < rng.standard_normal(n)[:, None]).sum(axis=1)


@pytest.mark.parametrize(("n", "half"), [(100, False), (400, True)])
def test_planted_posteriors_are_noticed_as_often_as_promised(n, half):
    """With 100 replicates those that are said, with 400 those half as far off."""
    rng = np.random.default_rng(5)
    narrow, wide, shift = noticeable(100, 99, 0.05)
    if half:
        narrow, wide, shift = np.sqrt(narrow), np.sqrt(wide), shift / 2
    band = simultaneous_band(n, 99, 0.95)
    for wrong in ({"width": narrow}, {"width": wide}, {"shift": shift}):
        noticed = np.mean([not band.holds(ranks(rng, n, **wrong)) for _ in range(200)])
        # 200 studies have an error of 2.8%; the sizes are rounded to the side of a larger chance
        assert 0.8 - 3 * 0.028 < noticed < 0.8 + 0.04 + 3 * 0.028, wrong
