import json
import tracemalloc
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import integrate, stats
from scipy.optimize import brentq
from scipy.special import expit

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make, session_stream
from knownminds.inference import (
    MEASURES,
    StoppingRule,
    SubjectMeasure,
    hierarchical,
    maximum_a_posteriori,
)
from knownminds.inference.groups.contrasts import contrasts_of
from knownminds.inference.measure import Dial, Values
from knownminds.validation.calibration.calibration import calibrate
from knownminds.validation.engine import group_fits
from knownminds.validation.engine.population import draw_subjects
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.power import operating_characteristics, sequential
from knownminds.validation.power.audit import read_audit
from knownminds.validation.power.dials import GroupDial, resolve_measure
from knownminds.validation.power.operating_characteristics import characteristics
from knownminds.validation.power.power_study import power, read_power
from knownminds.validation.power.sequential import sequential_design
from knownminds.validation.power.smallest_design import smallest_design

PLACE = "instrumental_learning"
DUAL = AGENTS["rescorla_wagner_dual"]
BIAS = MEASURES["optimism_bias"]
NOISE = 1.0  # standard deviation of what is read off one session
SPREAD = 0.6  # standard deviation of the measure between participants

# A share of R data sets misses its expectation p by sqrt(p (1 - p) / R). 3.5 of these are exceeded
# by chance in 5 of 10,000 comparisons; there are some 30 below.
ERRORS = 3.5


class Shift(SubjectMeasure):
    """kappa, seen through normal noise: estimates are exactly normal and power is known."""

    name = "shift"
    summary, source, environments = "kappa with noise", "none", (PLACE,)
    rational, violator = "random_responder", "rescorla_wagner_dual"
    dial = Dial({"kappa": 1.0})

    def __init__(self, null=0.0, sign=1.0):
        self.null, self.sign = null, sign

    def truth(self, model, theta):
        return theta[:, 3] if theta.shape[1] == 4 else np.full(len(theta), self.null)

    def values(self, known):
        return Values(self.sign * known.value, ("",) * len(known.value))


class SeenBias(Shift):
    """The optimism bias itself, whose dial does not move it in a straight line."""

    name, dial = "seen_bias", BIAS.dial

    def truth(self, model, theta):
        return BIAS.truth(model, theta)


@dataclass
class Known:
    """What stands in for the sessions of a batch: a value for each unit."""

    value: np.ndarray

    def trials(self, apart):
        return self


def seen(study, batch, subjects, first_session=0):
    """Let nobody play: what is true of each mind, and normal noise for each session."""
    cell = study.cells[batch.cell]
    measure = resolve_measure(cell.options["measure"], DUAL)
    rng = session_stream(study.seed, cell.data_key, batch.first, first_session)
    noise = NOISE * rng.standard_normal((cell.sessions, len(subjects.theta)))
    value = measure.truth(DUAL, subjects.theta) + noise
    return Known(value.ravel() if cell.subjects == 1 else value.mean(axis=0))


@pytest.fixture
def normal(monkeypatch):
    """Measures with normal estimates, through the whole path but for playing and fitting."""
    monkeypatch.setattr(operating_characteristics, "live", seen)
    for measure in (Shift(), SeenBias()):
        monkeypatch.setitem(MEASURES, measure.name, measure)


def shift(size, replicates=4000, seed=1, **given):
    return power(
        PLACE,
        {"shift": size},
        replicates=replicates,
        seed=seed,
        spread={"kappa": SPREAD},
        workers=1,
        **given,
    )


# Closed forms


def rejects(d, n, level=0.05):
    """Power of the two-sided t test of n normal numbers with mean d and sd 1."""
    critical, noncentrality = stats.t.ppf(1 - level / 2, n - 1), d * np.sqrt(n)
    return stats.nct.sf(critical, n - 1, noncentrality) + stats.nct.cdf(
        -critical, n - 1, noncentrality
    )


def welch_rejects(d, n):
    """Power of Welch's test of two samples of n with means 0 and d and sd 1 each.

    With B the share of the first sample's variance in their sum, B is Beta((n-1)/2, (n-1)/2), the
    statistic is noncentral t with 2n - 2 degrees of freedom whatever B, and the test takes it for
    t with (n - 1) / (B^2 + (1 - B)^2) degrees.
    """
    half, noncentrality = (n - 1) / 2, d * np.sqrt(n / 2)

    def given(b):
        critical = stats.t.ppf(0.975, (n - 1) / (b**2 + (1 - b) ** 2))
        beyond = stats.nct.sf(critical, 2 * n - 2, noncentrality)
        beyond += stats.nct.cdf(-critical, 2 * n - 2, noncentrality)
        return stats.beta.pdf(b, half, half) * beyond

    return integrate.quad(given, 0, 1)[0]


