"""Fits find the optimum, say how sure they are, and count what they cannot know.

Likelihoods are written out here in plain Python, optima are SciPy's, posteriors are integrated.
"""

from itertools import product
from math import comb, log

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, logit, logsumexp
from scipy.stats import norm

import knownminds
from knownminds.agents import (
    LAPSE,
    Perseverator,
    RandomResponder,
    RescorlaWagner,
    RescorlaWagnerDual,
    WinStayLoseShift,
    simulate,
)
from knownminds.environments import InstrumentalLearning, Trials, follow_world, session_stream
from knownminds.inference import (
    Folds,
    ModelData,
    cross_validate,
    hierarchical,
    leave_one_sequence_out,
    maximum_a_posteriori,
    maximum_likelihood,
    posterior,
    predict_left_out,
)


def learners(n, visits=24, seed=1, model=RescorlaWagnerDual, **more):
    theta = model.parameters.draw(np.random.default_rng(seed), n)
    return theta, simulate(model, theta, InstrumentalLearning(visits), seed, **more)


def shuffled(trials, seed=0):
    """Permute (action, reward) within each subject: what was learned is lost, the rates stay."""
    frame, rng = trials.to_frame(), np.random.default_rng(seed)
    columns = ["action", "reward"]
    for _, rows in frame.groupby("subject").groups.items():
        frame.loc[rows, columns] = frame.loc[rng.permutation(rows), columns].to_numpy()
    return Trials.from_frame(frame)


def rows_of(trials, subject):
    return trials.frame[trials.frame["subject"] == str(subject)].to_dict("records")


def learning(theta, rows):
    """Log-likelihood of two learning rates, an inverse temperature and repetition, by the text."""
    gain, loss, beta, kappa = theta
    values, last, total = {}, {}, 0.0
    for row in rows:
        if pd.isna(row["action"]):
            continue
        own = values.setdefault(row["context"], [0.5, 0.5])
        lead = beta * (own[1] - own[0]) + kappa * last.get(row["context"], 0)
        action = int(row["action"])
        total += log_expit(lead if action else -lead)
        surprise = row["reward"] - own[action]
        own[action] += (gain if surprise > 0 else loss) * surprise
        last[row["context"]] = 2 * action - 1
    return float(total)


def repeating(kappa, rows, lapse=0.0):
    """Log-likelihood of repeating the last choice of a context; choices may lack rewards."""
    last, total = {}, 0.0
    for row in rows:
        if pd.isna(row["action"]):
            continue
        turn = kappa * last.get(row["context"], 0) * (2 * row["action"] - 1)
        total += log((1 - lapse) * expit(turn) + lapse / 2)
        if row.get("outcome", "ok") == "ok":
            last[row["context"]] = 2 * row["action"] - 1
    return total


def without(trials, lost):
    """Take the answers of some rows away."""
    frame = trials.to_frame()
    frame.loc[lost, ["action", "reward"]] = None
    frame.loc[lost, "outcome"] = "refused"
    return Trials.from_frame(frame, environment=InstrumentalLearning())


@pytest.fixture(scope="module")
def many():
    theta, trials = learners(200, seed=11)
    return theta, trials, maximum_a_posteriori(RescorlaWagnerDual, trials)


# The optimum


@pytest.mark.parametrize("method", ["map", "mle"])
def test_estimates_are_the_optimum_of_scipy_on_a_likelihood_in_plain_python(many, method):
    """A prior of another mean or sd, or a term of the likelihood left out, ends elsewhere."""
    _, trials, fit = many
    if method == "mle":
        fit = maximum_likelihood(RescorlaWagnerDual, trials)
    parameters = RescorlaWagnerDual.parameters
    some = [i for i in range(20) if fit.status[i] == "ok"][:4]
    assert len(some) == 4
    for i in some:
        rows = rows_of(trials, i)

        def log_posterior(z, rows=rows):
            theta = (*expit(z[:2]), np.exp(z[2]), z[3])
            prior = norm.logpdf(z, parameters.mean, parameters.sd).sum() if method == "map" else 0.0
            return learning(theta, rows) + prior

        best = minimize(lambda z, f=log_posterior: -f(z), fit.z[i] + 0.3, method="BFGS")
        z = fit.z[i]
        assert fit.estimate[i] == pytest.approx([*expit(z[:2]), np.exp(z[2]), z[3]])
        assert fit.log_likelihood[i] == pytest.approx(
            learning(fit.estimate[i], rows), rel=1e-9, abs=1e-9
        )
        if method == "map":
            assert fit.log_posterior[i] == pytest.approx(log_posterior(z), rel=1e-9)
        assert log_posterior(z) >= -best.fun - 1e-6
        # The surface is flat at its top: 1e-6 there are 2e-3 of a standard error of about 0.5.
        assert np.allclose(z, best.x, atol=5e-3)


