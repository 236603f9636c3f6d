"""Where a parameter cannot be read: stretches of true values, and estimates that lie there."""

import numpy as np
import pytest
from scipy.stats import norm

from knownminds import recover
from knownminds.agents import AGENTS
from knownminds.validation.recovery.readable_range import BANDS, ByTruth, unreadable

PLACE, MODEL = "instrumental_learning", "rescorla_wagner"
BETA = AGENTS[MODEL].parameters["beta"]


def gathered(width_of, n=3000):
    rng = np.random.default_rng(5)
    z = BETA.mean + BETA.sd * rng.standard_normal(n)
    found = ByTruth(BETA.support, BETA.mean, BETA.sd)
    width = np.clip(width_of((z - BETA.mean) / BETA.sd) + 0.02 * rng.standard_normal(n), 0, 1)
    for part in np.array_split(np.arange(n), 7):
        found.add(z[part], width[part], part)
    (stretches,) = unreadable([found])
    return stretches


def at(quantile):
    return float(np.exp(BETA.mean + BETA.sd * norm.ppf(quantile)))


def test_bands_that_say_nothing_are_joined_to_a_stretch_and_named():
    (high,) = gathered(lambda z: np.where(z > norm.ppf(9 / BANDS), 0.97, 0.3))
    assert high.low == pytest.approx(at(9 / BANDS))
    assert high.open_above
    assert not high.open_below
    assert high.relative_width.value == pytest.approx(0.97, abs=0.005)
    assert high.told("beta") == f"beta above {at(9 / BANDS):.3g}"
    low, middle = gathered(
        lambda z: np.where((z < norm.ppf(2 / BANDS)) | (abs(z) < norm.ppf(7 / BANDS)), 0.95, 0.4)
    )
    assert low.told("beta") == f"beta below {at(2 / BANDS):.3g}"
    assert middle.told("beta") == f"beta from {at(5 / BANDS):.3g} to {at(7 / BANDS):.3g}"
    assert at(0.5) in middle
    assert at(0.9) not in middle
    (whole,) = gathered(lambda z: np.full_like(z, 0.99))
    assert whole.told("beta") == "beta at any value"


def test_a_planted_range_is_found_in_a_study_of_the_usual_size():
    found, ends = 0, []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        z = BETA.mean + BETA.sd * rng.standard_normal((3, 500))
        study = [ByTruth(BETA.support, BETA.mean, BETA.sd) for _ in z]
        for k, one in enumerate(study):
            lost = (k == 1) & (np.exp(z[k]) > at(9 / BANDS))
            width = np.where(lost, rng.uniform(0.93, 1.0, 500), rng.uniform(0.3, 0.9, 500))
            one.add(z[k], width, np.zeros(500, dtype=int))
        first, planted, last = unreadable(study)
        assert first == last == ()
        found += len(planted) == 1 and planted[0].open_above
        ends += [one.low for one in planted]
    assert found == 50
    assert np.allclose(ends, at(9 / BANDS))


def test_a_recovery_says_so_and_keeps_it():
    found = recover(PLACE, MODEL, subjects=400, trials=8, intervals="laplace", workers=1)
    kept = found.to_dict()["parameters"]
    for name, scores in kept.items():
        for stretch in scores["unreadable"]:
            true = found.rows[f"true_{name}"]
            high = stretch["high"] if stretch["high"] is not None else np.inf
            low = stretch["low"] if stretch["low"] is not None else -np.inf
            here = found.rows[(true >= low) & (true <= high)]
            support = AGENTS[MODEL].parameters[name].support
            with np.errstate(divide="ignore"):
                ends = [
                    support.unconstrain(here[f"{e}_90_{name}"].to_numpy()) for e in ("low", "high")
                ]
            prior = 2 * norm.ppf(0.95) * AGENTS[MODEL].parameters[name].sd
            width = np.minimum((ends[1] - ends[0]) / prior, 1.0)
            assert width.mean() == pytest.approx(stretch["relative_width"]["value"])
            assert width.mean() > 0.87
    assert any(scores["unreadable"] for scores in kept.values())
    assert "cannot be read in this design" in str(found)
