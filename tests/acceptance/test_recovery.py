"""Known agents are given back, posteriors are calibrated, tests have the power they are said to."""

from math import log, sqrt

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import chi2, chisquare, t

import knownminds
from knownminds.agents import AGENTS, Parameter, Parameters, RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning, Trials, make
from knownminds.inference import maximum_a_posteriori, posterior

PLACE = "instrumental_learning"
EIGHT = (
    "rescorla_wagner_dual",
    "hyperbolic_discounter",
    "noisy_or",
    "two_step_reduced",
    "static_bayes_observer",
    "weighted_bayes",
    "balloon_pumper",
    "horizon_explorer",
)
N = 30  # subjects of a small gate
# r of unrelated numbers has the standard error 1 / sqrt(N - 2); 3.3 of them: one in 1,000.
CHANCE = 3.3 / sqrt(N - 2)


# Recovery and its negative control


def shuffled(trials):
    """Answers with what they brought, permuted within sessions (and stages)."""
    frame, rng = trials.to_frame(), np.random.default_rng(1)
    keys = ["subject", "session", *(["stage"] if "stage" in frame else [])]
    order = np.arange(len(frame))
    for rows in frame.groupby(keys, sort=False).indices.values():
        order[rows] = rng.permutation(rows)
    moved = [name for name in ("action", "response", "reward", "outcome") if name in frame]
    frame[moved] = frame[moved].iloc[order].reset_index(drop=True)
    return Trials.from_frame(frame)


@pytest.mark.parametrize("name", EIGHT)
def test_the_recommended_design_gives_the_parameters_back_and_a_shuffled_one_does_not(name):
    model = AGENTS[name]
    design = model.recommended
    environment = make(design.environment, **design.settings)
    given = {"subjects": N, "sessions": design.sessions, "trials": design.trials, "seed": 1}
    result = knownminds.recover(environment, name, workers=1, **given)
    assert (result.attempted, result.failed) == (N, 0)
    r = result["Estimates"]["r"].map(float)
    assert (r > CHANCE).all()
    # 90% intervals of 30 subjects: four binomial errors of .055.
    covers = result["Intervals"]["90% covers"].map(float)
    assert (abs(covers - 0.9) < 4 * sqrt(0.09 / N)).all()
    trials = knownminds.simulate(environment, name, **given)
    truth = trials.frame.drop_duplicates("subject").set_index("subject")
    fit = maximum_a_posteriori(model, shuffled(trials), workers=1)
    truth = truth.loc[list(fit.subjects), [f"true_{n}" for n in model.parameters.names]]
    z = model.parameters.unconstrain(truth.to_numpy(dtype=float))
    control = np.array([np.corrcoef(z[:, k], fit.z[:, k])[0, 1] for k in range(z.shape[1])])
    assert (np.nan_to_num(control) < np.minimum(CHANCE, r.to_numpy() - 0.2)).mean() >= 0.5


@pytest.fixture(scope="module")
def dual():
    return knownminds.recover(PLACE, "rescorla_wagner_dual", subjects=400, seed=11, workers=1)


def test_scores_are_those_of_the_rows(dual):
    rows = dual.rows
    assert dual.attempted == len(rows) == dual["Status of the fits"]["fits"].sum() == 400
    for name, scores in dual["Estimates"].iterrows():
        true, estimate = rows[f"true_{name}"], rows[name]
        assert scores["bias"].value == pytest.approx((estimate - true).mean())
        assert scores["bias"].error == pytest.approx((estimate - true).std() / 20, rel=1e-6)
        assert scores["rmse"].value == pytest.approx(np.sqrt(((estimate - true) ** 2).mean()))
        assert scores["r"].value == pytest.approx(np.corrcoef(true, estimate)[0, 1])
        inside = true.between(rows[f"low_90_{name}"], rows[f"high_90_{name}"])
        assert dual["Intervals"].loc[name, "90% covers"].value == pytest.approx(inside.mean())
        slope = np.polyfit(rows[f"z_true_{name}"], rows[f"z_{name}"], 1)[0]
        assert scores["shrinkage"].value == pytest.approx(1 - slope)
        # The error of r is of the order of the jackknife's.
        each = [np.corrcoef(true[k], estimate[k])[0, 1] for k in ~np.eye(400, dtype=bool)]
        jackknife = sqrt(399**2 / 400 * np.var(each, ddof=1))
        assert scores["r"].error == pytest.approx(jackknife, rel=0.3)