def test_no_other_start_finds_a_better_posterior(many):
    _, trials, fit = many
    parameters = RescorlaWagnerDual.parameters
    data, rng = ModelData.read(RescorlaWagnerDual, trials), np.random.default_rng(0)
    for i in range(12):
        own = data.repeat([i])

        def objective(z, own=own):
            theta = parameters.constrain(z[None])
            total, gradient = own.log_likelihood(theta)
            away = (z - parameters.mean) / parameters.sd
            value = total[0] + norm.logpdf(z, parameters.mean, parameters.sd).sum()
            return -value, away / parameters.sd - (gradient * parameters.slope(theta))[0]

        starts = rng.normal(parameters.mean, parameters.sd, (5, 4))
        ends = [minimize(objective, start, jac=True).fun for start in starts]
        assert fit.log_posterior[i] >= -min(ends) - 1e-6


def test_standard_errors_are_those_of_the_curvature(many):
    _, trials, fit = many
    parameters, rows = RescorlaWagnerDual.parameters, rows_of(trials, 3)

    def log_posterior(z):
        theta = (*expit(z[:2]), np.exp(z[2]), z[3])
        return learning(theta, rows) + norm.logpdf(z, parameters.mean, parameters.sd).sum()

    h, curvature, z = 1e-3, np.empty((4, 4)), fit.z[3]
    for i, j in product(range(4), repeat=2):
        a, b = np.eye(4)[i] * h, np.eye(4)[j] * h
        corners = [log_posterior(z + s * a + t * b) * s * t for s in (1, -1) for t in (1, -1)]
        curvature[i, j] = sum(corners) / (4 * h * h)
    error = np.sqrt(np.diag(np.linalg.inv(-curvature)))
    assert np.allclose(fit.standard_error[3], error, rtol=1e-3)
    low, high = fit.interval(0.9)
    reach = norm.ppf(0.95) * error
    assert low[3] == pytest.approx(parameters.constrain((z - reach)[None])[0], rel=1e-2)
    assert high[3] == pytest.approx(parameters.constrain((z + reach)[None])[0], rel=1e-2)


def test_a_subject_has_the_same_fit_in_any_company_and_with_any_number_of_threads(many):
    _, trials, fit = many
    alone = Trials.from_frame(trials.frame[trials.frame.subject == "150"])
    single = maximum_a_posteriori(RescorlaWagnerDual, alone)
    assert np.allclose(single.z[0], fit.z[150], atol=1e-5)
    threads = maximum_a_posteriori(RescorlaWagnerDual, trials, workers=2)
    assert np.array_equal(threads.z, fit.z)


def test_a_shuffled_session_does_not_give_the_rates_back(many):
    theta, trials, fit = many
    lost = maximum_a_posteriori(RescorlaWagnerDual, shuffled(trials))
    # Under no relation r has the standard error 1 / sqrt(199); 3.5 of them: one in 2,000.
    bound = 3.5 / np.sqrt(199)
    for k in range(2):
        assert np.corrcoef(theta[:, k], fit.estimate[:, k])[0, 1] > bound
        assert abs(np.corrcoef(theta[:, k], lost.estimate[:, k])[0, 1]) < bound


