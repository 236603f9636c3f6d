from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from power.normal import ERRORS, PLACE, SPREAD, Shift, designs, rejects, seen, within
from scipy import integrate, stats
from scipy.optimize import brentq
from scipy.special import expit

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make, session_stream
from knownminds.inference import MEASURES, Estimate, ModelData, Unknowns, maximum_a_posteriori
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.groups.marginal import marginal
from knownminds.validation.engine.drawn_groups import design_of_sessions
from knownminds.validation.engine.population import draw_subjects
from knownminds.validation.engine.study import Batch, Rows
from knownminds.validation.power import operating_characteristics
from knownminds.validation.power.dials import GroupDial
from knownminds.validation.power.power import power

DUAL = AGENTS["rescorla_wagner_dual"]
BIAS = MEASURES["optimism_bias"]
N = 2500  # data sets


@pytest.fixture
def normal(monkeypatch):
    """Measures with normal estimates, through the whole path but for playing and fitting."""
    monkeypatch.setattr(operating_characteristics, "live", seen)
    monkeypatch.setitem(MEASURES, "shift", Shift())


def shift(size, replicates=N, seed=1, **given):
    given |= {"replicates": replicates, "seed": seed, "spread": {"kappa": SPREAD}, "workers": 1}
    return power(PLACE, {"shift": size}, **given)


# Closed forms


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


def test_the_closed_forms_agree_with_each_other():
    assert rejecting(0.5, 10)[0] == pytest.approx(rejects(0.5, 10))
    assert rejects(0.0, 7) == pytest.approx(0.05)
    assert welch_rejects(0.0, 200) == pytest.approx(0.05, abs=1e-4)


# Power


def test_power_over_the_sessions_of_one_mind_is_that_of_the_t_test(normal):
    found = shift(0.7, sessions=[3, 8])
    for design, n in zip(designs(found), [3, 8], strict=True):
        assert within(design["power"], rejects(0.7, n), N)
    # Negative control: the closed form of one session more or less is told apart.
    for n in (7, 9):
        assert not within(designs(found)[1]["power"], rejects(0.7, n), N)


def test_power_of_a_paired_comparison_is_that_of_the_t_test_of_differences(normal):
    found = shift(0.6, subjects=[6], sessions=2, comparison="paired")
    for design, n in zip(designs(found), [6], strict=True):
        # What differs between participants cancels; the noise of both conditions stays.
        assert within(design["power"], rejects(0.6 / (np.sqrt(2 / 2)), n), N)


@pytest.mark.parametrize("subjects", [1, 10])
def test_power_of_two_groups_is_that_of_welchs_test(normal, subjects):
    one = subjects == 1
    sessions = 10 if one else 1
    found = shift(1.2, subjects=subjects, sessions=sessions, comparison="between")
    sd = 1.0 if one else np.hypot(SPREAD, 1.0)
    assert within(designs(found)[0]["power"], welch_rejects(1.2 / sd, 10), N)
    assert not within(designs(found)[0]["power"], rejects(1.2 / sd, 10), N)


@pytest.mark.parametrize("comparison", ["one", "between", "paired"])
def test_without_an_effect_five_percent_reject(normal, comparison):
    (design,) = designs(shift(0.0, subjects=8, comparison=comparison))
    size = welch_rejects(0.0, 8) if comparison == "between" else 0.05
    assert within(design["power"], size, N)
    assert np.isnan(design["wrong sign"].value)
    assert np.isnan(design["exaggeration"].value)


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
        (design,) = designs(shift(0.3, width=1.3, comparison=comparison, **sizes))
        scale = 1.0 if comparison == "one" else np.sqrt(2)
        largest = 1.3 * np.sqrt(n) / (2 * stats.t.ppf(0.975, n - 1) * scale)
        expected = stats.chi2.cdf((n - 1) * largest**2, n - 1)
        assert 0.05 < expected < 0.95
        assert within(design["precision"], expected, N)
        assert "wrong sign" not in design


