import numpy as np
import pytest

from knownminds.environments import session_stream
from knownminds.validation.engine.scores import agreement, coverage, share

SCORES = ("bias", "rmse", "r", "concordance", "shrinkage")


def a_sample(n=1000, *address, groups=None):
    """Skewed truths and shrunken, biased estimates; those of a group share part of their error."""
    rng = session_stream(8, *address)
    x = rng.gamma(2.0, size=n)
    y = 0.2 + 0.6 * x + rng.normal(size=n)
    if groups is not None:
        y += np.repeat(rng.normal(size=groups), n // groups)
    return x, y


def direct(x, y):
    """The scores as the textbooks have them, on the whole sample."""
    vx, vy, cxy = x.var(), y.var(), np.mean((x - x.mean()) * (y - y.mean()))
    return {
        "bias": np.mean(y - x),
        "rmse": np.sqrt(np.mean((y - x) ** 2)),
        "r": np.corrcoef(x, y)[0, 1],
        "concordance": 2 * cxy / (vx + vy + (x.mean() - y.mean()) ** 2),
        "shrinkage": 1 - np.polyfit(x, y, 1)[0],
    }


def influences(x, y):
    """Each pair's influence on each score, from the definition of the score."""
    dx, dy, e = x - x.mean(), y - y.mean(), y - x
    vx, vy, cxy = np.mean(dx**2), np.mean(dy**2), np.mean(dx * dy)
    apart = x.mean() - y.mean()
    r = cxy / np.sqrt(vx * vy)
    below = vx + vy + apart**2
    c = 2 * cxy / below
    return {
        "bias": e - e.mean(),
        "rmse": (e**2 - np.mean(e**2)) / (2 * np.sqrt(np.mean(e**2))),
        "r": dx * dy / np.sqrt(vx * vy) - r * (dx**2 / vx + dy**2 / vy) / 2,
        "concordance": (2 * dx * dy - c * (dx**2 + dy**2 + 2 * apart * (dx - dy))) / below,
        "shrinkage": -(dx * dy - cxy / vx * dx**2) / vx,
    }


def standard_error(influence, clusters=None):
    """Of a mean, where rows are independent or summed within clusters first."""
    n = len(influence)
    centred = influence - influence.mean()
    if clusters is None:
        return np.sqrt(centred @ centred / (n - 1) / n)
    sums = np.bincount(clusters, centred)
    return np.sqrt(len(sums) / (len(sums) - 1) * sums @ sums) / n


# Agreement: values and errors


@pytest.mark.parametrize("groups", [None, 4])
def test_every_score_and_error_is_that_of_its_definition(groups):
    x, y = a_sample(groups=groups)
    clusters = None if groups is None else np.repeat(np.arange(groups), 1000 // groups)
    scores, expected, influence = agreement(x, y, clusters), direct(x, y), influences(x, y)
    assert scores.n == 1000
    for name in SCORES:
        score = getattr(scores, name)
        assert score.value == pytest.approx(expected[name], rel=1e-12), name
        assert score.error == pytest.approx(standard_error(influence[name], clusters), rel=1e-9)


@pytest.mark.parametrize("groups", [None, 50])
def test_errors_match_the_spread_over_repeated_samples(groups):
    # 400 repeats know a standard deviation to 1 / sqrt(2 * 400) = 3.5% where scores are normal;
    # bound 4 times this. Delta-method errors of skewed samples of 1000 are right to some 3%.
    scores = {name: [] for name in SCORES}
    for repeat in range(400):
        x, y = a_sample(1000, repeat, groups=groups)
        clusters = None if groups is None else np.repeat(np.arange(groups), 1000 // groups)
        one = agreement(x, y, clusters)
        for name in SCORES:
            scores[name].append(getattr(one, name))
    for name, found in scores.items():
        spread = np.std([score.value for score in found], ddof=1)
        told = np.sqrt(np.mean([score.error**2 for score in found]))
        assert told == pytest.approx(spread, rel=0.17), name


# What cannot be computed


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 700, 999])
@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("clustered", [False, True])
def test_one_number_that_is_none_makes_every_score_none(wrong, at, column, clustered):
    pair = a_sample()
    pair[column][at] = wrong
    clusters = np.repeat(np.arange(50), 20) if clustered else None
    scores = agreement(*pair, clusters)
    for name in SCORES:
        assert np.isnan(getattr(scores, name).value), name
        assert np.isnan(getattr(scores, name).error), name


def test_a_truth_that_is_the_same_for_all_correlates_with_nothing():
    _, y = a_sample()
    scores = agreement(np.full(1000, 0.3), y)
    assert not scores.truth_varies
    for name in ("r", "concordance", "shrinkage"):
        assert np.isnan(getattr(scores, name).value)
    assert scores.bias.value == pytest.approx(y.mean() - 0.3)
    ignoring = agreement(y, np.full(1000, 0.3))
    assert ignoring.truth_varies
    assert np.isnan(ignoring.r.value)


# Coverage


def test_coverage_is_a_share_and_a_mean_width():
    rng = session_stream(9)
    truth, centre = rng.normal(size=(2, 1000))
    half = rng.gamma(2.0, size=1000)
    low, high = centre - half, centre + half
    held, width = coverage(truth, low, high)
    p = ((low <= truth) & (truth <= high)).mean()
    assert held.value == pytest.approx(p)
    # Agresti and Coull add two to each side, which changes little in 1000.
    assert held.error == pytest.approx(np.sqrt(p * (1 - p) / 1000), rel=0.01)
    assert width.value == pytest.approx(2 * half.mean())
    assert width.error == pytest.approx(standard_error(2 * half))


def test_missing_ends_hold_nothing_and_endless_ones_hold_all():
    truth = np.zeros(20)
    low, high = np.full(20, -1.0), np.full(20, 1.0)
    low[:5], high[5:10] = np.nan, np.nan
    high[10:15] = np.inf
    held, width = coverage(truth, low, high)
    assert held.value == 0.5
    assert width.value == 2.0  # of the finite ones
    nowhere, none = coverage(truth, np.full(20, np.nan), high)
    assert nowhere.value == 0.0
    assert nowhere.error > 0
    assert np.isnan(none.value)


def test_a_share_of_all_or_none_has_an_error():
    # Agresti and Coull 1998: (x + 2) / (n + 4).
    assert share(0, 100).value == 0.0
    assert share(0, 100).error == pytest.approx(share(100, 100).error)
    assert share(0, 100).error == pytest.approx(np.sqrt(2 / 104 * (1 - 2 / 104) / 104))
    assert np.isnan(share(0, 0).value)
    assert f"{share(90, 100)}" == "0.900 (0.031)"