def test_a_wrong_slope_ends_at_a_lower_posterior():
    class Wrong(RescorlaWagnerDual):
        name = "wrong"

        @staticmethod
        def log_likelihood(*arguments):
            total, gradient = RescorlaWagnerDual.log_likelihood(*arguments)
            gradient[:, 0] *= 1.05
            return total, gradient

    _, trials = learners(20)
    right, wrong = (maximum_a_posteriori(m, trials) for m in (RescorlaWagnerDual, Wrong))
    assert (wrong.log_posterior < right.log_posterior - 1e-6).mean() > 0.5


# Statuses


@pytest.mark.parametrize("model", [RescorlaWagner, WinStayLoseShift, Perseverator])
def test_constant_and_perfect_answers_get_a_status_and_no_crash(model):
    environment = InstrumentalLearning()
    design = environment.draw(session_stream(1))
    context, payoffs = (design.table[name] for name in ("context", "payoffs"))
    answers = {"constant": np.zeros(96, int), "alternating": np.arange(96) % 2,
               "perfect": payoffs.argmax(axis=1), "worst": payoffs.argmin(axis=1)}  # fmt: skip
    parts = []
    for name, action in answers.items():
        reward = follow_world(environment.world, design.table, action)["reward"]
        own = {"subject": name, "trial": np.arange(96), "context": context}
        parts.append(pd.DataFrame({**own, "action": action, "reward": reward}))
    trials = Trials.from_frame(pd.concat(parts))
    for method in (maximum_likelihood, maximum_a_posteriori):
        fit = method(model, trials)
        assert set(fit.status) <= {"ok", "boundary", "flat", "failed"}
        assert np.isfinite(fit.log_likelihood).all()
        assert all(m for m, s in zip(fit.message, fit.status, strict=True) if s != "ok")
    if model is WinStayLoseShift:
        assert "boundary" in maximum_likelihood(model, trials).status


def test_maximum_likelihood_counts_its_runaways():
    _, trials = learners(200, visits=6)
    fit = maximum_likelihood(RescorlaWagnerDual, trials)
    assert fit.counts()["boundary"] > 20
    prior = maximum_a_posteriori(RescorlaWagnerDual, trials)
    assert (fit.log_likelihood >= prior.log_likelihood - 1e-6).all()


def test_a_subject_without_any_answer_is_a_counted_failure():
    _, trials = learners(2)
    silent = trials.frame.subject == "1"
    fit = maximum_a_posteriori(RescorlaWagnerDual, without(trials, silent))
    assert fit.status == ("ok", "failed")
    assert "response" in fit.message[1]
    assert fit.counts()["failed"] == 1


def test_held_parameters_stay_and_unknown_or_impossible_ones_are_refused(many):
    _, trials, fit = many
    fixed_fit = maximum_a_posteriori(RescorlaWagnerDual, trials, fixed={"kappa": 0.0})
    assert fixed_fit.names == ("alpha_positive", "alpha_negative", "beta")
    assert (fixed_fit.log_likelihood <= fit.log_likelihood + 1.0).mean() > 0.9
    for fixed, name in (({"kapa": 0.0}, "kapa"), ({"alpha_positive": 2.0}, "alpha_positive")):
        with pytest.raises(ValueError, match=name):
            maximum_a_posteriori(RescorlaWagnerDual, trials, fixed=fixed)
    with pytest.raises(ValueError, match="start"):
        maximum_a_posteriori(RescorlaWagnerDual, trials, starts=0)


def test_lapses_bias_a_fit_unless_they_are_in_it():
    theta = np.tile([0.4, 6.0, 0.0], (60, 1))
    trials = simulate(RescorlaWagner, theta, InstrumentalLearning(300), 3, lapse=0.1)
    plain = maximum_a_posteriori(RescorlaWagner, trials)
    lapsing = maximum_a_posteriori(RescorlaWagner, trials, lapse=True)
    assert lapsing.names[-1] == "lapse"
    error = [np.median(fit.estimate[:, 1]) - 6.0 for fit in (plain, lapsing)]
    assert error[0] < -1.0
    assert abs(error[1]) < abs(error[0]) / 2


