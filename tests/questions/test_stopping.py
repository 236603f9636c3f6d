"""Stopping rules: boundaries, Bayes factors, measured errors, and runs that obey them."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtri
from scipy.stats import cauchy, nct, norm, ttest_1samp
from scipy.stats import t as student

from knownminds.inference import MEASURES, Analysis, StoppingRule
from knownminds.inference.questions.stopping import bayes_factor, e_process_levels, spent_levels
from knownminds.validation.power.sequential import stopped

BIAS = MEASURES["optimism_bias"]


@pytest.mark.parametrize(
    ("spending", "bounds"),
    [  # five looks, alpha .05 on two sides: Lan and DeMets' boundaries as published
        ("obrien_fleming", (4.8769, 3.3569, 2.6803, 2.2898, 2.0310)),
        ("pocock", (2.4380, 2.4268, 2.4101, 2.3966, 2.3859)),
    ],
)
def test_levels_are_those_of_the_published_boundaries(spending, bounds):
    levels = spent_levels((20, 40, 60, 80, 100), 0.05, spending)
    np.testing.assert_allclose(-ndtri(np.array(levels) / 2), bounds, atol=2e-4)


@pytest.mark.parametrize(
    ("t", "of_groups"),
    [(3.5, [20]), (0.0, [50]), (-2.1, [30]), (6.0, [100]), (-0.23, [20, 20]), (2.4, [12, 31])],
)
def test_bayes_factor_is_the_mean_of_noncentral_t_over_the_prior(t, of_groups):
    """The shift is size x root n of one group, and size x root(n_a n_b / (n_a + n_b)) of two."""
    root = np.sqrt(np.prod(of_groups) / (sum(of_groups) if len(of_groups) == 2 else 1))
    freedom = sum(of_groups) - len(of_groups)

    def weighed(size):
        return nct.pdf(t, freedom, size * root) * cauchy.pdf(size, scale=np.sqrt(0.5))

    own = sum(quad(weighed, a, b, limit=200)[0] for a, b in ((-6, 0), (0, 6)))
    assert bayes_factor(t, of_groups) == pytest.approx(own / student.pdf(t, freedom), rel=1e-4)


@pytest.mark.parametrize(
    ("t", "of_groups", "published"),
    [  # R's data sets sleep (pairs, then groups) and chickwts (horsebean, linseed)
        (-4.0621277, [10], 17.259),
        (-1.8608135, [10, 10], 1.266),
        (-2.9340467, [10, 12], 5.976),
    ],
)
def test_bayes_factors_are_those_that_the_r_package_prints(t, of_groups, published):
    """Package BayesFactor (Morey and Rouder), `ttestBF` with its usual scale."""
    assert bayes_factor(t, of_groups) == pytest.approx(published, abs=5e-4)


def looked_at(rule, first, second, effect):
    analysis = Analysis(BIAS, "each", "subject", "paired", stop=rule)

    def tests_of(units):
        return analysis.tests([first[:, :units], second[:, :units]])

    return stopped(analysis, tests_of, np.full(len(second), effect))


def samples(n, most, effect, seed):
    return effect + 0.2 * np.random.default_rng(seed).standard_normal((n, most))


def test_what_stops_is_what_a_plain_loop_over_looks_stops():
    """Values well within the measure's bounds, where its test is nearly Student's."""
    rule = StoppingRule("alpha_spending", (10, 20, 30), spending="pocock")
    drawn = samples(60, 30, 0.1, 1)
    rows = looked_at(rule, np.zeros_like(drawn), drawn, 0.1)
    for row, values in zip(rows.itertuples(), drawn, strict=True):
        for look, units in enumerate(rule.looks):
            p = ttest_1samp(values[:units], 0.0).pvalue
            if p <= rule.levels[look] or units == 30:
                break
        assert (row.look, row.units) == (look, units)
        assert row.found == int(p <= rule.levels[look])
        assert row.estimate == pytest.approx(values[:units].mean())
        assert row.at_the_end == (ttest_1samp(values, 0.0).pvalue < 0.05)


@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock"])
def test_false_alarms_are_as_many_as_promised_and_without_spending_more(spending):
    n = 6000  # an error of .0028 at .05; four looks at 5% each would give about .13
    looks = (15, 30, 45, 60)
    drawn = samples(n, 60, 0.0, 2)
    rule = StoppingRule("alpha_spending", looks, spending=spending)
    rows = looked_at(rule, np.zeros_like(drawn), drawn, 0.0)
    # t tests at a normal test's levels: with 15 values and more the difference is below .004
    assert abs((rows["found"] == 1).mean() - 0.05) < 3 * 0.0028 + 0.004
    naive = np.zeros(n, dtype=bool)
    for units in looks:
        naive |= ttest_1samp(drawn[:, :units], 0.0, axis=1).pvalue < 0.05
    assert naive.mean() > 0.10


EVERY = tuple(range(5, 61))
PROMISING = {
    "e_process": StoppingRule("e_process", EVERY),
    "obrien_fleming": StoppingRule("alpha_spending", (15, 30, 45, 60)),
    "pocock": StoppingRule("alpha_spending", (15, 30, 45, 60), spending="pocock"),
}


@pytest.mark.parametrize("name", PROMISING)
@pytest.mark.parametrize("effect", [0.0, 0.1])
def test_intervals_at_the_stop_hold_the_truth_as_often_as_promised(name, effect):
    n, rule = 2000, PROMISING[name]
    drawn = samples(n, 60, effect, 3)
    rows = looked_at(rule, np.zeros_like(drawn), drawn, effect)
    held = ((rows["low"] <= effect) & (effect <= rows["high"])).mean()
    # 4 binomial errors of .95 among 2,000, and .004 of a t test at a normal test's levels
    assert held >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / n) - 0.004
    if effect == 0:
        assert (rows["found"] == 1).mean() == pytest.approx(1 - held)
    elif name == "e_process":  # half a standard deviation, which a test at the end finds in .97
        assert (rows["found"] == 1).mean() > 0.75
        assert rows["units"].mean() < 45


@pytest.mark.parametrize(("n", "freedom"), [(10.0, 9.0), (60.0, 59.0), (15.0, 58.0)])
def test_the_level_of_an_e_process_is_where_its_likelihood_ratio_is_one_over_alpha(n, freedom):
    (level,) = e_process_levels(np.array([n]), np.array([freedom]), 0.05, 0.5)
    t = student.isf(level / 2, freedom)

    def weighed(size):
        return nct.pdf(t, freedom, size * np.sqrt(n)) * norm.pdf(size, scale=0.5)

    ratio = sum(quad(weighed, a, b, limit=200)[0] for a, b in ((-3, 0), (0, 3)))
    assert ratio / student.pdf(t, freedom) == pytest.approx(20, rel=1e-3)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"kind": "e_process", "looks": {"first": 5}}, "as a table"),
        ({"kind": "e_process", "looks": [5, 6], "spending": "pocock"}, "goes by alpha, scale"),
        ({"kind": "pocock", "looks": [2]}, "kind of stopping rule"),
        ({"looks": [2, 4]}, "says its kind"),
        ({"kind": "bayes_factor", "looks": [4, 2]}, "rising order"),
        ({"kind": "interval_width", "looks": [2, 4]}, "how narrow"),
        ({"kind": "alpha_spending", "looks": [2, 4], "spending": "even"}, "spending"),
        ({"kind": "alpha_spending", "looks": [2, 4], "alpha": "5%"}, "is a number"),
        ({"kind": "alpha_spending", "looks": [2, 4], "aplha": 0.05}, "alpha"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(told, rule):
    with pytest.raises(ValueError, match=rule):
        StoppingRule.of(told)