def test_ninety_percent_intervals_hold_the_truth_ninety_percent_of_the_time(dual):
    for covers in dual["Intervals"]["90% covers"]:
        # 400 subjects: standard error sqrt(.9 * .1 / 400) = .015; 3 errors for 4 parameters.
        assert abs(covers.value - 0.9) < 0.045


def test_words_are_those_of_the_correlation_and_its_error(dual):
    """Two errors on Fisher's scale on either side of .8 and .5 leave the word open."""
    words = dual["Estimates"]["verdict"]
    for name, r in dual["Estimates"]["r"].items():
        error = max(1 / sqrt(397), r.error / (1 - r.value**2))
        above = [np.arctanh(r.value) - 2 * error >= np.arctanh(limit) for limit in (0.5, 0.8)]
        below = [np.arctanh(r.value) + 2 * error < np.arctanh(limit) for limit in (0.5, 0.8)]
        assert (words[name] == "recoverable") == above[1]
        assert (words[name] == "weak") == (above[0] and below[1])
        assert (words[name] == "not identified") == below[0]
        assert dual.verdicts[name].word == words[name]
    assert words["beta"] == words["kappa"] == "recoverable"
    assert words["alpha_positive"] != "recoverable"


def test_thirds_of_the_prior_have_their_own_scores(dual):
    regions = dual["Regions of true values"]
    assert (regions.groupby("parameter")["n"].sum() == 400).all()
    for name, region in regions.iterrows():
        # A third of 400: standard error sqrt(400 * 2 / 9) = 9.4, bound 4 of these.
        assert abs(region["n"] - 400 / 3) < 38
        true = dual.rows[f"true_{name}"]
        assert ((region["low"] <= true) & (true < region["high"])).sum() == region["n"]


def test_an_unrelated_truth_is_not_recovered(dual):
    rng = np.random.default_rng(1)
    for name in dual["Estimates"].index:
        other = rng.permutation(dual.rows[f"true_{name}"].to_numpy())
        assert abs(np.corrcoef(other, dual.rows[name])[0, 1]) < 4 / sqrt(400)


def test_more_trials_recover_better():
    given = {"subjects": 200, "seed": 4, "intervals": "laplace", "workers": 1}
    result = knownminds.recover(PLACE, "rescorla_wagner", trials=[48, 384], **given)
    for name, r in result["Estimates"]["r"].groupby("parameter"):
        short, long = r
        # 3 errors of the difference: one of 700 equal designs would pass.
        assert long.value - short.value > 3 * np.hypot(short.error, long.error), name


def test_a_held_truth_is_not_judged_by_correlation():
    given = {"subjects": 30, "truth": {"alpha": 0.3}, "intervals": "laplace", "workers": 1}
    result = knownminds.recover(PLACE, "rescorla_wagner", **given)
    assert (result.rows["true_alpha"] == 0.3).all()
    assert result.verdicts["alpha"].word == "not judged"
    (alpha,) = (r for r in result.to_dict()["tables"]["estimates"] if r["parameter"] == "alpha")
    assert alpha["r"] is None
    assert result.rows["true_beta"].nunique() == 30


def test_a_larger_study_begins_with_the_same_agents():
    given = {"seed": 2, "intervals": "laplace", "workers": 1}
    few = knownminds.recover(PLACE, "rescorla_wagner", subjects=10, **given).rows
    many = knownminds.recover(PLACE, "rescorla_wagner", subjects=20, **given).rows
    columns = [name for name in few if name != "seconds"]
    assert few[columns].equals(many.loc[:9, columns])