# Posteriors of one subject


def on_a_grid(trials, subject, parameters, n=161):
    """Posterior weights of logit(alpha) and log(beta), kappa being 0, by sums over a grid."""
    data = ModelData.read(RescorlaWagner, trials).repeat(np.full(n * n, subject))
    axes = [p.mean + p.sd * np.linspace(-6, 6, n) for p in list(parameters)[:2]]
    z = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
    theta = np.column_stack([expit(z[:, 0]), np.exp(z[:, 1]), np.zeros(len(z))])
    log_weight = data.log_likelihood(theta)[0]
    log_weight += norm.logpdf(z, parameters.mean[:2], parameters.sd[:2]).sum(axis=1)
    weight = np.exp(log_weight - logsumexp(log_weight)).reshape(n, n)
    return [(axis, weight.sum(axis=1 - k)) for k, axis in enumerate(axes)]


def test_posteriors_of_one_subject_are_those_of_quadrature():
    n, draws = 12, 4000
    _, trials = learners(n, seed=8, model=RescorlaWagner)
    result = posterior(RescorlaWagner, trials, fixed={"kappa": 0.0}, draws=draws, nuts=False)
    assert result.names == ("alpha", "beta")
    low, high = result.interval(0.9)
    widths = np.stack([logit(high[:, 0]) - logit(low[:, 0]), np.log(high[:, 1] / low[:, 1])])
    ratios = []
    for i in range(n):
        marginals = on_a_grid(trials, i, RescorlaWagner.parameters)
        for k, (axis, weight) in enumerate(marginals):
            mean = axis @ weight
            sd = np.sqrt(weight @ (axis - mean) ** 2)
            own = result.z_draws[:, i, k]
            # Resampled from weighted draws, so worth half of them or more: 5 errors of 24 means.
            assert abs(own.mean() - mean) < 5 * sd * np.sqrt(2 / draws)
            ends = np.interp([0.05, 0.95], np.cumsum(weight), axis + (axis[1] - axis[0]) / 2)
            ratios.append(widths[k, i] / (ends[1] - ends[0]))
    # A 5% quantile of 2,000 draws is known to .047 sd, a width of 3.29 sd to 2%; 24 of them to
    # 0.4%, and neighbours share draws: below 1%. Four of these; a width of 0.9 is far off.
    assert abs(np.mean(ratios) - 1) < 0.04


def test_intervals_hold_the_truth_as_often_as_they_say():
    n = 600
    theta, trials = learners(n, seed=3)
    result = posterior(RescorlaWagnerDual, trials, nuts=False)
    for mass in (0.5, 0.8, 0.9, 0.95):
        low, high = result.interval(mass)
        inside = ((theta >= low) & (theta <= high)).mean(axis=0)
        # Binomial standard error; 16 comparisons at 3.5 errors fail once in 130 seeds.
        assert np.all(np.abs(inside - mass) < 3.5 * np.sqrt(mass * (1 - mass) / n)), mass
    error = [((e - theta) ** 2).mean(axis=0) for e in (result.estimate, result.fit.estimate)]
    assert (error[0][:2] < error[1][:2]).all()  # means beat modes


# Groups


def group_by_quadrature(likelihood, mean, sd, group_sd):
    """Posterior mean and sd of a group's mean and of its spread, by a grid and Gauss-Hermite.

    `likelihood`(z) gives each subject's likelihood of values z, [subjects, len(z)]; the mean is
    normal, the spread half-normal.
    """
    node, weight = np.polynomial.hermite_e.hermegauss(21)
    weight = weight / weight.sum()
    means, spreads = mean + sd * np.linspace(-5, 5, 81), group_sd * np.linspace(0.01, 5, 60)
    m, s = np.meshgrid(means, spreads, indexing="ij")
    z = m[..., None] + s[..., None] * node
    each = likelihood(z.ravel()).reshape(-1, *z.shape) @ weight
    log_density = np.log(each).sum(axis=0)
    log_density += norm.logpdf(m, mean, sd) + norm.logpdf(s, scale=group_sd)
    density = np.exp(log_density - logsumexp(log_density))
    moments = []
    for value in (m, s):
        centre = (density * value).sum()
        moments.append((centre, np.sqrt((density * (value - centre) ** 2).sum())))
    return moments