def rejecting(d, n):
    """Power, share of wrong signs, and mean |mean| / |d| of the rejecting t tests of n numbers.

    Mean and standard deviation are independent: given the latter the mean rejects beyond a limit,
    and the moments are those of the truncated normal.
    """
    error = 1 / np.sqrt(n)

    def moments(chi2):
        limit = stats.t.ppf(0.975, n - 1) * np.sqrt(chi2 / (n - 1)) * error
        above, below = (limit - d) / error, (-limit - d) / error
        up, down = stats.norm.sf(above), stats.norm.cdf(below)
        size = d * (up - down) + error * (stats.norm.pdf(above) + stats.norm.pdf(below))
        return np.array([up + down, down, size]) * stats.chi2.pdf(chi2, n - 1)

    total, wrong, size = integrate.quad_vec(moments, 0, stats.chi2.ppf(1 - 1e-12, n - 1))[0]
    return total, wrong / total, size / total / abs(d)


def within(score, expected, n):
    """Whether a share of n is as near its expectation as chance has it."""
    return abs(score.value - expected) < ERRORS * np.sqrt(expected * (1 - expected) / n)


def test_the_closed_forms_agree_with_each_other():
    assert rejecting(0.5, 10)[0] == pytest.approx(rejects(0.5, 10))
    assert rejects(0.0, 7) == pytest.approx(0.05)
    assert welch_rejects(0.0, 200) == pytest.approx(0.05, abs=1e-4)


# Power


@pytest.mark.parametrize("seed", [1, 2])
def test_power_over_the_sessions_of_one_mind_is_that_of_the_t_test(normal, seed):
    found = shift(0.7, sessions=[3, 8, 16], seed=seed)
    for design, n in zip(found.designs, [3, 8, 16], strict=True):
        assert within(design.rejected, rejects(0.7 / NOISE, n), 4000)
        assert design.unit == "repeat"
    # Negative control: the closed form of one session more or less is told apart.
    for n in (7, 9):
        assert not within(found.designs[1].rejected, rejects(0.7 / NOISE, n), 4000)


def test_power_over_participants_is_that_of_the_t_test(normal):
    found = shift(0.6, subjects=[6, 12], sessions=[1, 3], replicates=2000)
    sizes = [(6, 1), (6, 3), (12, 1), (12, 3)]
    for design, (n, sessions) in zip(found.designs, sizes, strict=True):
        sd = np.sqrt(SPREAD**2 + NOISE**2 / sessions)
        assert (design.cell.subjects, design.cell.sessions) == (n, sessions)
        assert within(design.rejected, rejects(0.6 / sd, n), 2000)
        assert design.unit == "participant"


def test_power_of_a_paired_comparison_is_that_of_the_t_test_of_differences(normal):
    found = shift(0.6, subjects=[6, 14], sessions=2, comparison="paired")
    for design, n in zip(found.designs, [6, 14], strict=True):
        # What differs between participants cancels; the noise of both conditions stays.
        assert within(design.rejected, rejects(0.6 / (NOISE * np.sqrt(2 / 2)), n), 4000)


@pytest.mark.parametrize("subjects", [1, 10])
def test_power_of_two_groups_is_that_of_welchs_test(normal, subjects):
    one = subjects == 1
    sessions = 10 if one else 1
    found = shift(1.2, subjects=subjects, sessions=sessions, comparison="between")
    sd = NOISE if one else np.sqrt(SPREAD**2 + NOISE**2)
    assert within(found.designs[0].rejected, welch_rejects(1.2 / sd, 10), 4000)
    assert not within(found.designs[0].rejected, rejects(1.2 / sd, 10), 4000)


@pytest.mark.parametrize("comparison", ["one", "between", "paired"])
def test_without_an_effect_five_percent_reject(normal, comparison):
    design = shift(0.0, subjects=8, comparison=comparison).designs[0]
    size = welch_rejects(0.0, 8) if comparison == "between" else 0.05
    assert within(design.rejected, size, 4000)
    assert np.isnan(design.sign_error.value)
    assert np.isnan(design.exaggeration.value)


@pytest.mark.parametrize("comparison", ["one", "between", "paired"])
def test_groups_have_the_effect_that_was_asked(normal, comparison):
    # Nonlinear in the parameters, so that the dial of a group is not that of its middle.
    found = power(
        PLACE,
        {"seen_bias": 0.3},
        subjects=20,
        comparison=comparison,
        replicates=1000,
        spread={"alpha_positive": 1.5, "alpha_negative": 0.5},
        truth={"alpha_positive": 0.2},
        workers=1,
    ).designs[0]
    assert found.effect == pytest.approx(0.3)
    assert abs(found.bias.value) < ERRORS * found.bias.error
    assert found.bias.error < 0.02