class Fragile(RescorlaWagner):
    """Breaks on whoever only ever picks one action in some context."""

    @staticmethod
    def log_likelihood(theta, lapse, n_actions, row, start, action, reward):
        few = len(theta) < 1000  # not where the design is looked at before anybody is fitted
        for block in range(len(row) if few else 0):
            own = np.asarray(action[start[block] : start[block + 1]])
            if ((own == own[:1]) & (own >= 0)).all(axis=0).any():
                raise FloatingPointError("planted")
        return RescorlaWagner.log_likelihood(theta, lapse, n_actions, row, start, action, reward)


def test_failed_subjects_are_counted_and_change_no_other():
    given = {"subjects": 60, "trials": 40, "intervals": "laplace", "workers": 1}
    result = knownminds.recover(PLACE, Fragile, **given)
    lost = result.rows["status"] == "failed"
    assert 0 < lost.sum() < 60
    assert result.attempted == 60
    assert result.failed == result["Status of the fits"].loc["failed", "fits"] == lost.sum()
    assert result.rows.loc[lost, "alpha"].isna().all()
    assert set(result.rows.loc[lost, "message"]) == {"planted"}
    assert (result["Estimates"]["n"] == 60 - lost.sum()).all()
    rows = result.rows[~lost]
    bias = result["Estimates"].loc["beta", "bias"].value
    assert bias == pytest.approx((rows["beta"] - rows["true_beta"]).mean())


# Calibration


def other_prior(**changes):
    """The same learner, of whose learning rate another prior is believed."""
    alpha, *others = RescorlaWagner.parameters
    own = {"mean": alpha.mean, "sd": alpha.sd, "description": alpha.description}
    own |= {"group_sd": alpha.group_sd} | changes
    parameters = Parameters(Parameter("alpha", alpha.support, **own), *others)
    return type("Other", (RescorlaWagner,), {"parameters": parameters})


@pytest.fixture(scope="module")
def learners():
    theta = RescorlaWagner.parameters.draw(np.random.default_rng(9), 500)
    return theta, simulate(RescorlaWagner, theta, InstrumentalLearning(6), 9)


@pytest.mark.parametrize(
    ("changes", "right"),
    [({}, True), ({"sd": 0.5}, False), ({"mean": 1.0}, False), ({"sd": 2.0}, False)],
    ids=["the prior itself", "half its sd", "another mean", "twice its sd"],
)
def test_ranks_of_truths_are_uniform_among_draws_and_a_wrong_prior_is_noticed(
    learners, changes, right
):
    """24 trials say little about a learning rate, so that its prior is felt."""
    theta, trials = learners
    model = other_prior(**changes) if changes else RescorlaWagner
    draws = posterior(model, trials, draws=999, nuts=False).draws
    tenths = (draws < theta).sum(axis=0) // 100
    p = [chisquare(np.bincount(tenths[:, k], minlength=10)).pvalue for k in range(3)]
    # Of one right posterior in a thousand chance says less.
    assert (p[0] > 1e-3) == right
    assert min(p[1:]) > 1e-3 or not right


@pytest.mark.parametrize(
    ("place", "model"), [(PLACE, "rescorla_wagner"), ("probabilistic_reasoning", "weighted_bayes")]
)
def test_the_verb_calls_right_posteriors_calibrated(place, model):
    result = knownminds.calibrate(place, model, replicates=200, seed=1, workers=1)
    assert (result.attempted, result.failed) == (200, 0)
    ranks = result["Ranks"]
    assert (ranks["n"] == 200).all()
    assert (ranks["p"] > 1e-3).all()
    level = 0.05 / len(ranks)  # of the whole family 5%
    assert ((ranks["verdict"] == "calibrated") == (ranks["p"] > level)).all()
    assert {name: one.word for name, one in result.verdicts.items()} == dict(ranks["verdict"])


def test_few_replicates_are_not_judged():
    result = knownminds.calibrate(PLACE, "perseverator", replicates=11, trials=12, workers=1)
    assert {one.word for one in result.verdicts.values()} == {"not judged"}


# Power


def kappa_of(repeats, n):
    """The fitted repetition of who repeats so many of n choices: prior N(1, 1)."""
    return brentq(lambda k: repeats - n * expit(k) - (k - 1.0), -30, 30)