FEW = {"draws": 500, "tune": 500, "rounds": 1, "seed": 1, "cores": 1}


def agrees(row, moments):
    """Within 5 Monte-Carlo errors of a mean, and of an sd, of so many effective draws."""
    mean, sd = moments
    effective = min(row["ess_bulk"], row["ess_tail"])
    assert effective > 150
    assert abs(row["mean"] - mean) < 5 * sd / np.sqrt(effective)
    assert abs(row["sd"] / sd - 1) < 5 / np.sqrt(effective)


@pytest.fixture(scope="module")
def repeaters():
    """Eight minds who repeat themselves, and pick at random in a tenth of the trials."""
    kappa = 2.5 + 0.4 * np.random.default_rng(5).normal(size=(8, 1))
    return simulate(Perseverator, kappa, InstrumentalLearning(24), 5, lapse=0.1)


@pytest.mark.long
def test_a_group_of_repeaters_is_that_of_quadrature(repeaters):
    (kappa,) = Perseverator.parameters
    rows = [rows_of(repeaters, i) for i in range(8)]
    grid = np.linspace(-12, 14, 400)
    known = np.array([[repeating(k, own) for k in grid] for own in rows])

    def likelihood(z):
        return np.exp([np.interp(z, grid, own - own.max()) for own in known])

    result = hierarchical(Perseverator, repeaters, **FEW).group
    moments = group_by_quadrature(likelihood, kappa.mean, kappa.sd, kappa.group_sd)
    for term, expected in zip(("kappa", "sd(kappa)"), moments, strict=True):
        agrees(result.loc[term], expected)


@pytest.mark.long
def test_lapses_are_in_the_likelihood_of_a_group(repeaters):
    """Repetition being held, only the lapse rate is left: without it the prior would come back."""
    rows = [rows_of(repeaters, i) for i in range(8)]
    grid = np.linspace(-16, 8, 300)
    known = np.array([[repeating(2.5, own, expit(z)) for z in grid] for own in rows])

    def likelihood(z):
        return np.exp([np.interp(z, grid, own - own.max()) for own in known])

    result = hierarchical(Perseverator, repeaters, fixed={"kappa": 2.5}, lapse=True, **FEW).group
    moments = group_by_quadrature(likelihood, LAPSE.mean, LAPSE.sd, LAPSE.group_sd)
    for term, expected in zip(("lapse", "sd(lapse)"), moments, strict=True):
        agrees(result.loc[term], expected)
    assert moments[0][0] > LAPSE.mean + LAPSE.sd  # the trials say something of their own


@pytest.fixture(scope="module")
def group():
    """Twenty-four learners in two conditions, and a group model with a regressor of them."""
    rng = np.random.default_rng(6)
    mean, spread = np.array([-0.3, 1.1, 0.2]), np.array([0.6, 0.4, 0.4])
    z = mean + spread * rng.normal(size=(24, 3))
    z[1::2, 0] += 2.0
    theta = RescorlaWagner.parameters.constrain(z)
    frame = simulate(RescorlaWagner, theta, InstrumentalLearning(48), 6).to_frame()
    frame["condition"] = np.where(frame["subject"].astype(int) % 2, "b", "a")
    trials = Trials.from_frame(frame)
    fit = hierarchical(RescorlaWagner, trials, formula="alpha ~ condition", **FEW)
    return theta, mean, spread, trials, fit


def test_the_group_and_what_moves_it_come_back(group):
    theta, mean, spread, trials, fit = group
    for k, name in enumerate(fit.names):
        for term, truth in ((name, mean[k]), (f"sd({name})", spread[k])):
            row = fit.group.loc[term]
            # Within 4 posterior sds: 7 comparisons fail once in 2,000 data sets.
            assert abs(row["mean"] - truth) < 4 * row["sd"], term
    row = fit.group.loc["alpha ~ condition[T.b]"]
    assert abs(row["mean"] - 2.0) < 4 * row["sd"]
    assert row["low"] > 0
    # Of one subject, so many trials tell least of the learning rate: there the group helps.
    separate = maximum_likelihood(RescorlaWagner, trials)
    alone, pooled = (((f.estimate[:, 0] - theta[:, 0]) ** 2).mean() for f in (separate, fit))
    assert pooled < alone