def test_intervals_bias_and_standard_error_are_those_of_normal_means(normal):
    n, sd = 8, NOISE
    design = shift(0.4, sessions=n).designs[0]
    assert within(design.coverage, 0.95, 4000)
    assert abs(design.bias.value) < ERRORS * design.bias.error
    assert abs(design.spread.value - sd / np.sqrt(n)) < ERRORS * design.spread.error
    assert design.spread.error == pytest.approx(sd / np.sqrt(n) / np.sqrt(2 * 4000), rel=0.05)
    # The mean of a sample's standard deviation is c sd, with this well-known c.
    c = stats.chi.mean(n - 1) / np.sqrt(n - 1)
    error = design.standard_error
    assert abs(error.value - c * sd / np.sqrt(n)) < ERRORS * error.error
    assert design.width.value == pytest.approx(2 * stats.t.ppf(0.975, n - 1) * error.value)


# Precision and equivalence


def equivalent(d, rope, n, null=0.0):
    """Chance that the 90% interval of n normal numbers of mean d lies within rope of the null.

    Given their standard deviation, the mean lies between two limits.
    """

    def given(chi2):
        half = stats.t.ppf(0.95, n - 1) * np.sqrt(chi2 / (n - 1) / n)
        ends = (np.array([null - rope + half, null + rope - half]) - d) * np.sqrt(n)
        return max(0.0, np.diff(stats.norm.cdf(ends))[0]) * stats.chi2.pdf(chi2, n - 1)

    return integrate.quad(given, 0, stats.chi2.ppf(1 - 1e-12, n - 1), limit=200)[0]


def test_precision_is_the_chance_of_a_small_sample_deviation(normal):
    for comparison, n in (("one", 12), ("paired", 12)):
        sizes = {"sessions": n} if comparison == "one" else {"subjects": n}
        design = shift(0.3, width=1.3, comparison=comparison, **sizes).designs[0]
        scale = NOISE * (1 if comparison == "one" else np.sqrt(2))
        largest = 1.3 * np.sqrt(n) / (2 * stats.t.ppf(0.975, n - 1) * scale)
        expected = stats.chi2.cdf((n - 1) * largest**2, n - 1)
        assert 0.05 < expected < 0.95
        assert within(design.rejected, expected, 4000)
        assert np.isnan(design.sign_error.value)


def test_a_measure_without_a_null_value_can_be_precise(normal, monkeypatch):
    monkeypatch.setitem(MEASURES, "shift", Shift(null=np.nan))
    with pytest.raises(ValueError, match="no null value"):
        shift(0.3, sessions=8, replicates=20)
    assert shift(0.3, sessions=8, replicates=200, width=2.0).designs[0].rejected.value > 0.5


def test_equivalence_is_that_of_two_one_sided_tests(normal, monkeypatch):
    sizes = {"rope": 0.8, "sessions": 16}
    inside, edge = shift(0.1, **sizes), shift(0.8, **sizes)
    assert within(inside.designs[0].rejected, equivalent(0.1, 0.8, 16), 4000)
    # At the edge of the region, where it is just no equivalence, 5% are called that.
    assert equivalent(0.8, 0.8, 16) == pytest.approx(0.05, abs=1e-3)
    assert within(edge.designs[0].rejected, 0.05, 4000)
    assert inside.to_dict()["rope"] == 0.8
    assert str(inside).startswith("equivalence for shift = 0.1")
    monkeypatch.setitem(MEASURES, "shift", Shift(null=0.5))
    moved = shift(0.6, **sizes).designs[0]
    assert within(moved.rejected, equivalent(0.6, 0.8, 16, null=0.5), 4000)


def test_two_groups_are_equivalent_as_often_as_their_difference_is_small(normal):
    design = shift(0.0, sessions=40, comparison="between", rope=0.7).designs[0]
    # With 40 of each the t quantile is 1.665 and the error hardly varies: sqrt(2 / 40) = .2236.
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 40_000, 40))
    error = np.sqrt(a.var(axis=1, ddof=1) / 40 + b.var(axis=1, ddof=1) / 40)
    half = stats.t.ppf(0.95, 77) * error
    off = np.abs(b.mean(axis=1) - a.mean(axis=1))
    assert within(design.rejected, np.mean(off + half < 0.7), 4000)


def test_the_smallest_precise_design_is_sought(normal):
    found = smallest_design(PLACE, {"shift": 0.0}, width=1.0, seed=3, replicates=400, workers=1)
    chance = [
        stats.chi2.cdf((n - 1) * n / (2 * stats.t.ppf(0.975, n - 1)) ** 2, n - 1)
        for n in range(2, 60)
    ]
    exact = 2 + int(np.searchsorted(chance, 0.8))
    assert found.confirmed
    assert found.low - 2 <= exact <= found.high + 2
    assert "smallest number for 80% precision" in str(found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"width": 0.3, "rope": 0.1}, "got --width and --rope"),
        ({"width": 0.0}, "--width is a number above 0; got 0"),
        ({"rope": -1.0}, "--rope is a number above 0; got -1"),
    ],
)
def test_what_can_be_no_aim_is_refused(normal, given, said):
    with pytest.raises(ValueError, match=said):
        shift(0.3, sessions=8, replicates=20, **given)


# Signs and sizes of what is found


