"""Point fits find the optimum, say how sure they are, and name what they cannot know."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from knownminds.agents import (
    AGENTS,
    RandomResponder,
    RescorlaWagner,
    RescorlaWagnerDual,
    WinStayLoseShift,
    simulate,
)
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.inference import ModelData, Unknowns, maximum_a_posteriori, maximum_likelihood
from knownminds.inference.fits.point import inverted


def learners(n, visits=24, seed=1, model=RescorlaWagnerDual, **settings):
    theta = model.parameters.draw(np.random.default_rng(seed), n)
    return theta, simulate(model, theta, InstrumentalLearning(visits), seed, **settings)


def shuffled(trials, seed=0):
    """Permute (action, reward) within each subject: what was learned is lost, the rates stay."""
    frame, rng = trials.to_frame(), np.random.default_rng(seed)
    columns = ["action", "reward"]
    for _, rows in frame.groupby("subject").groups.items():
        frame.loc[rows, columns] = frame.loc[rng.permutation(rows), columns].to_numpy()
    return Trials.from_frame(frame)


@pytest.fixture(scope="module")
def two_hundred():
    theta, trials = learners(200, seed=11)
    return theta, trials, maximum_a_posteriori(RescorlaWagnerDual, trials)


def test_no_start_of_scipy_finds_a_better_posterior(two_hundred):
    _, trials, fit = two_hundred
    parameters = RescorlaWagnerDual.parameters
    data = ModelData.read(RescorlaWagnerDual, trials)
    rng = np.random.default_rng(0)
    for i in range(12):
        own = data.repeat([i])

        def objective(z, own=own):
            theta = parameters.constrain(z[None])
            total, gradient = own.log_likelihood(theta)
            prior, slope = parameters.log_prior(z[None])
            return -(total + prior)[0], -(gradient * parameters.slope(theta) + slope)[0]

        ends = [
            minimize(objective, rng.normal(parameters.mean, parameters.sd), jac=True).fun
            for _ in range(5)
        ]
        assert fit.log_posterior[i] >= -min(ends) - 1e-6


def test_recovery_beats_chance_and_a_shuffled_session_does_not_recover(two_hundred):
    theta, trials, fit = two_hundred
    lost = maximum_a_posteriori(RescorlaWagnerDual, shuffled(trials))
    for k in range(2):
        recovered = np.corrcoef(theta[:, k], fit.estimate[:, k])[0, 1]
        chance = np.corrcoef(theta[:, k], lost.estimate[:, k])[0, 1]
        # Under no relation r has the standard error 1 / sqrt(199); 3.5 of them: one in 2,000.
        bound = 3.5 / np.sqrt(199)
        assert recovered > bound
        assert abs(chance) < bound


def test_standard_errors_are_those_of_the_numeric_hessian(two_hundred):
    _, trials, fit = two_hundred
    data = ModelData.read(RescorlaWagnerDual, trials).repeat([3])
    parameters = RescorlaWagnerDual.parameters

    def log_posterior(z):
        total = data.log_likelihood(parameters.constrain(z[None]))[0]
        return (total + parameters.log_prior(z[None])[0])[0]

    h, hessian = 1e-3, np.empty((4, 4))
    for i in range(4):
        for j in range(4):
            a, b = np.eye(4)[i] * h, np.eye(4)[j] * h
            z = fit.z[3]
            hessian[i, j] = (
                log_posterior(z + a + b)
                - log_posterior(z + a - b)
                - log_posterior(z - a + b)
                + log_posterior(z - a - b)
            ) / (4 * h * h)
    expected = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    assert np.allclose(fit.standard_error[3], expected, rtol=1e-3)


def test_one_fit_and_many_give_the_same(two_hundred):
    _, trials, fit = two_hundred
    alone = Trials.from_frame(trials.frame[trials.frame.subject == "150"])
    single = maximum_a_posteriori(RescorlaWagnerDual, alone)
    assert np.allclose(single.z[0], fit.z[150], atol=1e-5)
    threaded = maximum_a_posteriori(RescorlaWagnerDual, trials, workers=2)
    assert np.array_equal(threaded.z, fit.z)


def test_a_wrong_gradient_is_caught():
    class Wrong(RescorlaWagnerDual):
        name = "wrong"

        @staticmethod
        def log_likelihood(*arguments):
            total, gradient = RescorlaWagnerDual.log_likelihood(*arguments)
            gradient[:, 0] *= 1.05
            return total, gradient

    theta, trials = learners(20)
    data = ModelData.read(Wrong, trials)
    h = np.array([1e-5, 0, 0, 0])
    numeric = (data.log_likelihood(theta + h)[0] - data.log_likelihood(theta - h)[0]) / 2e-5
    assert not np.allclose(data.log_likelihood(theta)[1][:, 0], numeric, rtol=1e-6, atol=1e-6)
    right = maximum_a_posteriori(RescorlaWagnerDual, trials)
    wrong = maximum_a_posteriori(Wrong, trials)
    # The wrong slope ends elsewhere, with a lower posterior: comparing fits would show it too.
    assert (wrong.log_posterior < right.log_posterior - 1e-6).mean() > 0.5


def test_constant_and_perfect_responders_get_a_status_and_no_crash():
    environment = InstrumentalLearning()
    environment.reset(seed=1)
    context = environment.design.table["context"]
    payoffs = environment.design.table["payoffs"]
    actions = {
        "constant": np.zeros(96, dtype=int),
        "alternating": np.arange(96) % 2,
        "perfect": payoffs.argmax(axis=1),
        "worst": payoffs.argmin(axis=1),
    }
    rows = [
        pd.DataFrame(
            {
                "subject": name,
                "trial": np.arange(96),
                "context": context,
                "action": action,
                "reward": environment.follow(environment.design, action)["reward"],
            }
        )
        for name, action in actions.items()
    ]
    trials = Trials.from_frame(pd.concat(rows))
    for model in (m for m in AGENTS.values() if m.plays(environment)):
        for method in (maximum_likelihood, maximum_a_posteriori):
            fit = method(model, trials)
            assert set(fit.status) <= {"ok", "boundary", "flat", "failed"}
            assert np.isfinite(fit.log_likelihood).all()
            assert all(m for m, s in zip(fit.message, fit.status, strict=True) if s != "ok")
    likelihood = maximum_likelihood(WinStayLoseShift, trials)
    assert "boundary" in likelihood.status


def test_maximum_likelihood_names_the_runaways():
    _, trials = learners(200, visits=6)
    fit = maximum_likelihood(RescorlaWagnerDual, trials)
    assert fit.counts()["boundary"] > 20
    assert (
        fit.log_likelihood >= maximum_a_posteriori(RescorlaWagnerDual, trials).log_likelihood - 1e-6
    ).all()


def test_fixed_parameters_stay_and_unknown_or_impossible_ones_are_refused(two_hundred):
    _, trials, fit = two_hundred
    held = maximum_a_posteriori(RescorlaWagnerDual, trials, fixed={"kappa": 0.0})
    assert held.names == ("alpha_positive", "alpha_negative", "beta")
    assert (held.log_likelihood <= fit.log_likelihood + 1.0).mean() > 0.9
    with pytest.raises(ValueError, match="Did you mean kappa"):
        maximum_a_posteriori(RescorlaWagnerDual, trials, fixed={"kapa": 0.0})
    with pytest.raises(ValueError, match="alpha_positive lies in"):
        maximum_a_posteriori(RescorlaWagnerDual, trials, fixed={"alpha_positive": 2.0})


def test_lapses_bias_the_fit_unless_they_are_in_it():
    theta = np.tile([0.4, 6.0, 0.0], (60, 1))
    trials = simulate(RescorlaWagner, theta, InstrumentalLearning(300), 3, lapse=0.1)
    without = maximum_a_posteriori(RescorlaWagner, trials)
    with_lapse = maximum_a_posteriori(RescorlaWagner, trials, lapse=True)
    assert with_lapse.names[-1] == "lapse"
    error = [np.median(fit.estimate[:, 1]) - 6.0 for fit in (without, with_lapse)]
    assert error[0] < -1.0
    assert abs(error[1]) < abs(error[0]) / 2


def test_a_model_without_parameters_is_a_fit_too():
    _, trials = learners(3)
    fit = maximum_a_posteriori(RandomResponder, trials)
    assert np.allclose(fit.log_likelihood, 96 * np.log(0.5))
    assert fit.status == ("ok",) * 3
    assert np.allclose(fit.aic, -2 * fit.log_likelihood)


def test_starts_agree_on_long_sessions_and_the_count_is_honest():
    _, trials = learners(50, visits=96)
    fit = maximum_a_posteriori(RescorlaWagnerDual, trials)
    assert (fit.agreement >= 0.2).all()
    assert fit.agreement.mean() > 0.95
    with pytest.raises(ValueError, match="at least one start"):
        maximum_a_posteriori(RescorlaWagnerDual, trials, starts=0)


def test_unknowns_put_gradients_where_they_belong():
    theta, trials = learners(4)
    data = ModelData.read(RescorlaWagnerDual, trials)
    unknowns = Unknowns.of(RescorlaWagnerDual, {"alpha_negative": 0.3}, lapse=True)
    assert unknowns.parameters.names == ("alpha_positive", "beta", "kappa", "lapse")
    free = np.column_stack([theta[:, [0, 2, 3]], np.full(4, 0.05)])
    gradient = unknowns.log_likelihood(data, free)[1]
    for k in range(4):
        h = np.eye(4)[k] * 1e-5
        up, down = (unknowns.log_likelihood(data, free + s * h)[0] for s in (1, -1))
        assert np.allclose(gradient[:, k], (up - down) / 2e-5, rtol=1e-5, atol=1e-5)


def test_a_subject_without_any_response_is_a_counted_failure():
    _, trials = learners(2)
    frame = trials.to_frame()
    silent = frame.subject == "1"
    frame.loc[silent, ["action", "reward"]] = None
    frame.loc[silent, "outcome"] = "refused"
    fit = maximum_a_posteriori(RescorlaWagnerDual, Trials.from_frame(frame))
    assert fit.status[1] == "failed"
    assert fit.message[1] == "no trial has a response"
    assert fit.counts()["failed"] == 1


@pytest.mark.parametrize("name", ["condense", "arrange"])
def test_a_model_that_prepares_trials_by_an_older_name_is_refused(name):
    with pytest.raises(TypeError, match=f"Agent.prepare; got {name} in Merger. Write prepare"):
        type("Merger", (RescorlaWagner,), {name: staticmethod(lambda *places: places)})


def test_a_curvature_that_elimination_finds_singular_is_none_and_the_others_are_inverted():
    # Of rank 2, and by rounding its smallest eigenvalue is 4e-15.
    flat = np.array([[8.0, -4.0, -2.0], [-4.0, 10.0, 11.0], [-2.0, 11.0, 13.0]])
    round_ = np.diag([1.0, 2.0, 4.0])
    inverse = inverted(np.stack([flat, round_]))
    assert np.isnan(inverse[0]).all()
    assert inverse[1].diagonal().tolist() == [1.0, 0.5, 0.25]