@pytest.mark.long
def test_leaving_a_subject_out_prefers_the_model_that_made_the_data(group):
    *_, trials, _ = group
    data = ModelData.read(RescorlaWagner, trials)
    result = predict_left_out(data, seed=1, workers=1).left_out
    chance = len(trials) * np.log(0.5)
    assert result.total > chance + 3 * result.standard_error
    # Leaving out can only cost: the density of a subject's trials is below its best likelihood.
    assert (result.elpd < maximum_likelihood(RescorlaWagner, trials).log_likelihood).all()


def test_too_little_sampling_is_said_and_gives_no_estimate_that_counts(group):
    *_, trials, _ = group
    few = {"draws": 20, "tune": 20, "chains": 2, "rounds": 1, "seed": 3, "cores": 1}
    fit = hierarchical(RescorlaWagner, trials, **few)
    assert fit.verdict == "not converged"
    assert set(fit.status) == {"failed"}
    assert fit.reasons


@pytest.mark.parametrize(
    ("model", "given", "name"),
    [
        (RandomResponder, {}, "random_responder"),
        (RescorlaWagner, {"formula": "alpha ~ conditon"}, "conditon"),
        (RescorlaWagner, {"formula": "alfa ~ condition"}, "alfa"),
        (RescorlaWagner, {"draws": 0}, "0"),
    ],
)
def test_a_group_model_that_cannot_be_is_refused_by_name(group, model, given, name):
    with pytest.raises((ValueError, TypeError), match=name):
        hierarchical(model, group[3], **given)


# Comparison of models


def test_cross_validation_is_a_loop_over_subjects_and_contexts():
    _, trials = learners(3, visits=6, model=RescorlaWagner)
    folds = Folds.read([RescorlaWagner, Perseverator], trials)
    result = cross_validate(ModelData.read(RescorlaWagner, trials), folds)
    frame = trials.frame
    for i, subject in enumerate(trials.subjects):
        total = 0.0
        for context in frame["context"].unique():
            mine, here = frame["subject"] == subject, frame["context"] == context
            rest = Trials.from_frame(frame[mine & ~here].reset_index(drop=True))
            alpha, beta, kappa = maximum_a_posteriori(RescorlaWagner, rest).estimate[0]
            rows = frame[mine & here].to_dict("records")
            total += learning((alpha, alpha, beta, kappa), rows)
        assert result.log_score[i] == pytest.approx(total, rel=1e-6)


def test_leaving_sequences_out_is_what_quadrature_says():
    """For a model of one parameter; what the sequences themselves shaped predicts too well."""
    n, draws = 25, 5000
    kappa = Perseverator.parameters.draw(np.random.default_rng(4), n)
    trials = simulate(Perseverator, kappa, InstrumentalLearning(12), 4)
    (own,) = Perseverator.parameters
    grid = own.mean + own.sd * np.linspace(-7, 7, 1001)
    data, folds = ModelData.read(Perseverator, trials), Folds.read([Perseverator], trials)
    elpd, bound = np.zeros(n), np.zeros(n)
    for (subject, _), rows in trials.frame.groupby(["subject", "context"], sort=False):
        whole = rows_of(trials, subject)
        left_out = stays_and_turns(rows.to_dict("records"), grid)
        log_weight = stays_and_turns(whole, grid) - left_out
        log_weight += norm.logpdf(grid, own.mean, own.sd)
        log_weight -= logsumexp(log_weight)
        value = logsumexp(log_weight + left_out)
        variance = (np.exp(log_weight) * (np.exp(left_out - value) - 1) ** 2).sum()
        elpd[int(subject)] += value
        bound[int(subject)] += np.sqrt(variance / draws)
    result = leave_one_sequence_out(data, folds, draws=draws, workers=1)
    # Draws are resampled and weighted once more: some 2.5 errors a sequence, and those of a
    # subject share its draws, so theirs add up. The bound is 4 of these.
    assert np.all(np.abs(result.elpd - elpd) < 10 * bound)
    assert result.unreliable == 0
    best = maximum_a_posteriori(Perseverator, data).log_likelihood
    assert np.median((best - elpd) / (10 * bound)) > 1