@pytest.mark.long
def test_equivalence_is_that_of_two_one_sided_tests(normal, monkeypatch):
    sizes = {"rope": 0.8, "sessions": 16}
    inside, edge = shift(0.1, **sizes), shift(0.8, **sizes)
    assert within(designs(inside)[0]["equivalence"], equivalent(0.1, 0.8, 16), N)
    # At the edge of the region, where it is just no equivalence, 5% are called that.
    assert equivalent(0.8, 0.8, 16) == pytest.approx(0.05, abs=1e-3)
    assert within(designs(edge)[0]["equivalence"], 0.05, N)
    monkeypatch.setitem(MEASURES, "shift", Shift(null=0.5))
    (moved,) = designs(shift(0.6, **sizes))
    assert within(moved["equivalence"], equivalent(0.6, 0.8, 16, null=0.5), N)


# Signs and sizes of what is found


def test_wrong_signs_and_exaggeration_are_those_of_the_truncated_t_test(normal):
    replicates = 6000
    (design,) = designs(shift(-0.3, sessions=5, replicates=replicates))
    total, wrong, exaggeration = rejecting(0.3, 5)
    assert within(design["power"], total, replicates)
    assert within(design["wrong sign"], wrong, total * replicates)
    assert abs(design["exaggeration"].value - exaggeration) < ERRORS * design["exaggeration"].error
    assert design["exaggeration"].value > 2
    assert design["wrong sign"].value > 0.02


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


def score_test_of_one_agent(frame, sessions):
    """Return the test of one fit to all sessions, with the jackknife's error (Tukey 1958)."""

    def bias(some):
        fit = maximum_a_posteriori(DUAL, Trials.from_frame(some), workers=1)
        return fit.estimate[0, 0] - fit.estimate[0, 1]

    without = [bias(frame[frame["session"] != str(s)]) for s in range(sessions)]
    error = (sessions - 1) * np.std(without, ddof=1) / np.sqrt(sessions)
    apart = np.arange(sessions) - (sessions - 1) / 2  # a sample with this mean and this error
    return score_test(bias(frame) + error * np.sqrt(sessions) * apart / apart.std(ddof=1))


def by_hand(study, replicate, comparison):
    """Return the test of one data set, from addresses, and parts that are tested elsewhere."""
    cell = study.cells[0]
    mean, sd = (
        np.array([of[name] for name in DUAL.parameters.names])
        for of in (cell.population.group_mean, cell.population.group_sd)
    )
    dial = GroupDial(BIAS, DUAL, mean, sd)
    origin = dial.rest if comparison != "one" else 0.0
    turn = dial.turn_to(np.array([origin + cell.population.effect]))[0] * dial.direction
    other = replace(cell.population, condition="second")
    second = replace(study, cells=(replace(cell, population=other),))

    def played(of, turned, first_session=0):
        subjects = draw_subjects(of, Batch(0, replicate, replicate + 1)).theta
        z = DUAL.parameters.unconstrain(subjects) + (turn if turned else 0.0)
        frames = []
        for session in range(first_session, first_session + cell.sessions):
            address = (of.cells[0].data_key, replicate, session)
            theta = DUAL.parameters.constrain(z)
            frame = simulate(DUAL, theta, cell.make(), of.seed, address=address).to_frame()
            frames.append(frame.assign(session=str(session)))
        return pd.concat(frames)

    def of_group(frame, design=None, share=None):
        data = ModelData.read(DUAL, Trials.from_frame(frame))
        plain = GroupDesign.plain(DUAL.parameters, data.subjects)
        group = marginal(data, Unknowns.of(DUAL), design or plain)
        return np.array([*group.mean_of(BIAS.contrast, share), group.freedom])

    if comparison == "one":
        return score_test_of_one_agent(played(study, True), cell.sessions)
    base = played(study, False)
    if comparison == "paired":
        after = played(study, True, cell.sessions)
        after["subject"] = (after["subject"].astype(int) + cell.subjects).astype(str)
        texts = [f"{name} ~ session + (session | subject)" for name in BIAS.contrast]
        design = design_of_sessions(texts, DUAL, DUAL.parameters, cell.subjects, 2, False)
        share = np.repeat([-1 / cell.subjects, 1 / cell.subjects], cell.subjects)
        mean, error, freedom = of_group(pd.concat([base, after]), design, share)
    else:
        (a, error_a, n_a), (b, error_b, n_b) = of_group(base), of_group(played(second, True))
        mean, error = b - a, np.hypot(error_a, error_b)
        freedom = error**4 / (error_a**4 / n_a + error_b**4 / n_b)  # Welch 1947
    law = stats.t(freedom, mean, error)
    return SimpleNamespace(
        pvalue=2 * min(law.cdf(0), law.sf(0)), confidence_interval=law.interval, mean=mean
    )