def shares(first, second, n_trials, n_sessions, seed=0, sets=20_000):
    """How often the test of two minds' sessions rejects, by binomial counts of repeats.

    Each mind is fitted to all its sessions; its error is the jackknife's over sessions.
    """
    rng = np.random.default_rng(seed)
    chances = [n_trials * n_sessions, n_trials * (n_sessions - 1)]
    of_all, of_rest = (np.array([kappa_of(r, n) for r in range(n + 1)]) for n in chances)
    found = []
    for k in (first, second):
        count = rng.binomial(n_trials, expit(k), (sets, n_sessions))
        total = count.sum(axis=1)
        without = of_rest[total[:, None] - count]
        variance = (n_sessions - 1) ** 2 / n_sessions * without.var(axis=1, ddof=1)
        found.append((of_all[total], variance))
    (one, v), (other, w) = found
    estimate, error = other - one, np.sqrt(v + w)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = (n_sessions - 1) * error**4 / (v**2 + w**2)
    half = t.ppf(0.975, np.nan_to_num(freedom, nan=1.0)) * error
    return (np.abs(estimate) > half) & (error > 0), estimate, 2 * half


@pytest.mark.parametrize("effect", [0.0, 0.8])
def test_power_is_that_of_two_fits_to_binomial_counts(effect):
    """Two minds who repeat themselves, 8 sessions of 24 trials each: 20 chances to repeat."""
    replicates = 600
    result = knownminds.power(
        PLACE, {"kappa": effect}, model="perseverator", comparison="between", sessions=8,
        trials=24, replicates=replicates, workers=1, seed=3,
    )  # fmt: skip
    (design,) = result["Designs"].to_dict("records")
    rejects, estimate, width = shares(1.0, 1.0 + effect, 20, 8)
    expected = rejects.mean()
    # 3.5 binomial errors, and of the 20,000 counted: exceeded by chance in 5 of 10,000.
    error = sqrt(expected * (1 - expected) * (1 / replicates + 1 / 20_000))
    assert abs(design["power"].value - expected) < 3.5 * error
    assert abs(design["bias"].value - (estimate.mean() - effect)) < 3.5 * design["bias"].error
    assert abs(design["spread"].value - estimate.std()) < 3.5 * design["spread"].error
    assert design["95% width"].value == pytest.approx(
        width.mean(), rel=3.5 * 0.2 / sqrt(replicates)
    )
    if effect:  # negative control: two sessions more would be told apart
        more = shares(1.0, 1.0 + effect, 20, 12)[0].mean()
        assert abs(design["power"].value - more) > 3.5 * error
    else:
        assert np.isnan(design["wrong sign"].value)


@pytest.mark.long
def test_the_smallest_design_is_confirmed_in_fresh_data_sets():
    given = {"model": "perseverator", "comparison": "between", "trials": 24, "workers": 1}
    given |= {"find": "sessions"}
    result = knownminds.power(PLACE, {"kappa": 1.0}, replicates=400, most=60, **given)
    (answer,) = result["Smallest design"].to_dict("records")
    power = {n: shares(1.0, 2.0, 20, n, sets=8000)[0].mean() for n in range(2, 40)}
    smallest = next(n for n, share in power.items() if share >= 0.8)
    # A search ends when its 90% interval is as wide as a tenth of the size, and whole numbers.
    assert abs(answer["sessions"] - smallest) <= max(1, round(0.15 * smallest))
    assert answer["low"] <= answer["sessions"] <= answer["high"]
    assert result.verdicts["the smallest design"].word == "confirmed"
    share = power[answer["sessions"]]
    assert abs(answer["power"].value - share) < 4 * sqrt(share * (1 - share) / 400)
    none = knownminds.power(PLACE, {"kappa": 0.1}, replicates=50, most=6, **given)
    assert none["Smallest design"].iloc[0]["sessions"] is None
    assert none.verdicts["the smallest design"].word == "not reached"