def stays_and_turns(rows, grid):
    """Log-likelihood of repetition at each value of a grid."""
    last, stays, turns, first = {}, 0, 0, 0
    for row in rows:
        before = last.get(row["context"])
        first += before is None
        stays += before == row["action"]
        turns += before is not None and before != row["action"]
        last[row["context"]] = row["action"]
    return stays * log_expit(grid) + turns * log_expit(-grid) - first * np.log(2)


def test_prediction_does_not_reward_parameters_that_fit_noise():
    _, trials = learners(200, visits=12, model=RandomResponder)
    models = (RandomResponder, Perseverator, RescorlaWagner)
    folds = Folds.read(models, trials)
    scores = {
        m.name: cross_validate(ModelData.read(m, trials), folds)["log_score"].sum() for m in models
    }
    fits = {m.name: maximum_likelihood(m, trials).log_likelihood.sum() for m in models}
    assert max(scores, key=scores.get) == min(fits, key=fits.get) == "random_responder"


def test_criteria_charge_for_parameters():
    _, trials = learners(6, visits=12, model=RescorlaWagner)
    silent = trials.frame.subject == "0"
    for lost, n in ((silent & False, 6), (silent, 5)):
        whole = without(trials, lost) if lost.any() else trials
        learner, responder = (
            maximum_likelihood(m, whole) for m in (RescorlaWagner, RandomResponder)
        )
        assert responder.aic[6 - n :] == pytest.approx(48 * 2 * np.log(2))
        assert learner.status.count("failed") == 6 - n
        assert learner.aic[1:] == pytest.approx(6 - 2 * learner.log_likelihood[1:])
        assert learner.bic[1:] == pytest.approx(3 * np.log(48) - 2 * learner.log_likelihood[1:])


# What `fit` says of a file


@pytest.fixture(scope="module")
def fitted():
    """A dozen learners with some answers lost, and what the verb `fit` says of them."""
    _, trials = learners(12, seed=2, model=RescorlaWagner)
    trials = without(trials, np.random.default_rng(0).random(len(trials)) < 0.05)
    return trials, knownminds.fit(trials, "rescorla_wagner", method="mle", workers=1)


def order_statistic(n):
    """The rank below which the median lies in at most 5% of samples, by counting subsets."""
    k = 0
    while sum(comb(n, j) for j in range(k + 1)) / 2**n < 0.05:
        k += 1
    return max(k, 1)


def test_a_group_of_point_estimates_is_their_median_and_order_statistics(fitted):
    subjects = fitted[1]["Subjects"]
    for row in fitted[1]["Parameters"].itertuples():
        each = sorted(subjects[row.parameter])
        k = order_statistic(len(each))
        assert row.estimate == pytest.approx(np.median(each))
        assert (row.low, row.high) == pytest.approx((each[k - 1], each[-k]))


def test_a_group_of_map_estimates_is_not_pulled_to_the_prior():
    middle = np.array([0.5, -2.0, 1.0, 0.0])
    z = middle + 0.5 * np.random.default_rng(3).standard_normal((40, 4))
    model = RescorlaWagnerDual
    trials = simulate(model, model.parameters.constrain(z), InstrumentalLearning(24), seed=3)
    found = knownminds.fit(trials, "rescorla_wagner_dual", method="map", workers=1)
    group = found["Parameters"].set_index("parameter")
    truth = dict(zip(model.parameters.names, model.parameters.constrain(middle), strict=True))
    for name, value in truth.items():
        assert group.loc[name, ["meaning", "quantity"]].tolist() == ["group mean", "group_mean"]
        assert group.loc[f"sd({name})", "quantity"] == "spread"
        assert group.loc[name, "low"] < value < group.loc[name, "high"]
        assert group.loc[f"sd({name})", "low"] < 0.5 < group.loc[f"sd({name})", "high"]
    low, high = found["Subjects"]["alpha_negative"].quantile([0.25, 0.75])
    assert truth["alpha_negative"] < low < high  # where estimates of single subjects lie


