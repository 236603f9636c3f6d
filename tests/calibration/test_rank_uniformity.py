import json
from itertools import product
from math import comb, factorial, prod, sqrt

import numpy as np
import pytest
from scipy.stats import binom, norm

from knownminds.environments import session_stream
from knownminds.validation.calibration.rank_uniformity import (
    chance_noticed,
    chi_square,
    gamma_statistic,
    judge,
    least_replicates,
    noticeable,
    rank_of,
    simultaneous_band,
)

L = 99  # ranks on 0..99, one hundred values
OBSERVATIONS = 2  # per replicate, of variance 2: their mean has variance 1, like the prior
REPLICATES = 1000


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
    rng = session_stream(11, address)
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


def test_the_band_of_few_ranks_equals_the_enumeration_of_all_outcomes():
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
        held = {g: chances[gammas >= g - 1e-9].sum() for g in np.unique(gammas)}
        smallest = max(g for g, chance in held.items() if chance >= mass)
        assert band.gamma == pytest.approx(smallest)
        assert band.coverage == pytest.approx(held[smallest], rel=1e-12)


def test_with_a_single_inner_point_the_band_is_the_binomial_one():
    band = simultaneous_band(100, 1, 0.95)
    # the textbook acceptance region of a fair coin thrown 100 times: 40 to 60 heads, 96.48%
    assert (band.least[1], band.most[1]) == (40, 60)
    assert band.coverage == pytest.approx(0.9648, abs=5e-5)


@pytest.mark.parametrize(
    ("n", "n_ranks", "points"), [(50, 99, None), (200, 999, 50), (300, 100, 101)]
)
def test_the_band_holds_uniform_ranks_as_often_as_it_says(n, n_ranks, points):
    band = simultaneous_band(n, n_ranks, 0.95, points)
    assert 0.95 <= band.coverage < 0.957
    repetitions = 4000
    rng = session_stream(5, n)
    sets = rng.integers(0, n_ranks + 1, (repetitions, n))
    share = np.mean([band.holds(ranks) for ranks in sets])
    # 4 binomial standard errors: sqrt(0.95 x 0.05 / 4000) = 0.0034
    assert abs(share - band.coverage) < 4 * sqrt(0.05 * 0.95 / repetitions)


def test_the_pointwise_band_holds_far_less_often_so_the_adjustment_matters():
    n, points = 200, 100
    counts = np.cumsum(session_stream(6).multinomial(n, np.full(points, 1 / points), 1000), axis=1)
    z = np.arange(1, points) / points
    low, high = binom.ppf(0.025, n, z), binom.ppf(0.975, n, z)
    pointwise = np.mean(((low <= counts[:, :-1]) & (counts[:, :-1] <= high)).all(axis=1))
    assert pointwise < 0.6
    band = simultaneous_band(n, L)
    assert np.all(band.least[1:-1] <= low)
    assert np.all(band.most[1:-1] >= high)
    assert band.gamma < 0.05 / 5


def test_the_band_is_symmetric_closed_at_the_ends_and_narrows_with_replicates():
    band = simultaneous_band(250, L)
    assert np.array_equal(band.least, 250 - band.most[::-1])
    assert band.lower[[0, -1]] == pytest.approx(0)
    assert band.upper[[0, -1]] == pytest.approx(0)
    width = band.upper - band.lower
    wide = simultaneous_band(250, L, 0.99)
    assert np.all(wide.upper - wide.lower >= width)
    many = simultaneous_band(1000, L)  # four times the ranks: half the width
    assert np.max(many.upper - many.lower) == pytest.approx(np.max(width) / 2, rel=0.05)


@pytest.mark.parametrize("mass", [0.8, 0.95])
def test_the_p_value_rejects_exactly_when_the_ecdf_leaves_the_band(mass):
    band = simultaneous_band(60, L, mass)
    rng = session_stream(7)
    outside = 0
    for ranks in rng.integers(0, L + 1, (300, 60)):
        _, p_value = gamma_statistic(ranks, L)
        assert (p_value <= 1 - mass) == (not band.holds(ranks))
        outside += not band.holds(ranks)
    assert outside > 0