@pytest.mark.parametrize("size", [0.3, -0.3])
def test_wrong_signs_and_exaggeration_are_those_of_the_truncated_t_test(normal, size):
    replicates = 12_000
    design = shift(size, sessions=5, replicates=replicates).designs[0]
    total, wrong, exaggeration = rejecting(abs(size), 5)
    assert within(design.rejected, total, replicates)
    assert within(design.sign_error, wrong, total * replicates)
    assert abs(design.exaggeration.value - exaggeration) < ERRORS * design.exaggeration.error
    assert design.exaggeration.value > 2
    assert design.sign_error.value > 0.02


def test_an_effect_of_the_opposite_sign_is_counted_as_a_wrong_sign(normal, monkeypatch):
    monkeypatch.setitem(MEASURES, "shift", Shift(sign=-1.0))
    design = shift(1.0, sessions=16, replicates=400).designs[0]
    assert design.rejected.value > 0.9
    assert design.sign_error.value == 1.0
    assert design.coverage.value < 0.05


def test_effects_are_counted_from_the_null_value(normal, monkeypatch):
    monkeypatch.setitem(MEASURES, "shift", Shift(null=0.5))
    found = [shift(size, sessions=5, replicates=12_000).designs[0] for size in (0.2, 0.5)]
    total, wrong, exaggeration = rejecting(0.3, 5)
    assert within(found[0].rejected, total, 12_000)
    assert within(found[0].sign_error, wrong, total * 12_000)
    assert abs(found[0].exaggeration.value - exaggeration) < ERRORS * found[0].exaggeration.error
    assert within(found[1].rejected, 0.05, 12_000)
    assert np.isnan(found[1].sign_error.value)


def test_assurance_is_power_averaged_over_the_prior_of_the_effect(normal):
    found = shift(0.6, sessions=10, effect_sd=0.5)
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    effects, weights = 0.6 + 0.5 * nodes, weights / weights.sum()
    ways = [rejecting(abs(effect), 10) for effect in effects]
    expected = float(weights @ [total for total, _, _ in ways])
    design = found.designs[0]
    assert within(design.rejected, expected, 4000)
    assert not within(design.rejected, rejects(0.6, 10), 4000)  # power at the mean is another
    wrong = float(weights @ [total * share for total, share, _ in ways]) / expected
    assert within(design.sign_error, wrong, expected * 4000)
    # Estimates and effects are averaged apart: the mean of their ratio is infinite, as 1 / effect.
    sizes = [
        (total * times * abs(e), total * abs(e))
        for (total, _, times), e in zip(ways, effects, strict=True)
    ]
    exaggeration = np.divide(*(weights @ np.array(sizes)))
    assert abs(design.exaggeration.value - exaggeration) < ERRORS * design.exaggeration.error
    assert abs(design.effect - 0.6) < ERRORS * 0.5 / np.sqrt(4000)
    assert abs(design.bias.value) < ERRORS * design.bias.error  # of each data set's own effect
    assert "assurance" in str(found)
    assert found.to_dict()["effect_sd"] == 0.5


# What is tested is what was played


def score_test(values):
    """Return the test of a mean between -1 and 1 whose error goes by the root of 1 - mean**2."""
    mean, error = values.mean(), stats.sem(values)

    def apart(mu):
        return abs(mean - mu) / (error * np.sqrt((1 - mu**2) / (1 - mean**2)))

    def interval(mass):
        quantile = stats.t.ppf(0.5 + mass / 2, len(values) - 1)
        inside = 1 - 1e-12
        return tuple(
            brentq(lambda mu: apart(mu) - quantile, *span, xtol=1e-13)
            for span in ((-inside, mean), (mean, inside))
        )

    p_value = 2 * stats.t.sf(apart(0.0), len(values) - 1)
    return SimpleNamespace(pvalue=p_value, confidence_interval=interval, mean=mean)


def by_hand(study, replicate, comparison):
    """Return the test of one data set, from addresses, and parts that are tested elsewhere."""
    cell = study.cells[0]
    mean, sd = (
        np.array([cell.law[key][name] for name in DUAL.parameters.names])
        for key in ("group_mean", "group_sd")
    )
    dial = GroupDial(BIAS, DUAL, mean, sd)
    origin = dial.rest if comparison != "one" else 0.0
    turn = dial.turn_to(np.array([origin + cell.law["effect"]]))[0] * dial.direction
    second = replace(study, cells=(replace(cell, law={**cell.law, "condition": "second"}),))

    def values(of, turned, first_session=0):
        subjects = draw_subjects(of, Batch(0, replicate, replicate + 1)).theta
        z = DUAL.parameters.unconstrain(subjects) + (turn if turned else 0.0)
        frames = []
        for session in range(first_session, first_session + cell.sessions):
            address = (of.cells[0].data_key, replicate, session)
            theta = DUAL.parameters.constrain(z)
            frame = simulate(DUAL, theta, cell.make(), of.seed, address=address).to_frame()
            who = {"subject": str(session)} if cell.subjects == 1 else {"session": str(session)}
            frames.append(frame.assign(**who))
        fit = maximum_a_posteriori(DUAL, Trials.from_frame(pd.concat(frames)), workers=1)
        assert len(fit.estimate) == max(cell.subjects, cell.sessions)
        return fit.estimate[:, 0] - fit.estimate[:, 1]

    if comparison == "one":
        return score_test(values(study, True))
    if comparison == "paired":
        return stats.ttest_rel(values(study, True, cell.sessions), values(study, False))
    return stats.ttest_ind(values(second, True), values(study, False), equal_var=False)