def test_the_verb_counts_every_row_and_every_status(fitted):
    trials, result = fitted
    frame = trials.frame
    assert result["Statuses"]["number"].sum() == len(result["Subjects"]) == result.attempted == 12
    outcomes = result["Outcomes of the answers"].set_index("outcome")["count"]
    assert outcomes[outcomes > 0].to_dict() == frame["outcome"].value_counts().to_dict()
    answered = frame[frame["outcome"] == "ok"].groupby("subject", sort=False).size()
    for row in result["Subjects"].itertuples():
        assert row.n_trials == answered[row.subject]
        rows = rows_of(trials, row.subject)
        likelihood = learning((row.alpha, row.alpha, row.beta, row.kappa), rows)
        assert row.log_likelihood == pytest.approx(likelihood, rel=1e-6)


def test_bounds_of_missing_answers_are_the_ends_that_enumeration_finds():
    """A missing answer may have been any choice, taught nothing, and is nowhere filled in."""
    (own,) = Perseverator.parameters
    truth = Perseverator.parameters.draw(np.random.default_rng(3), 4)
    whole = simulate(Perseverator, truth, InstrumentalLearning(6), 3)
    lost = np.zeros(len(whole), dtype=bool)
    for subject in range(4):
        rows = np.flatnonzero(whole.frame["subject"] == str(subject))
        lost[np.random.default_rng(subject).choice(rows, 5, replace=False)] = True
    trials = without(whole, lost)
    result = knownminds.fit(trials, "perseverator", workers=1).to_dict()["tables"]
    name = "between_which_estimates_lie_whatever_the_missing_answers"
    bounds = {row["subject"]: row for row in result[name]}

    def mode(rows):
        def minus(kappa):
            return -repeating(kappa, rows) - norm.logpdf(kappa, own.mean, own.sd)

        return minimize_scalar(minus, (-1, 3)).x

    for subject in range(4):
        rows = rows_of(trials, subject)
        missing = [k for k, row in enumerate(rows) if pd.isna(row["action"])]
        ends = [mode(rows)]
        for answers in product((0, 1), repeat=len(missing)):
            filled = [dict(row) for row in rows]
            for k, answer in zip(missing, answers, strict=True):
                filled[k]["action"] = answer
            ends.append(mode(filled))
        row = bounds[str(subject)]
        assert row["n_missing"] == 5
        assert row["kappa_lowest"] == pytest.approx(min(ends), abs=1e-4)
        assert row["kappa_highest"] == pytest.approx(max(ends), abs=1e-4)
        (session,) = [one for one in result["subjects"] if one["subject"] == str(subject)]
        assert session["kappa"] == pytest.approx(ends[0], abs=1e-4)


def test_a_model_without_parameters_is_a_fit_too():
    _, trials = learners(3)
    fit = maximum_a_posteriori(RandomResponder, trials)
    assert np.allclose(fit.log_likelihood, 96 * np.log(0.5))
    assert fit.status == ("ok",) * 3
    assert np.allclose(fit.aic, -2 * fit.log_likelihood)


def test_no_cell_of_a_field_that_separates_learners_is_empty():
    truth = np.tile([0.3, 4.0, 0.0], (3, 1))
    casinos = simulate(RescorlaWagner, truth, InstrumentalLearning(6), 4).to_frame()
    casinos["context"] = casinos["context"].astype(float)
    casinos.loc[30, "context"] = np.nan
    for frame in (casinos, casinos.drop(columns="environment")):
        with pytest.raises(ValueError, match=r"row 31 .*no context"):
            ModelData.read(RescorlaWagner, Trials.from_frame(frame))