@pytest.mark.parametrize("mass", [0.05, 0.5, 0.999])
def test_band_and_p_value_agree_in_the_smallest_designs(mass):
    # with two values and an odd number of ranks, rounding once left the middle point unbounded
    for n, n_ranks in product((1, 2, 7, 69, 149), (1, 2, 5)):
        band = simultaneous_band(n, n_ranks, mass)
        assert band.coverage >= mass
        for ranks in (np.zeros(n, dtype=int), np.arange(n) % (n_ranks + 1)):
            _, p_value = gamma_statistic(ranks, n_ranks)
            assert (p_value <= 1 - mass) == (not band.holds(ranks))


def test_the_p_value_is_uniform_or_larger_under_uniform_ranks():
    repetitions = 2000
    sets = session_stream(8).integers(0, L + 1, (repetitions, 80))
    p_values = np.array([gamma_statistic(ranks, L)[1] for ranks in sets])
    for t in (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9):
        error = sqrt(t * (1 - t) / repetitions)
        # never more often than t; and, as outcomes are many, hardly less often
        assert t - 0.02 - 4 * error < np.mean(p_values <= t) < t + 4 * error


def test_tiny_p_values_keep_their_digits():
    # all ranks in the lowest of two halves: both extremes together have the chance 2 x 2^-200
    gamma, p_value = gamma_statistic(np.zeros(200, dtype=int), 1)
    assert gamma == pytest.approx(2.0**-199, rel=1e-9)
    assert p_value == pytest.approx(2.0**-199, rel=1e-9)


def test_chi_square_takes_equal_bins_that_are_full_enough():
    statistic, p_value, bins = chi_square(np.arange(100), L)
    assert (statistic, p_value, bins) == (0, 1, 20)
    assert chi_square(np.arange(30), L)[2] == 5  # at most 30 / 5 bins, and 5 is a divisor of 100
    assert np.isnan(chi_square(np.arange(101), 100)[0])  # 101 is prime
    # 30 and 10 ranks where 20 are expected: 2 x 10^2 / 20
    assert chi_square(np.repeat([0, 99], [30, 10]), L, bins=2)[0] == pytest.approx(10)


# What is right passes, what is made wrong is named


def test_exact_posteriors_pass_for_the_mean_and_for_the_log_likelihood():
    for address in range(5):
        for ranks in conjugate_ranks(address):
            # ten judgements; at level 0.05 / 10 each, one false alarm in twenty such tests
            result = judge(ranks, L, level=0.005)
            assert result.word == "calibrated"
            assert result.mean == pytest.approx(0.5, abs=4 * result.mean_error)
            assert result.spread == pytest.approx(1, abs=4 * result.spread_error)