@pytest.mark.parametrize(
    ("comparison", "subjects", "sessions"),
    [("one", 1, 4), ("one", 4, 2), ("between", 1, 3), ("between", 4, 1), ("paired", 4, 2)],
)
def test_each_data_set_is_tested_as_one_would_by_hand(tmp_path, comparison, subjects, sessions):
    power(
        PLACE,
        {"optimism_bias": 0.2},
        comparison=comparison,
        subjects=subjects,
        sessions=sessions,
        trials=24,
        replicates=3,
        seed=5,
        workers=1,
        out=tmp_path,
    )
    rows = rows_of(tmp_path)
    for replicate in range(3):
        expected = by_hand(rows.study, replicate, comparison)
        row = rows.frame().loc[replicate]
        assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-6)
        low, high = expected.confidence_interval(0.95)
        assert (row["low"], row["high"]) == (pytest.approx(low), pytest.approx(high))
        assert row["estimate"] == pytest.approx(getattr(expected, "mean", (low + high) / 2))


def rows_of(folder):
    study, identity = Study.read(folder)
    return Rows(study, folder, identity["versions"])


def test_minds_that_learn_alike_from_both_seldom_show_an_optimism_bias():
    # 10 sessions of 24 trials, 1,000 data sets: .05 with a standard error of .007. The truth is a
    # little off: estimates are pulled to the prior, and from bad surprises more is learned.
    found = power(PLACE, {"optimism_bias": 0.0}, sessions=10, trials=24, replicates=1000, workers=1)
    design = found.designs[0]
    assert abs(design.rejected.value - 0.05) < 0.01 + ERRORS * 0.007
    turned = power(PLACE, {"optimism_bias": 0.7}, sessions=10, trials=24, replicates=200, workers=1)
    assert turned.designs[0].rejected.value > 0.3
    assert turned.designs[0].sign_error.value == 0.0


# Failures


def test_planted_failures_are_counted_and_change_nothing_else(tmp_path, monkeypatch):
    given = {"sessions": 4, "trials": 24, "replicates": 200, "seed": 3, "workers": 1}
    power(PLACE, {"optimism_bias": 0.6}, **given, out=tmp_path / "sound")
    sound = rows_of(tmp_path / "sound").frame()
    planted = np.sort(session_stream(9).choice(200, 10, replace=False))  # 5%
    real = operating_characteristics.live

    def failing(study, batch, subjects, first_session=0):
        if np.isin(np.arange(batch.first, batch.last), planted).any():
            raise FloatingPointError("planted")
        return real(study, batch, subjects, first_session)

    monkeypatch.setattr(operating_characteristics, "live", failing)
    broken = power(PLACE, {"optimism_bias": 0.6}, **given, out=tmp_path / "broken").designs[0]
    rows = rows_of(tmp_path / "broken").frame()
    failed = rows["status"] == "failed"
    assert np.flatnonzero(failed).tolist() == planted.tolist()
    assert (rows.loc[failed, "message"] == "planted").all()
    columns = [name for name in sound if name not in ("seconds", "status", "message")]
    kept = (rows.loc[~failed, columns], sound.loc[~failed, columns])
    pd.testing.assert_frame_equal(*kept, check_exact=True, check_dtype=False)
    assert (broken.attempted, broken.failed, broken.messages) == (200, 10, {"planted": 10})
    # Failures are misses in the power, and are absent from what only estimates can tell.
    rest = sound.loc[~failed]
    assert broken.rejected.value == pytest.approx((rest["p_value"] < 0.05).sum() / 200)
    assert broken.bias.value == pytest.approx((rest["estimate"] - 0.6).mean())
    assert broken.width.value == pytest.approx((rest["high"] - rest["low"]).mean())


def test_units_without_a_value_are_excluded_and_data_sets_without_two_fail(normal, monkeypatch):
    class Gaps(Shift):
        def values(self, known):
            value = known.value.copy()
            value[0::6] = np.nan  # the first session of every other data set, ...
            value[1::6] = np.nan  # ... and the second of all of these: one is left
            value[3::6] = np.nan  # one of the others, two are left
            return Values(value, ("",) * len(value))

    # Three subjects to a data set: the values of a batch lie data set after data set.
    monkeypatch.setitem(MEASURES, "shift", Gaps())
    found = shift(0.5, subjects=3, replicates=340)
    design = found.designs[0]
    assert (design.attempted, design.failed, design.excluded) == (340, 170, 170)
    assert design.messages == {"the sample has no spread, or too few values": 170}
    assert abs(design.rejected.value - rejects(0.5 / np.hypot(SPREAD, NOISE), 2) / 2) < 0.05
    assert "170 of 340 data sets failed and count as misses: 170 x the sample" in str(found)


