from itertools import product
from math import comb, factorial, prod, sqrt

import numpy as np
import pytest
from scipy.stats import binom, chisquare, norm

from knownminds.environments import session_stream
from knownminds.validation.calibration.rank_uniformity import (
    chance_noticed,
    gamma_statistic,
    judge,
    noticeable,
    rank_of,
    simultaneous_band,
    squares_test,
)

L = 99  # ranks on 0..99, one hundred values
OBSERVATIONS = 2  # per replicate, of variance 2: their mean has variance 1, like the prior
REPLICATES = 1000


def holds(band, ranks, n_ranks):
    """Whether the ECDF of some ranks is inside the band at all its points."""
    below = (ranks[:, None] < band.points * (n_ranks + 1) - 1e-9).sum(axis=0)
    return bool(((band.least <= below) & (below <= band.most)).all())


def uniform_ranks(n, *address):
    return session_stream(3, *address).integers(0, L + 1, n)


def conjugate_ranks(
    address,
    replicates=REPLICATES,
    *,
    shift=0.0,
    width=1.0,
    prior_mean=0.0,
    prior_sd=1.0,
    ignore_data=False,
):
    """Ranks of the mean of normal data, prior N(0, 1), and of the log-likelihood.

    The posterior is made wrong on purpose: shifted (in posterior standard deviations), of another
    width, computed under another prior, or blind to the data.
    """
    rng = session_stream(11, *np.atleast_1d(address))
    truth = rng.normal(size=replicates)
    data = rng.normal(truth[:, None], sqrt(OBSERVATIONS), (replicates, OBSERVATIONS))
    precision = 1 / prior_sd**2 + (0 if ignore_data else 1)
    weight = 0 if ignore_data else 1 / precision
    centre = weight * data.mean(axis=1) + (1 - weight) * prior_mean
    sd = 1 / sqrt(precision)
    draws = rng.normal(centre + shift * sd, width * sd, (L, replicates))

    def log_likelihood(mean):
        return -((data - mean[..., None]) ** 2).sum(axis=-1) / (2 * OBSERVATIONS)

    return (
        rank_of(truth, draws, L, rng),
        rank_of(log_likelihood(truth), log_likelihood(draws), L, rng),
    )


# The band and its probability


def test_the_band_of_few_ranks_equals_the_enumeration_of_all_ranks():
    n, bins = 6, 4
    z = np.arange(1, bins) / bins
    cells = [cell for cell in product(range(n + 1), repeat=bins) if sum(cell) == n]
    assert len(cells) == comb(n + bins - 1, bins - 1)
    chances = np.array(
        [factorial(n) / prod(factorial(c) for c in cell) / bins**n for cell in cells]
    )
    counts = np.cumsum(cells, axis=1)[:, :-1]
    tails = 2 * np.minimum(binom.cdf(counts, n, z), binom.sf(counts - 1, n, z))
    gammas = np.minimum(1.0, tails.min(axis=1))
    for cell, expected in zip(cells, gammas, strict=True):
        gamma, p_value = gamma_statistic(np.repeat(np.arange(bins), cell), bins - 1)
        assert gamma == pytest.approx(expected, rel=1e-12)
        assert p_value == pytest.approx(chances[gammas <= gamma + 1e-9].sum(), rel=1e-12)
    for mass in (0.5, 0.8, 0.95):
        band = simultaneous_band(n, bins - 1, mass)
        usual = {g: chances[gammas >= g - 1e-9].sum() for g in np.unique(gammas)}
        smallest = max(g for g, chance in usual.items() if chance >= mass)
        assert band.gamma == pytest.approx(smallest)
        assert band.coverage == pytest.approx(usual[smallest], rel=1e-12)


def test_with_a_single_inner_point_the_band_is_the_binomial_one():
    band = simultaneous_band(100, 1, 0.95)
    # the textbook acceptance region of a fair coin thrown 100 times: 40 to 60 heads, 96.48%
    assert (band.least[1], band.most[1]) == (40, 60)
    assert band.coverage == pytest.approx(0.9648, abs=5e-5)


@pytest.mark.parametrize(("n", "n_ranks"), [(50, 99), (40, 999)])
def test_the_band_holds_uniform_ranks_as_often_as_it_says(n, n_ranks):
    band = simultaneous_band(n, n_ranks, 0.95)
    assert 0.95 <= band.coverage < 0.957
    repetitions = 4000
    rng = session_stream(5, n)
    sets = rng.integers(0, n_ranks + 1, (repetitions, n))
    share = np.mean([holds(band, ranks, n_ranks) for ranks in sets])
    # 4 binomial standard errors: sqrt(0.95 x 0.05 / 4000) = 0.0034
    assert abs(share - band.coverage) < 4 * sqrt(0.05 * 0.95 / repetitions)