@pytest.mark.parametrize(
    ("comparison", "subjects", "sessions"), [("one", 1, 4), ("between", 6, 1), ("paired", 6, 2)]
)
def test_each_data_set_is_tested_as_one_would_by_hand(tmp_path, comparison, subjects, sessions):
    given = {"comparison": comparison, "subjects": subjects, "sessions": sessions}
    given |= {"trials": 24 if subjects == 1 else 96}
    given |= {"replicates": 3, "seed": 5, "workers": 1, "out": tmp_path}
    power(PLACE, {"optimism_bias": 0.2}, **given)
    rows = rows_of(tmp_path)
    for replicate in range(3):
        expected = by_hand(rows.study, replicate, comparison)
        row = rows.frame.loc[replicate]
        assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-6)
        low, high = expected.confidence_interval(0.95)
        assert (row["low"], row["high"]) == (pytest.approx(low), pytest.approx(high))
        assert row["estimate"] == pytest.approx(expected.mean)
        assert row.get("sampled") != 1


def test_a_group_whose_points_are_worth_too_little_is_sampled_and_counted(monkeypatch, tmp_path):
    sampled_groups(monkeypatch, [(0.4, -1.2, 1.0, 0.0)], [400])
    kept = operating_characteristics.marginal

    def marginal_of(data, *about):
        found = kept(data, *about)
        poor = len(rows_seen) == 1
        rows_seen.append(found)
        return replace(found, message="64 points of a subject are worth 2.1") if poor else found

    rows_seen = []
    monkeypatch.setattr(operating_characteristics, "marginal", marginal_of)
    given = {"subjects": 6, "trials": 48, "replicates": 3, "workers": 1, "out": tmp_path}
    result = power(PLACE, {"optimism_bias": 0.3}, **given)
    (design,) = designs(result)
    assert design["sampled"] == 1
    assert design["failed"] == 0
    assert result.counts["data sets"] == {"ok": 2, "not converged": 1}
    assert rows_of(tmp_path).frame["sampled"].eq(1).tolist() == [False, True, False]


def test_a_group_of_parameters_is_estimated_without_the_pull_of_the_prior(tmp_path):
    given = {"subjects": 15, "replicates": 30, "workers": 1, "seed": 3}
    (design,) = designs(power(PLACE, {"optimism_bias": 0.4}, **given))
    # Means of MAP estimates lie .06 to .07 nearer to 0 here; the error of the bias is about .013.
    assert abs(design["bias"].value) < 3 * design["bias"].error
    assert design["95% covers"].value + 2 * design["95% covers"].error > 0.95


def test_measures_with_a_test_of_their_own_keep_their_degrees_of_freedom(tmp_path):
    given = {"model": "weighted_bayes", "sessions": 3, "replicates": 2, "workers": 1}
    about = ("probabilistic_reasoning", {"prior_weighting": 0.1})
    power(*about, **given, rope=0.5, comparison="between", out=tmp_path)
    for row in rows_of(tmp_path).frame.to_dict("records"):
        half, inner = (row[f"{end}high"] - row["estimate"] for end in ("", "inner_"))
        # Three sessions of one agent leave two degrees of freedom at most, and by Satterthwaite one
        # at least; two agents have as many together as one to both (Welch 1947).
        for width, share in ((half, 0.975), (inner, 0.95)):
            most, least = stats.t.ppf(share, [1, 4])
            assert least <= width / row["standard_error"] <= most
    sides = [(0.2, 0.3), (1.1, 0.4)]
    first, second = (
        Estimate("x", value, error, np.nan, np.nan, 3, "trial", np.nan, {}, freedom=2.0)
        for value, error in sides
    )
    found = operating_characteristics._interval(
        *operating_characteristics._difference(first, second), 0.95
    )
    (a, s), (b, t) = ((value, error * np.sqrt(3)) for value, error in sides)
    assert found["p_value"] == pytest.approx(
        stats.ttest_ind_from_stats(b, t, 3, a, s, 3, equal_var=False).pvalue
    )