# Sizes with power near 1 at 1000 replicates. With u = Phi(a + b Z), Z normal, a the error in
# posterior standard deviations and b the true over the claimed width: the mean of u is off by
# Phi(a / sqrt(1 + b^2)) - 1/2, with a standard error of 0.007 to 0.012; the error of the spread is
# 0.02 to 0.04.
WRONG = {
    "shifted up by half a posterior sd": ({"shift": 0.5}, "biased high"),  # mean off by 0.14
    "shifted down by half a posterior sd": ({"shift": -0.5}, "biased low"),
    "too narrow": ({"width": 0.6}, "over-confident"),  # spread 1.6
    "too wide": ({"width": 1.6}, "under-confident"),  # spread 0.55
    "prior of a higher mean": ({"prior_mean": 0.7}, "biased high"),  # a = -0.5
    "prior of a lower mean": ({"prior_mean": -0.7}, "biased low"),
    "prior too narrow": ({"prior_sd": 0.5}, "over-confident"),  # b = 1.84: spread 1.7
    "shifted up and too narrow": ({"shift": 0.8, "width": 0.6}, "biased high, over-confident"),
    "shifted down and too wide": ({"shift": -0.5, "width": 1.6}, "biased low, under-confident"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_posterior_made_wrong_on_purpose_is_flagged_with_the_right_word(case):
    wrong, word = WRONG[case]
    for address in range(5):
        result = judge(conjugate_ranks(address, **wrong)[0], L, level=0.001)
        assert result.word == word
        assert not result.inside_band
        assert result.chi_square_p < 0.001


def test_a_prior_that_is_too_wide_shows_only_where_it_matters():
    # sd 3 instead of 1 under data of variance 1: the claimed sd is 0.95, the true error 0.91.
    # Nearly right, so a thousand replicates rarely tell; the same prior without data is far off.
    assert judge(conjugate_ranks(0, prior_sd=3.0)[0], L, level=0.001).word == "calibrated"
    without_data = conjugate_ranks(0, prior_sd=3.0, ignore_data=True)[0]
    assert judge(without_data, L, level=0.001).word == "under-confident"


def test_a_posterior_that_ignores_the_data_is_seen_only_through_the_log_likelihood():
    # Modrák et al. 2023: prior draws have uniform ranks, however little they learned.
    for address in range(5):
        mean, log_likelihood = conjugate_ranks(address, 500, ignore_data=True)
        assert judge(mean, L, level=0.005).word == "calibrated"
        result = judge(log_likelihood, L, level=0.005)
        assert result.word.startswith("biased low")  # draws fit the data worse than the truth does
        assert result.p_value < 1e-6


def test_a_shift_is_not_taken_for_a_wrong_width():
    rng = session_stream(12)
    for shift in (-1.5, -0.5, 0.5, 1.5):
        above = rng.normal(shift, 1, (2000, 1)) > rng.normal(size=(2000, L))
        result = judge(above.sum(axis=1), L)
        assert result.word == ("biased low" if shift > 0 else "biased high")
        assert abs(result.spread - 1) < 4 * result.spread_error


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_standard_errors_are_the_spread_over_repetitions(shift):
    repetitions, n = 400, 300
    results = []
    for i in range(repetitions):
        # the rank of N(shift, 1) among exact standard normal draws is binomial given the truth
        rng = session_stream(16, i)
        results.append(judge(rng.binomial(L, norm.cdf(rng.normal(shift, 1, n))), L))
    for name in ("mean", "spread"):
        values = np.array([getattr(r, name) for r in results])
        claimed = np.mean([getattr(r, f"{name}_error") for r in results])
        # a standard deviation from 400 values has a relative error of 1 / sqrt(800) = 0.035
        assert values.std() == pytest.approx(claimed, rel=4 * 0.035)


def test_ranks_at_one_end_say_nothing_about_the_width():
    assert judge(np.zeros(50, dtype=int), L).word == "biased high"
    assert judge(np.full(50, L), L).word == "biased low"


def test_ranks_that_do_not_vary_or_sit_at_both_ends_are_judged():
    assert judge(np.full(50, 50), 100).word == "under-confident"
    assert judge(np.repeat([0, L], 25), L).word == "over-confident"


def test_a_wrong_shape_of_right_mean_and_spread_is_miscalibrated():
    # four equally spaced places whose mean is 1/2 and whose variance is 1/12
    result = judge(np.repeat([11, 37, 62, 88], 100), L)
    assert result.spread == pytest.approx(1, abs=0.02)
    assert result.word == "miscalibrated"


def test_the_rate_of_false_alarms_is_the_level():
    repetitions, n = 400, 100
    words = [judge(uniform_ranks(n, 1, i), L).word for i in range(repetitions)]
    size = 1 - simultaneous_band(n, L).coverage  # the exact size, at most 0.05
    alarms = sum(word != "calibrated" for word in words)
    # 4 binomial standard errors: sqrt(400 x 0.05 x 0.95) = 4.4 around 20
    assert abs(alarms - repetitions * size) < 4 * sqrt(repetitions * size * (1 - size))


def test_the_level_is_the_callers():
    ranks = next(
        r
        for r in (uniform_ranks(100, 2, i) for i in range(400))
        if 0.01 < gamma_statistic(r, L)[1] < 0.04
    )
    loose = judge(ranks, L, level=0.05)
    assert loose.word != "calibrated"
    assert not loose.inside_band
    strict = judge(ranks, L, level=0.005)
    assert strict.word == "calibrated"
    assert strict.inside_band
    assert (strict.upper - strict.lower).max() > (loose.upper - loose.lower).max()


# Ranks


def test_the_rank_counts_the_draws_below_the_truth():
    draws = np.array([[1.0, -np.inf], [2.0, 5.0], [3.0, 6.0], [4.0, np.inf]])
    ranks = rank_of([2.5, 0.0], draws, 4, session_stream(1))
    assert ranks.tolist() == [2, 1]
    assert rank_of([0.0, 0.0], draws, 4, session_stream(1))[0] == 0
    assert rank_of([9.0, 0.0], draws, 4, session_stream(1))[0] == 4


def test_draws_are_thinned_evenly():
    draws = np.arange(1000.0)[:, None]
    for n_ranks in (9, 99, 333, 1000):
        for truth in (-0.5, 250.5, 999.5):
            rank = rank_of([truth], draws, n_ranks, session_stream(1))[0]
            assert rank == pytest.approx((truth + 0.5) / 1000 * n_ranks, abs=1)


def test_ties_are_broken_at_random():
    quantities = 20_000
    draws = np.repeat([[0.0], [1.0], [1.0], [1.0], [2.0]], quantities, axis=1)
    ranks = rank_of(np.ones(quantities), draws, 5, session_stream(2))
    counts = np.bincount(ranks, minlength=6)
    assert counts[[0, 5]].tolist() == [0, 0]  # between the draw below and the draw above
    # 4 binomial standard errors of 1/4 among 20,000
    assert np.all(np.abs(counts[1:5] - 5000) < 4 * sqrt(quantities * 0.25 * 0.75))


def test_a_discrete_quantity_passes_thanks_to_the_random_ties():
    rng = session_stream(13)
    chance = rng.uniform(size=REPLICATES)  # a posterior of two values, and a truth drawn from it
    truth = (rng.uniform(size=REPLICATES) < chance).astype(float)
    draws = (rng.uniform(size=(L, REPLICATES)) < chance).astype(float)
    assert judge(rank_of(truth, draws, L, rng), L, level=0.005).word == "calibrated"
    ties_ignored = (draws < truth).sum(axis=0)
    assert judge(ties_ignored, L, level=0.005).word != "calibrated"


def test_one_tied_quantity_leaves_the_random_numbers_of_the_next_alone():
    draws = session_stream(14).normal(size=(L, 2)).round(1)
    tied = rank_of([draws[5, 0], 0.0], draws, L, session_stream(15))[1]
    free = rank_of([77.0, 0.0], draws, L, session_stream(15))[1]
    assert tied == free


# Results and misuse


def test_few_replicates_are_not_judged():
    result = judge(np.zeros(24, dtype=int), L)
    assert result.word == "not judged"
    assert result.inside_band is None
    assert np.isnan(result.p_value)
    assert str(result).startswith(
        "not judged: Usable replicates: 24; 25 are needed to notice with a chance of 80% a "
        "posterior that is 0.5 times as wide as it should be. With 24 replicates a posterior "
    )
    none = judge([], L)
    assert json.loads(none.to_json())["p_value"] is None
    assert "no posterior, however wrong, is noticed" in str(none)
    assert judge(np.zeros(25, dtype=int), L).word == "biased high"
    # Of more quantities each is held to a smaller level, which asks for more replicates.
    assert judge(np.zeros(25, dtype=int), L, level=0.05 / 4).word == "not judged"


# What could have been seen


def share_rejected(address, n, level, shift, width, repetitions=400):
    """Draw truths and posteriors that are shifted and too narrow or wide; put ranks to the test."""
    rng = session_stream(21, address)
    rejected = 0
    for _ in range(repetitions):
        truth = shift + rng.normal(size=n)
        ranks = (width * rng.normal(size=(L, n)) < truth).sum(axis=0)
        rejected += gamma_statistic(ranks, L)[1] <= level
    return rejected / repetitions


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
    # A right posterior is noticed as often as the test is wrong.
    assert chance_noticed(n, L, level) == pytest.approx(
        1 - simultaneous_band(n, L, 1 - level).coverage
    )


@pytest.mark.parametrize("quantities", [1, 4])
def test_verdicts_begin_where_posteriors_half_as_wide_are_noticed(quantities):
    level = 0.05 / quantities
    least = least_replicates(L, level)
    # Four binomial errors of 400 studies are .08.
    assert share_rejected(30, least, level, 0.0, 0.5) > 0.8 - 0.08
    # Twenty, as once were enough, miss a posterior half as wide too often.
    assert share_rejected(31, 20, level, 0.0, 0.5) < chance_noticed(20, L, level, width=0.5) + 0.08
    assert chance_noticed(20, L, level, width=0.5) < 0.8
    assert all(chance_noticed(n, L, level, width=0.5) >= 0.8 for n in range(least, least + 20))
    assert judge(uniform_ranks(least - 1, 7), L, level).word == "not judged"
    assert judge(uniform_ranks(least, 7), L, level).word != "not judged"


def test_a_calibrated_word_says_what_could_have_been_seen():
    result = judge(uniform_ranks(200, 4), L)
    narrow, wide, shift = noticeable(200, L, 0.05)
    assert (result.seen_narrow, result.seen_wide, result.seen_shift) == (narrow, wide, shift)
    assert (
        f"With 200 replicates a posterior {narrow:.2f} or {wide:.2f} times as wide as it should "
        f"be, or one shifted by {shift:.2f} of its standard deviations, is noticed with a chance "
        "of at least 80%, by the ranks of this quantity alone."
    ) in str(result)
    assert json.loads(result.to_json())["least"] == least_replicates(L, 0.05)


def test_the_result_prints_and_gives_what_a_figure_needs():
    ranks = uniform_ranks(200, 4)
    result = judge(ranks, L)
    frame = result.to_frame()
    assert frame["z"].tolist() == pytest.approx((np.arange(101) / 100).tolist())
    ecdf = [(ranks < z).mean() for z in range(101)]
    assert frame["difference"].to_numpy() == pytest.approx(ecdf - frame["z"].to_numpy())
    assert frame["difference"].between(frame["lower"], frame["upper"]).all() == result.inside_band
    few = judge(ranks[:30], L).to_frame()  # 25 points, of four ranks each
    ecdf = [(ranks[:30] < z).mean() for z in range(0, 101, 4)]
    assert (few["difference"] + few["z"]).to_numpy() == pytest.approx(ecdf)
    assert "inside 0.95 band" in str(result)
    told = json.loads(result.to_json())
    assert told["word"] == "calibrated"
    assert told["p_value"] == result.p_value
    assert "no small divisor" in str(judge(ranks, 100))


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda: judge([0, 100], L), r"0\.\.99; got values from 0 to 100"),
        (lambda: judge([-1, 5], L), "got values from -1 to 5"),
        (lambda: judge([0.5, 1.0], L), "integers; got float64"),
        (lambda: judge([[1, 2]], L), r"one-dimensional .* \(1, 2\)"),
        (lambda: judge([0] * 30, L, level=5), "between 0 and 1; got 5"),
        (lambda: judge([0] * 30, 0), "got L = 0"),
        (lambda: simultaneous_band(100, L, points=30), "got 30. Take one of 2, 4, 5, 10, 20"),
        (lambda: simultaneous_band(100, L, points=1), "2 or more equal parts; got 1"),
        (lambda: simultaneous_band(0, L), "got n = 0"),
        (lambda: simultaneous_band(100, L, 95), "mass = 95"),
        (lambda: simultaneous_band(100, L).holds([1, 2]), "for 100 ranks; got 2"),
        (lambda: gamma_statistic([], L), "at least one rank"),
        (lambda: chi_square([0] * 50, L, bins=20), "at most 10 bins"),
        (lambda: chi_square([0] * 50, L, bins=3), "bins must divide the 100"),
        (lambda: rank_of([0.0], np.zeros((50, 1)), L, session_stream(1)), "L = 99 and 50 draws"),
        (lambda: rank_of([0.0], np.zeros((50, 2)), 9, session_stream(1)), r"\(1,\) and \(50, 2\)"),
        (lambda: rank_of([np.nan], np.zeros((50, 1)), 9, session_stream(1)), "got NaN"),
    ],
)
def test_misuse_is_one_clear_sentence(misuse, message):
    with pytest.raises(ValueError, match=message):
        misuse()