@pytest.mark.parametrize("mass", [0.8, 0.95])
def test_the_p_value_rejects_exactly_when_the_ecdf_leaves_the_band(mass):
    band = simultaneous_band(60, L, mass)
    rng = session_stream(7)
    outside = 0
    for ranks in rng.integers(0, L + 1, (300, 60)):
        _, p_value = gamma_statistic(ranks, L)
        assert (p_value <= 1 - mass) == (not holds(band, ranks, L))
        outside += p_value <= 1 - mass
    assert outside > 0


def test_the_p_value_is_that_of_simulated_ranks():
    """The smallest two-sided tail of the ECDF, and how often uniform ranks have a smaller one."""
    n, rng = 60, np.random.default_rng(1)
    z = np.arange(1, 50) / 50

    def gammas(ranks):
        below = np.stack([(ranks < 2 * k).sum(axis=1) for k in range(1, 50)], axis=1)
        tails = 2 * np.minimum(binom.cdf(below, n, z), binom.sf(below - 1, n, z))
        return np.minimum(tails.min(axis=1), 1.0)

    null = gammas(rng.integers(0, L + 1, (10_000, n)))
    for ranks in (rng.integers(0, L + 1, n), np.sort(rng.integers(0, L + 1, n)) * 3 // 4):
        gamma, p_value = gamma_statistic(ranks, L)
        assert gamma == pytest.approx(gammas(ranks[None])[0])
        # Four binomial errors of 10,000 simulated sets.
        assert abs((null <= gamma + 1e-12).mean() - p_value) < 4 * sqrt(0.25 / 10_000)


def test_tiny_p_values_keep_their_digits():
    # all ranks in the lowest of two halves: both extremes together have the chance 2 x 2^-200
    gamma, p_value = gamma_statistic(np.zeros(200, dtype=int), 1)
    assert gamma == pytest.approx(2.0**-199, rel=1e-9)
    assert p_value == pytest.approx(2.0**-199, rel=1e-9)


# What is right passes, what is made wrong is named


def test_exact_posteriors_pass_for_the_mean_and_for_the_log_likelihood():
    for address in range(5):
        for ranks in conjugate_ranks(address):
            # ten judgements; at level 0.05 / 10 each, one false alarm in twenty such tests
            result = judge(ranks, L, level=0.005)
            assert result.verdict.word == "calibrated"
            assert result.mean.value == pytest.approx(0.5, abs=4 * result.mean.error)
            assert result.spread.value == pytest.approx(1, abs=4 * result.spread.error)


# Sizes with power near 1 at 1000 replicates. With u = Phi(a + b Z), Z normal, a the error in
# posterior standard deviations and b the true over the claimed width: the mean of u is off by
# Phi(a / sqrt(1 + b^2)) - 1/2, with a standard error of 0.007 to 0.012; the error of the spread is
# 0.02 to 0.04.
WRONG = {
    "shifted up by half a posterior sd": ({"shift": 0.5}, "biased high"),  # mean off by 0.14
    "too narrow": ({"width": 0.6}, "over-confident"),  # spread 1.6
    "too wide": ({"width": 1.6}, "under-confident"),  # spread 0.55
    "prior too narrow": ({"prior_sd": 0.5}, "over-confident"),  # b = 1.84: spread 1.7
    "shifted up and too narrow": ({"shift": 0.8, "width": 0.6}, "biased high, over-confident"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_posterior_made_wrong_on_purpose_is_flagged_with_the_right_word(case):
    wrong, word = WRONG[case]
    for address in range(2):
        ranks = conjugate_ranks(address, **wrong)[0]
        result = judge(ranks, L, level=0.001)
        assert result.verdict.word == word
        out = (result.ecdf["difference"] < result.ecdf["lower"]) | (
            result.ecdf["difference"] > result.ecdf["upper"]
        )
        assert out.any() == (result.p_ecdf <= 0.0005)  # half of the level
        assert result.p == 2 * min(result.p_ecdf, result.p_squares)
        # Pearson's test of ten equal bins sees all of these as well.
        assert chisquare(np.bincount(ranks // 10, minlength=10)).pvalue < 0.001


def test_a_posterior_that_ignores_the_data_is_seen_only_through_the_log_likelihood():
    # Modrák et al. 2023: prior draws have uniform ranks, however little they learned.
    for address in range(5):
        mean, log_likelihood = conjugate_ranks(address, 500, ignore_data=True)
        assert judge(mean, L, level=0.005).verdict.word == "calibrated"
        result = judge(log_likelihood, L, level=0.005)
        assert result.verdict.word.startswith(
            "biased low"
        )  # draws fit the data worse than the truth does
        assert result.p < 1e-6


@pytest.mark.long
def test_the_rate_of_false_alarms_is_the_level():
    repetitions, n = 300, 100
    judged = [judge(uniform_ranks(n, 1, i), L) for i in range(repetitions)]
    alarms = sum(one.verdict.word != "calibrated" for one in judged)
    # Each of two tests has at most 0.025, and often both fall together. 4 binomial standard errors
    # are 10.8 around 7.5, and 15.1 around 15.
    assert 0 < alarms <= 15 + 15.1
    for name in ("p_ecdf", "p_squares"):
        rejected = sum(getattr(one, name) <= 0.025 for one in judged)
        assert abs(rejected - 7.5) < 4 * sqrt(300 * 0.025 * 0.975)


def test_the_law_of_the_squares_is_that_of_all_ranks():
    n, n_ranks = 3, 4
    scores = np.rint(64 * norm.ppf((np.arange(5) + 0.5) / 5) ** 2)
    sums = np.array([scores[list(ranks)].sum() for ranks in product(range(5), repeat=n)])
    for ranks in ([0, 0, 4], [2, 2, 2], [0, 1, 2]):
        total = scores[ranks].sum()
        tails = (sums <= total).mean(), (sums >= total).mean()
        assert squares_test(ranks, n_ranks) == pytest.approx(min(1.0, 2 * min(tails)))


@pytest.mark.parametrize(("width", "word"), [(0.8, "over-confident"), (1.25, "under-confident")])
def test_a_width_that_is_somewhat_wrong_is_noticed_as_often_as_it_says(width, word):
    """The chance is exact: .97 for both, where the ECDF alone, at .05, has .84 and .72."""
    n, repetitions = 200, 100
    chance = chance_noticed(n, L, 0.05, width=width)
    words = [
        judge(conjugate_ranks((9, i), n, width=width)[0], L).verdict.word
        for i in range(repetitions)
    ]
    noticed = sum(one != "calibrated" for one in words)
    # 4 binomial errors; by chance a mean that is further off is named instead
    assert noticed >= 100 * chance - 4 * sqrt(100 * chance * (1 - chance))
    assert sum(word in one for one in words) > 0.8 * noticed


# Ranks


def test_the_rank_counts_the_draws_below_the_truth():
    draws = np.array([[1.0, -np.inf], [2.0, 5.0], [3.0, 6.0], [4.0, np.inf]])
    ranks = rank_of([2.5, 0.0], draws, 4, session_stream(1))
    assert ranks.tolist() == [2, 1]
    assert rank_of([0.0, 0.0], draws, 4, session_stream(1))[0] == 0
    assert rank_of([9.0, 0.0], draws, 4, session_stream(1))[0] == 4


def test_ties_are_broken_at_random():
    quantities = 20_000
    draws = np.repeat([[0.0], [1.0], [1.0], [1.0], [2.0]], quantities, axis=1)
    ranks = rank_of(np.ones(quantities), draws, 5, session_stream(2))
    counts = np.bincount(ranks, minlength=6)
    assert counts[[0, 5]].tolist() == [0, 0]  # between the draw below and the draw above
    # 4 binomial standard errors of 1/4 among 20,000
    assert np.all(np.abs(counts[1:5] - 5000) < 4 * sqrt(quantities * 0.25 * 0.75))


def test_few_replicates_are_not_judged():
    result = judge(np.zeros(11, dtype=int), L)
    assert result.verdict.word == "not judged"
    assert np.isnan(result.p)
    assert judge([], L).verdict.word == "not judged"
    assert judge(np.zeros(12, dtype=int), L).verdict.word == "biased high"
    # Of more quantities each has a smaller level, which asks for more replicates.
    assert judge(np.zeros(12, dtype=int), L, level=0.05 / 4).verdict.word == "not judged"


# What could have been seen


def share_rejected(address, n, level, shift, width, repetitions=400):
    """Draw truths and posteriors that are shifted and too narrow or wide; both tests' shares."""
    rng = session_stream(21, address)
    rejected = np.zeros(2)
    for _ in range(repetitions):
        truth = shift + rng.normal(size=n)
        ranks = (width * rng.normal(size=(L, n)) < truth).sum(axis=0)
        p_values = gamma_statistic(ranks, L)[1], squares_test(ranks, L)
        rejected += np.array(p_values) <= level / 2
    return float(rejected.max()) / repetitions


@pytest.mark.long
@pytest.mark.parametrize("n", [40, 100])
def test_what_is_said_to_be_noticed_is_noticed_in_80_percent_of_the_studies(n):
    level = 0.05 / 4
    narrow, wide, shift = noticeable(n, L, level)
    assert narrow < 1 < wide
    for address, wrong in enumerate(
        ({"width": narrow}, {"width": wide}, {"shift": shift}, {"shift": -shift})
    ):
        chance = chance_noticed(n, L, level, **wrong)
        # 80%, and a little more, since sizes are rounded to two digits
        assert 0.8 <= chance < 0.84
        found = share_rejected(address, n, level, **{"shift": 0.0, "width": 1.0} | wrong)
        # 4 binomial standard errors of 80% among 400
        assert abs(found - chance) < 4 * sqrt(0.8 * 0.2 / 400)
    # A right posterior is noticed no more often than each test is wrong.
    assert chance_noticed(n, L, level) <= level / 2