@pytest.mark.long
def test_an_audit_finds_the_size_of_the_test_and_an_effect():
    given = {"effects": [0.4], "subjects": 20, "trials": 96, "replicates": 150, "workers": 1}
    result = knownminds.audit("optimism_bias", **given)
    null, _, turned = result["Operating characteristics"]["rejected"]
    # 5% of 150 data sets, 3.5 binomial errors.
    assert null.value < 0.05 + 3.5 * sqrt(0.05 * 0.95 / 150)
    assert turned.value > null.value + 3.5 * 0.06
    # The mean of the group is not pulled to the prior, as means of estimates are.
    *_, bias = result["Operating characteristics"]["bias"]
    assert abs(bias.value) < 3.5 * bias.error


# Which model, which design


def test_nested_models_are_confused_as_often_as_theory_says():
    """A guesser is a perseverator of kappa = 0.

    Twice the gain in log-likelihood is chi-square with 1 degree of freedom (Wilks 1938), and AIC
    asks for 2, BIC for log 96.
    """
    n = 800
    result = knownminds.confuse(
        PLACE, ["random_responder", "perseverator"], replicates=n, workers=1
    )
    for name, penalty in (("AIC", 2.0), ("BIC", log(96))):
        expected = chi2.sf(penalty, 1)
        wrong = result["Shares"].loc[(name, "random_responder", "perseverator"), "share"]
        # 4 binomial errors, and a half again for whole numbers of repeats among 92 chances
        assert abs(wrong - expected) < 4 * sqrt(expected * (1 - expected) / n) + 0.01
    assert result.failed == 0


def test_the_model_that_made_the_data_is_named():
    rivals = ["rescorla_wagner", "random_responder", "perseverator"]
    result = knownminds.confuse(PLACE, rivals, replicates=100, seed=1, workers=1)
    # Chance is 1/3; 5 binomial errors of 100 data sets above it.
    limit = 1 / 3 + 5 * sqrt(2 / 9 / 100)
    for _, table in result["Shares"].groupby("criterion"):
        pairs = table.reset_index()
        own = pairs[pairs["simulated"] == pairs["fitted"]]
        assert (own["share"] > limit).all()
        assert (own["inversion"] > limit).all()
        assert (pairs.groupby("simulated")["best"].sum() == 100).all()
        whole = pairs.groupby("fitted")["share"].transform("sum")
        assert np.allclose(pairs["inversion"], pairs["share"] / whole)


def test_designs_that_tell_nothing_lose_to_those_that_do():
    """One visit to each casino tells nothing of a learner; a longer session of equal cost does."""
    result = knownminds.best_design(
        PLACE, "alpha", budget={"trials": 96}, model="rescorla_wagner", search=["n_visits=1:24"],
        designs=8, replicates=60, fresh=60, seed=2, workers=1,
    )  # fmt: skip
    designs = result["Search"]
    assert (designs["cost in trials"] <= 96).all()
    order = designs["spread"].map(float).to_numpy().argsort()
    best, worst = designs.iloc[order[0]], designs.iloc[order[-1]]
    assert result["Best design"].iloc[0]["settings"] == best["settings"]
    assert best["trials"] > worst["trials"]
    apart = worst["spread"].value - best["spread"].value
    assert apart > 3 * np.hypot(best["spread"].error, worst["spread"].error)


def test_ranges_of_the_prior_are_those_of_other_minds_of_it():
    """Five, 50 and 95% of the minds have a mean reward below what is said."""
    n = 400
    given = {"subjects": n, "seed": 3, "report": True, "workers": 1}
    result = knownminds.simulate(PLACE, "rescorla_wagner", **given)
    assert len(result.rows) == n
    theta = RescorlaWagner.parameters.draw(np.random.default_rng(1), 4000)
    frame = simulate(RescorlaWagner, theta, InstrumentalLearning(), 1).frame
    means = frame.groupby("subject")["reward"].mean()
    quantiles = result["Means over all trials"].loc["learning curve", ["low", "median", "high"]]
    for share, value in zip((0.05, 0.5, 0.95), quantiles, strict=True):
        # Four binomial errors of 400 minds; means are whole 96ths, so many are equal.
        assert (means < value).mean() < share + 4 * sqrt(share * (1 - share) / n)
        assert (means <= value).mean() > share - 4 * sqrt(share * (1 - share) / n)
