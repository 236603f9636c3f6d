"""What studies say they would have found is planted into fresh ones, and found as often as said."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from knownminds.agents import AGENTS, Parameters
from knownminds.validation.calibration.rank_uniformity import judge, noticeable, simultaneous_band
from knownminds.validation.engine.monte_carlo import Agreement
from knownminds.validation.engine.sensitivity import (
    Distances,
    found_difference,
    found_share,
    replicates_for,
    trials_for_share,
)
from knownminds.validation.engine.verdicts import judge_size
from knownminds.validation.power.audit import about_missed
from knownminds.validation.recovery.model_recovery import (
    ModelRecovery,
    confusion_shares,
    inversion_shares,
    judge_model,
)
from knownminds.validation.recovery.parameter_recovery import MASSES, scores_of

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


# What the four commands print is read from their text, planted, and put to their own verdicts.


def numbers(text):
    """All numbers of a sentence; shares of per cents."""
    found = re.findall(r"(\d[\d,]*\.?\d*(?:e[-+]?\d+)?)(%?)", text)
    return [float(n.replace(",", "")) / (100 if per else 1) for n, per in found]


def recovered(rng, n=200, bias=0.0, slope=0.8, width=1.0):
    """Scores of a recovery of kappa whose intervals are right, but for what is planted."""
    kappa = AGENTS["rescorla_wagner"].parameters["kappa"]
    true = rng.standard_normal(n)
    middle = slope * true + 0.4 * rng.standard_normal(n)
    estimate, error = middle + bias, np.hypot(1 - slope, 0.4)
    columns = {"status": "ok", "true_kappa": true, "z_true_kappa": true}
    columns |= {"kappa": estimate, "z_kappa": estimate}
    for mass in MASSES:
        half = norm.ppf(0.5 + mass / 2) * error * width
        columns |= {f"low_{mass * 100:g}_kappa": middle - half}
        columns |= {f"high_{mass * 100:g}_kappa": middle + half}
    (scores,) = scores_of(pd.DataFrame(columns), Parameters(kappa))
    return scores


def test_recover_finds_what_it_prints():
    rng = np.random.default_rng(6)
    told = [numbers(s.would_have_found.sentence("x")) for s in (recovered(rng) for _ in range(40))]
    chance, bias, shrinkage, _, width, _ = np.mean(told, axis=0)
    assert chance == pytest.approx(0.8)
    found = np.zeros((3, STUDIES // 2))
    for k in range(STUDIES // 2):
        one = recovered(rng, bias=bias).bias
        found[0, k] = abs(one.value) > 1.96 * one.error
        one = recovered(rng, slope=0.8 - shrinkage).shrinkage
        found[1, k] = one.value - 0.2 > 1.96 * one.error
        held = recovered(rng, width=width).coverage["90"].value
        found[2, k] = proportion_confint(200 * held, 200, 0.05, method="wilson")[1] < 0.9
    # 200 studies count 80% with an error of 2.8%; widths are told to two digits, shares are whole
    # counts, and the mean of what 40 studies say is as exact as 200 times as many rows.
    assert (abs(found.mean(axis=1) - 0.8) < 3 * 0.028 + 0.03).all(), found.mean(axis=1)


def test_calibrate_finds_what_it_prints_and_a_joint_error_more_often():
    rng, n, quantities = np.random.default_rng(7), 200, 4
    level = 0.05 / quantities
    text = judge(rng.permutation(np.arange(n) % 100), 99, level).reasons[-1]
    of, narrow, wide, shift, chance = numbers(text)
    assert (of, chance) == (n, 0.8)

    def rejected(**wrong):
        return judge(ranks(rng, n, **wrong), 99, level).word != "calibrated"

    for wrong in ({"width": narrow}, {"width": wide}, {"shift": shift}):
        # 60 studies have an error of 5.2%; sizes are rounded to the side of the larger chance
        assert np.mean([rejected(**wrong) for _ in range(60)]) > 0.8 - 2 * 0.052, wrong

    def study_rejects(width):
        """Three parameters, all posteriors too narrow alike, and the log-likelihood."""
        draws, true = width * rng.standard_normal((n, 99, 3)), rng.standard_normal((n, 3))
        every = [(draws[..., k] < true[:, None, k]).sum(axis=1) for k in range(3)]
        like = -(draws**2).sum(axis=2), -(true**2).sum(axis=1)
        every.append((like[0] < like[1][:, None]).sum(axis=1))
        return any(judge(one, 99, level).word != "calibrated" for one in every)

    halfway = (1 + narrow) / 2  # such as .90 where .80 is said of one quantity
    assert np.mean([study_rejects(halfway) for _ in range(60)]) > 0.8 - 2 * 0.052


def test_audit_finds_what_it_prints():
    rng, n = np.random.default_rng(8), 400
    error = 0.7 / np.sqrt(n)
    null = SimpleNamespace(attempted=n, trials=96, bias=SimpleNamespace(error=error))
    said, _, often, rarely, chance, bias, _, _ = numbers(about_missed(null))
    assert (said, chance) == (n, 0.8)
    for share, words in ((often, "more often"), (rarely, "more rarely")):
        counts = rng.binomial(n, share, 1000)
        found = [words in " ".join(judge_size(k / n, n).reasons) for k in counts]
        # 1,000 studies have an error of 1.3%; shares are printed to three digits
        assert abs(np.mean(found) - 0.8) < 3 * 0.013 + 0.02, words
    means = bias + error * rng.standard_normal(4000)
    assert abs((abs(means) > 1.96 * error).mean() - 0.8) < 3 * 0.0063 + 0.01


def test_confuse_finds_what_it_prints():
    rng, n = np.random.default_rng(9), 100
    told = ModelRecovery.missed.fget(SimpleNamespace(study=SimpleNamespace(replicates=n)))
    said, share, chance, _, _ = numbers(told)
    assert (said, chance) == (n, 0.8)
    named = 0
    for taken in rng.binomial(n, share, 300):
        counts = np.array([[n - taken, taken], [0, n]])
        both = (
            confusion_shares(counts, np.array([n, n])),
            inversion_shares(counts, np.array([n, n]), rng),
        )
        reasons = judge_model(("own", "rival"), 0, n, *both, 0, 0).reasons
        named += any("taken for rival" in reason for reason in reasons)
    # 300 studies have an error of 2.3%; the share is printed to three digits
    assert abs(named / 300 - 0.8) < 3 * 0.023 + 0.02