def rows_of(folder):
    return Rows.read(folder)


# Failures


def test_planted_failures_are_counted_and_change_nothing_else(tmp_path, monkeypatch):
    given = {"sessions": 4, "trials": 24, "replicates": 100, "seed": 3, "workers": 1}
    power(PLACE, {"optimism_bias": 0.6}, **given, out=tmp_path / "sound")
    sound = rows_of(tmp_path / "sound").frame
    planted = np.sort(session_stream(9).choice(100, 5, replace=False))  # 5%
    real = operating_characteristics.live

    def failing(study, batch, subjects, first_session=0):
        if np.isin(np.arange(batch.first, batch.last), planted).any():
            raise FloatingPointError("planted")
        return real(study, batch, subjects, first_session)

    monkeypatch.setattr(operating_characteristics, "live", failing)
    broken = power(PLACE, {"optimism_bias": 0.6}, **given, out=tmp_path / "broken")
    rows = rows_of(tmp_path / "broken").frame
    failed = rows["status"] == "failed"
    assert np.flatnonzero(failed).tolist() == planted.tolist()
    assert (rows.loc[failed, "message"] == "planted").all()
    columns = [name for name in sound if name not in ("seconds", "status", "message")]
    kept = (rows.loc[~failed, columns], sound.loc[~failed, columns])
    pd.testing.assert_frame_equal(*kept, check_exact=True, check_dtype=False)
    assert (broken.attempted, broken.failed) == (100, 5)
    assert broken["Messages"].loc["planted", "data sets"] == 5
    (design,) = designs(broken)
    # Failures are misses in the power, and are absent from what only estimates can tell.
    rest = sound.loc[~failed]
    assert design["power"].value == pytest.approx((rest["p_value"] < 0.05).sum() / 100)
    assert design["bias"].value == pytest.approx((rest["estimate"] - 0.6).mean())
    assert design["95% width"].value == pytest.approx((rest["high"] - rest["low"]).mean())


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
    centres, draws = [(0.4, -1.2, 1.0, 0.0), (1.0, -1.5, 1.0, 0.0)], [1000, N]
    sampled_groups(monkeypatch, centres, draws)
    given = {"subjects": 3, "trials": 12, "estimator": "hierarchical", "workers": 1}
    found = power(
        PLACE, {"optimism_bias": 0.3}, comparison=comparison, replicates=40, out=tmp_path, **given
    )
    (design,) = designs(found)
    assert design.get("subjects in all") == (6 if comparison == "between" else None)
    rows = rows_of(tmp_path).frame
    expected = mean_bias(centres[0])
    if comparison == "between":
        expected = mean_bias(centres[1]) - expected
    # The spread is drawn apart from the mean, so that the law is a mixture and not quite normal:
    # the brute force is good to .002. 40 means of 1,000 draws with an sd of .04 are good to .0002.
    assert design["bias"].value == pytest.approx(expected - 0.3, abs=0.003)
    assert ((rows["low"] > 0) == (rows["p_value"] < 0.05)).all()  # the interval is the test
    assert design["power"].value == (rows["low"] > 0).mean()
    width = rows["high"] - rows["low"]
    assert (width / rows["standard_error"]).mean() == pytest.approx(2 * 1.96, rel=0.05)
    doubt = "R-hat 1.2; R-hat 1.2" if comparison == "between" else "R-hat 1.2"
    assert found["Messages"].loc[doubt, "data sets"] == 1
    assert found.failed == 0  # not converged is counted, and has an estimate


# Refusals


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
