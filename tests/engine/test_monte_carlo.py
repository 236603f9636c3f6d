import numpy as np
import pytest

from knownminds.environments import session_stream
from knownminds.validation.engine.monte_carlo import Agreement, Coverage, share

MASSES = (0.5, 0.9)
SCORES = ("bias", "root_mean_square", "correlation", "concordance", "shrinkage")
WHOLE = (1000,)
CUTS = (WHOLE, (1, 999), (500, 500), (3, 0, 7, 500, 490), (10,) * 100)


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
        "root_mean_square": np.sqrt(np.mean((y - x) ** 2)),
        "correlation": np.corrcoef(x, y)[0, 1],
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
        "root_mean_square": (e**2 - np.mean(e**2)) / (2 * np.sqrt(np.mean(e**2))),
        "correlation": dx * dy / np.sqrt(vx * vy) - r * (dx**2 / vx + dy**2 / vy) / 2,
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


def gather(x, y, cuts, clusters=None):
    agreement, at = Agreement(clusters is not None), 0
    for size in cuts:
        piece = slice(at, at + size)
        agreement.add(x[piece], y[piece], None if clusters is None else clusters[piece])
        at += size
    assert at == len(x)
    return agreement


# Agreement: values and errors


@pytest.mark.parametrize("cuts", CUTS, ids=len)
def test_every_score_and_error_is_that_of_the_whole_sample_however_it_is_cut(cuts):
    x, y = a_sample()
    agreement, expected, influence = gather(x, y, cuts), direct(x, y), influences(x, y)
    assert agreement.n == 1000
    for name in SCORES:
        score = getattr(agreement, name)
        assert score.value == pytest.approx(expected[name], rel=1e-12), name
        assert score.error == pytest.approx(standard_error(influence[name]), rel=1e-9), name


@pytest.mark.parametrize("groups", [None, 50])
def test_errors_match_the_spread_over_repeated_samples(groups):
    # 400 repeats know a standard deviation to 1 / sqrt(2 * 400) = 3.5% where scores are normal;
    # bound 4 times this. Delta-method errors of skewed samples of 1000 are right to some 3%.
    scores = {name: [] for name in SCORES}
    for repeat in range(400):
        x, y = a_sample(1000, repeat, groups=groups)
        clusters = None if groups is None else np.repeat(np.arange(groups), 1000 // groups)
        agreement = gather(x, y, WHOLE, clusters)
        for name in SCORES:
            scores[name].append(getattr(agreement, name))
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
    for cuts in (WHOLE, (500, 500)):
        agreement = gather(*pair, cuts, clusters)
        for name in SCORES:
            score = getattr(agreement, name)
            assert np.isnan(score.value), name
            assert np.isnan(score.error), name


def test_a_truth_that_is_the_same_for_all_correlates_with_nothing():
    _, y = a_sample()
    agreement = gather(np.full(1000, 0.3), y, (500, 500))
    assert not agreement.truth_varies
    for name in ("correlation", "concordance", "shrinkage"):
        assert np.isnan(getattr(agreement, name).value)
    assert agreement.bias.value == pytest.approx(y.mean() - 0.3)
    # Also where it is no sum of powers of two, and the same only within each piece.
    assert gather(np.repeat([0.1, 0.3], 500), y, (500, 500)).truth_varies
    ignoring = gather(y, np.full(1000, 0.3), (500, 500))
    assert ignoring.truth_varies
    assert np.isnan(ignoring.correlation.value)


# Coverage


def intervals(n=1000):
    rng = session_stream(9)
    truth, centre = rng.normal(size=(2, n))
    width = rng.gamma(2.0, size=(n, 1)) * [0.5, 1.5]
    return truth, centre[:, None] - width, centre[:, None] + width


def cover(truth, low, high, cuts, clusters=None):
    coverage, at = Coverage(MASSES, clusters is not None), 0
    for size in cuts:
        p = slice(at, at + size)
        coverage.add(truth[p], low[p], high[p], None if clusters is None else clusters[p])
        at += size
    return coverage


@pytest.mark.parametrize("cuts", CUTS, ids=len)
def test_coverage_is_a_share_and_a_mean_width(cuts):
    truth, low, high = intervals()
    coverage = cover(truth, low, high, cuts)
    inside = (low <= truth[:, None]) & (truth[:, None] <= high)
    for k, mass in enumerate(("50", "90")):
        held = coverage.shares[mass]
        p = inside[:, k].mean()
        assert held.value == pytest.approx(p)
        # Agresti and Coull add two to each side, which changes little in 1000.
        assert held.error == pytest.approx(np.sqrt(p * (1 - p) / 1000), rel=0.01)
        width = (high - low)[:, k]
        assert coverage.widths[mass].value == pytest.approx(width.mean())
        assert coverage.widths[mass].error == pytest.approx(standard_error(width))


def test_missing_ends_hold_nothing_and_endless_ones_hold_all():
    truth = np.zeros(20)
    low, high = np.full((20, 2), -1.0), np.full((20, 2), 1.0)
    low[:5], high[5:10] = np.nan, np.nan
    high[10:15] = np.inf
    coverage = cover(truth, low, high, (20,))
    assert coverage.shares["90"].value == 0.5
    assert coverage.widths["90"].value == 2.0  # of the finite ones
    nowhere = cover(truth, np.full((20, 2), np.nan), high, (20,))
    assert nowhere.shares["50"].value == 0.0
    assert nowhere.shares["50"].error > 0
    assert np.isnan(nowhere.widths["50"].value)


def test_a_share_of_all_or_none_has_an_error():
    # Agresti and Coull 1998: (x + 2) / (n + 4).
    assert share(0, 100).value == 0.0
    assert share(0, 100).error == pytest.approx(share(100, 100).error)
    assert share(0, 100).error == pytest.approx(np.sqrt(2 / 104 * (1 - 2 / 104) / 104))
    assert np.isnan(share(0, 0).value)
    assert f"{share(90, 100)}" == "0.900 (0.031)"