# Groups


def sampled_groups(monkeypatch, centres, draws):
    """Let posteriors of groups be given: normal around these centres, one for each condition."""

    def sample(data, fixed, fit_lapse, seed, key, replicate, condition, **running):
        rng = session_stream(seed, replicate, condition)
        dims, size = ("chain", "draw", "parameter"), (2, draws[condition] // 2, 4)
        variables = {
            "group_mean": (dims, rng.normal(centres[condition], 0.1, size)),
            "group_sd": (dims, np.abs(rng.normal(0.8, 0.2, size))),
        }
        coords = {"parameter": list(DUAL.parameters.names)}
        return SimpleNamespace(
            parameters=DUAL.parameters,
            posterior=xr.Dataset(variables, coords=coords),
            reasons=("R-hat 1.2",) * (replicate == 1),
        )

    monkeypatch.setattr(operating_characteristics, "sample_group", sample)


def mean_bias(centre):
    """Mean optimism bias of a group with this mean and spread .8, by brute force."""
    z = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    rates = [expit(centre[k] + np.sqrt(0.8**2 + 0.2**2 + 0.1**2) * z).mean() for k in (0, 1)]
    return rates[0] - rates[1]


@pytest.mark.parametrize("comparison", ["one", "between"])
def test_a_hierarchical_test_is_of_the_mean_over_the_group(monkeypatch, tmp_path, comparison):
    # Groups are sampled apart, and the second needed more draws than the first.
    centres, draws = [(0.4, -1.2, 1.0, 0.0), (1.0, -1.5, 1.0, 0.0)], [1000, 4000]
    sampled_groups(monkeypatch, centres, draws)
    given = {"subjects": 3, "trials": 12, "estimator": "hierarchical", "workers": 1}
    found = power(
        PLACE,
        {"optimism_bias": 0.3},
        comparison=comparison,
        replicates=40,
        out=tmp_path,
        **given,
    ).designs[0]
    rows = rows_of(tmp_path).frame()
    expected = mean_bias(centres[0])
    if comparison == "between":
        expected = mean_bias(centres[1]) - expected
    # The spread is drawn apart from the mean, so that the law is a mixture and not quite normal:
    # the brute force is good to .002. 40 means of 1,000 draws with an sd of .04 are good to .0002.
    assert found.bias.value == pytest.approx(expected - 0.3, abs=0.003)
    assert ((rows["low"] > 0) == (rows["p_value"] < 0.05)).all()  # the interval is the test
    assert found.rejected.value == (rows["low"] > 0).mean()
    width = rows["high"] - rows["low"]
    assert (width / rows["standard_error"]).mean() == pytest.approx(2 * 1.96, rel=0.05)
    assert found.doubts == {"R-hat 1.2; R-hat 1.2" if comparison == "between" else "R-hat 1.2": 1}
    assert found.failed == 0  # not converged is counted and told, and has an estimate


def test_group_studies_compile_once_and_see_which_way_an_effect_goes(monkeypatch, tmp_path):
    """The slow one: PyMC compiles for half a minute, once for power and calibration together."""
    from knownminds.inference import GroupModel

    built = []
    build = GroupModel.build

    def counted(*args, **kwargs):
        built.append(args)
        return build(*args, **kwargs)

    monkeypatch.setattr(GroupModel, "build", counted)
    group_fits._COMPILED.clear()
    given = {"subjects": 6, "trials": 48, "replicates": 2, "workers": 1}
    estimates = {}
    for size in (0.6, -0.6):
        out = tmp_path / str(size)
        effect = {"optimism_bias": size}
        found = power(PLACE, effect, estimator="hierarchical", out=out, **given)
        rows = rows_of(out).frame()
        assert found.designs[0].failed == 0
        assert (rows["n"] == 6).all()
        assert ((rows["low"] > -1) & (rows["high"] < 1)).all()
        assert ((rows["low"] < rows["estimate"]) & (rows["estimate"] < rows["high"])).all()
        estimates[size] = rows[["estimate", "standard_error"]].mean()
    # The difference of two means of two has the error of one estimate, about .2; effects of .6
    # and -.6, pulled to the prior by half, are 3 errors apart.
    difference = estimates[0.6]["estimate"] - estimates[-0.6]["estimate"]
    assert difference > 1.5 * estimates[0.6]["standard_error"]
    calibrated = calibrate(PLACE, DUAL, method="hierarchical", **given)
    assert calibrated.failed == 0
    assert len(calibrated.quantities) == 3 * 4 + 1
    assert {quantity.n for quantity in calibrated.quantities.values()} == {2}
    assert len(built) == 1


# Refusals


REFUSED = [
    ({"effect": {"optimism": 0.1}}, "There is no measure, or .*Nearest: optimism_bias"),
    ({"effect": {}}, "An effect is one measure and its size; got {}"),
    ({"effect": {"optimism_bias": 0.1, "beta": 1.0}}, "An effect is one measure and its size"),
    ({"effect": {"optimism_bias": np.nan}}, "size of an effect is a number; got optimism_bias"),
    ({"effect": {"optimism_bias": 1.2}}, "lies between -1 and 1; got 1.2. Choose a smaller"),
    ({"effect": {"beta": 3.0}}, "beta has no null value .* compare two conditions"),
    ({"environment": "instrumental"}, "There is no environment named .*instrumental_learning"),
    ({"model": "rescorla_wagner_dul"}, "There is no model named .*rescorla_wagner_dual"),
    ({"model": "rescorla_wagner"}, "No dial of rescorla_wagner moves optimism_bias"),
    ({"comparison": "betwen"}, "There is no comparison named 'betwen'. Nearest: between"),
    ({"estimator": "two-stage"}, "There is no estimator named 'two-stage'. Nearest: two_stage"),
    ({"subjects": 1, "sessions": 1}, "A test needs 2 units: several sessions of one mind, or"),
    ({"subjects": 0}, "Subjects and sessions are at least 1; got 0, 4"),
    ({"sessions": []}, "A design needs a number of sessions; got none"),
    ({"trials": 25}, "have a multiple of 4 trials; got 25"),
    ({"comparison": "paired"}, "one mind's sessions form none. Use several subjects, or"),
    ({"effect_sd": -0.1}, "effect_sd is a number from 0 on; got -0.1"),
    ({"effect_sd": np.nan}, "effect_sd is a number from 0 on; got nan"),
    ({"truth": {"alpha_positive": 1.5}}, r"alpha_positive lies in \(0, 1\); got 1.5. Choose"),
    ({"truth": {"alpha_positive": 0.0}}, r"inside \(0, 1\), not at its end; got alpha_positive"),
    ({"truth": {"bet": 1.0}}, "got 'bet'. Did you mean beta"),
    ({"spread": {"beta": -1.0}}, "The spread of beta is a number from 0 on; got -1"),
    ({"spread": {"beta": np.inf}}, "The spread of beta is a number from 0 on; got inf"),
    ({"spread": {"bet": 1.0}}, "got 'bet'. Did you mean beta"),
    ({"replicates": 0}, "The number of replicates is at least 1; got 0"),
    ({"seed": -1}, "Seeds are whole numbers from 0 on; got -1"),
    ({"workers": 0}, "The number of workers is at least 1; got 0"),
]


@pytest.mark.parametrize(("wrong", "sentence"), REFUSED)
def test_misuse_is_refused_in_a_sentence_and_leaves_no_folder(tmp_path, wrong, sentence):
    asked = {"environment": PLACE, "effect": {"optimism_bias": 0.1}, "sessions": 4, "workers": 1}
    with pytest.raises(ValueError, match=sentence):
        power(**asked | wrong, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("settings", "trials", "told"),
    [
        ({"win_probability": [[0.0, 0.0]]}, None, r"optimism_bias \(alpha_positive: not at all"),
        ({"win_probability": [[1.0, 1.0]]}, None, r"optimism_bias \(alpha_negative: not at all"),
        ({}, 4, "4 trials cannot .* not at all"),  # who meets each casino once shows no learning
        ({}, [24, 4], "Sessions of 4 trials cannot identify optimism_bias"),
    ],
)
def test_designs_that_cannot_tell_the_effect_are_refused(tmp_path, settings, trials, told):
    given = {"sessions": 4, "trials": trials, "out": tmp_path / "new"}
    sentence = f"{told}.*Change the experiment's settings, or look for another effect"
    with pytest.raises(ValueError, match=sentence):
        power(make(PLACE, **settings), {"optimism_bias": 0.1}, **given)
    assert not (tmp_path / "new").exists()


def test_what_one_effect_cannot_tell_another_can():
    # Without losses nothing is known of alpha_negative; that is no reason to refuse beta.
    place = make(PLACE, win_probability=[[0.2, 1.0]])
    given = {"sessions": 3, "trials": 24, "replicates": 2, "workers": 1}
    found = power(place, {"beta": 1.0}, comparison="between", **given)
    assert found.designs[0].attempted == 2


def test_a_measure_that_is_no_contrast_has_no_hierarchical_test(normal):
    with pytest.raises(ValueError, match=r"shift is none\. Use two_stage"):
        shift(0.5, sessions=4, estimator="hierarchical")


# Folders


def test_a_study_is_read_back_and_resumed_exactly(tmp_path, normal):
    given = {"sessions": [40, 80], "comparison": "between", "replicates": 60}
    found = shift(0.3, **given, out=tmp_path)
    assert read_power(tmp_path).to_json() == found.to_json()
    parts = sorted((tmp_path / "parts").iterdir())
    ages = {part.name: part.stat().st_mtime_ns for part in parts}
    for part in parts[::2]:
        part.unlink()
    again = shift(0.3, **given, out=tmp_path)
    for name, age in ages.items():
        kept = (tmp_path / "parts" / name).stat().st_mtime_ns == age
        assert kept == (tmp_path / "parts" / name in parts[1::2])
    a, b = found.to_dict(), again.to_dict()
    assert a["designs"] == b["designs"]
    with pytest.raises(ValueError, match=r"A study of audit is asked for; .* one of power"):
        read_audit(tmp_path)


def test_the_outcome_is_a_table_and_json(normal):
    found = shift(0.5, subjects=[4, 8], sessions=[1, 2], trials=[24, 48], replicates=20)
    frame = found.to_frame()
    sizes = frame[["subjects", "sessions", "trials"]].to_numpy().tolist()
    assert sizes == [[n, k, t] for n in (4, 8) for k in (1, 2) for t in (24, 48)]
    told = json.loads(found.to_json())
    assert told["measure"] == "shift"
    assert told["effect"] == 0.5
    assert told["attempted"] == 160
    assert told["designs"][0]["power"] == found.designs[0].rejected.value
    assert "participant" in told["sampling_unit"]
    table = [line for line in str(found).splitlines() if "  " in line]
    assert [line.split("  ")[0] for line in table[1:9]] == [f"{n} x {k} x {t}" for n, k, t in sizes]
    assert len(table) % 9 == 0  # a head and a line per design, in blocks of 80 columns
    assert max(map(len, table)) <= 80


def test_two_conditions_of_the_same_subjects_are_one_group_with_changes(tmp_path):
    """The hierarchical test of pairs against a fit with a formula to the same trials."""
    effect = {"optimism_bias": 0.5}
    given = {"subjects": 8, "trials": 24, "replicates": 1, "seed": 5, "workers": 1}
    asked = {"comparison": "paired", "estimator": "hierarchical", "model": "rescorla_wagner_dual"}
    power(PLACE, effect, out=tmp_path, **asked, **given)
    (row,) = rows_of(tmp_path).frame().to_dict("records")
    assert (row["status"], row["n"]) == ("ok", 8)
    study, _ = Study.read(tmp_path)
    _, lived = operating_characteristics.conditions_lived(study, Batch(0, 0, 1), BIAS)
    first, second = (one.trials().frame for one in lived)
    frame = pd.concat([first, second.assign(session="1")], ignore_index=True)
    trials = Trials.from_frame(frame, environment=lived[0].environment)
    formula = [
        f"{name} ~ session + (session | subject)" for name in ("alpha_positive", "alpha_negative")
    ]
    whole = hierarchical(DUAL, trials, formula=formula, seed=1, cores=1)
    up, down = (one for one in contrasts_of(whole))
    apart = up.draws - down.draws
    # each mean is good to an error of sd / 400 ** .5 or better: five errors of their difference
    assert abs(row["estimate"] - apart.mean()) < 5 * apart.std() * (2 / 400) ** 0.5
    assert row["standard_error"] == pytest.approx(apart.std(), rel=0.2)


@pytest.mark.parametrize("kind", ["power", "rule"])
def test_what_is_gathered_of_many_data_sets_takes_no_more_memory(normal, tmp_path, kind):
    if kind == "power":
        study = shift(0.7, sessions=4, replicates=20).study
        gather = characteristics
    else:
        rule = StoppingRule("alpha_spending", (4, 8))
        study = sequential_design(PLACE, {"shift": 0.7}, stop=rule, replicates=20, workers=1).study
        gather = _gathered_by(rule)

    def peak(parts):
        rng = np.random.default_rng(1)

        def tables(cell):
            for _ in range(parts):
                value = rng.standard_normal((1000, 3))
                yield pd.DataFrame(
                    {"effect": 0.7, "estimate": value[:, 0], "standard_error": 0.3, "seconds": 0.1}
                    | {"low": value[:, 0] - 0.6, "high": value[:, 0] + 0.6, "units": 4.0, "look": 0}
                    | {"p_value": 0.01, "found": 1, "at_the_end": True, "excluded": 0}
                    | {"status": "ok", "message": ""},
                    index=range(1000),
                )

        told = SimpleNamespace(
            cells=study.cells, units=lambda cell: 1000 * parts, question=study.question
        )
        tracemalloc.start()
        found = gather(SimpleNamespace(study=told, tables=tables), 0)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.attempted == 1000 * parts
        assert found.rejected.value == 1.0
        return most

    peak(1)  # what is loaded once
    # 36,000 more pairs of estimate and effect are 576 kB.
    assert peak(40) - peak(4) < 100_000


def _gathered_by(rule):
    return lambda rows, cell: sequential._gathered(rows, cell, rule)
