"""What a design tells about parameters agrees with closed forms, and its gaps are named rightly."""

import numpy as np
import pytest
from scipy.special import expit

from knownminds.agents import Model, Perseverator, RescorlaWagnerDual, simulate
from knownminds.agents.parameters import IDENTITY, POSITIVE, UNIT, Parameter, Parameters
from knownminds.environments import InstrumentalLearning
from knownminds.inference import ModelData, maximum_likelihood
from knownminds.inference.fits.identifiability import identifiability

DEFAULT = InstrumentalLearning()
NO_REWARDS = InstrumentalLearning(win_probability=((0, 0),) * 4)
SUPPORTS = {"identity": IDENTITY, "log": POSITIVE, "logit": UNIT}


def coin(log_odds, **kinds):
    """Make an agent who picks action 1 with log-odds `log_odds(context, *theta)`.

    The function returns the value and its derivatives with respect to theta; a parameter's
    support is given by name, or as a pair of support and prior sd.
    """

    def predictor(theta, row, context):
        x, gradient = np.zeros(row.shape), np.zeros((*row.shape, theta.shape[1]))
        for place in zip(*np.nonzero(context >= 0), strict=True):
            x[place], gradient[place] = log_odds(int(context[place]), *theta[row[place]])
        return x, gradient

    def log_likelihood(theta, lapse, n_actions, row, start, action, context):
        assert lapse is None
        total, gradient = np.zeros(len(theta)), np.zeros(theta.shape)
        for block in range(len(row)):
            a = action[start[block] : start[block + 1]]
            # A sequence is one context, so one place stands for all of its trials.
            first = context[start[block]]
            x, slope = predictor(theta, row[block], first)
            ones, zeros = (a == 1).sum(axis=0), (a == 0).sum(axis=0)
            p = expit(x)
            np.add.at(total, row[block], ones * np.log(p) + zeros * np.log1p(-p))
            np.add.at(gradient, row[block], ((ones - (ones + zeros) * p) * slope.T).T)
        return total, gradient

    def play(theta, lapse, n_actions, row, start, uniforms, context):
        action = np.zeros(uniforms.shape)
        for block in range(len(row)):
            x, _ = predictor(theta, row[block], context[start[block]])
            trials = slice(start[block], start[block + 1])
            action[trials] = uniforms[trials] >= 1.0 - expit(x)
        return action

    pairs = {n: k if isinstance(k, tuple) else (SUPPORTS[k], 0.7) for n, k in kinds.items()}

    class Coin(Model):
        name = "coin"
        summary = source = "a test"
        given, n_uniforms, span, remembers = "action", 1, None, False
        columns = ("action", "context")
        design = ("context",)
        parameters = Parameters(
            *(Parameter(n, support, 0.1, sd, "a test") for n, (support, sd) in pairs.items())
        )

    Coin.log_likelihood = staticmethod(log_likelihood)
    Coin.simulate = staticmethod(play)
    return Coin


def told(model, **options):
    """Sentences about a toy in the smallest design that serves: 2 contexts, 4 visits."""
    design = InstrumentalLearning(4, win_probability=((0.5, 0.5),) * 2)
    return identifiability(model, design, **{"subjects": 6, "sessions": 24, **options})


def no_weak(result):
    return [s for s in result.sentences if "hardly" not in s]


# ----- the information


@pytest.mark.parametrize("kind", ["logit", "identity"])
def test_information_of_a_coin_is_that_of_bernoulli_trials(kind):
    """n p (1 - p) on the log-odds scale, whichever way the parameter is written."""

    def log_odds(context, value):
        if kind == "identity":
            return value, 1.0
        return np.log(value / (1 - value)), 1 / (value * (1 - value))

    sd, n, sessions = 1.3, 8, 500
    p = np.array([0.1, 0.35, 0.6])
    theta = p if kind == "logit" else np.log(p / (1 - p))
    result = told(
        coin(log_odds, p=(SUPPORTS[kind], sd)), theta=theta[:, None], sessions=sessions, seed=4
    )
    variance = n * p * (1 - p)
    fourth = variance * (1 + 3 * (n - 2) * p * (1 - p))  # central moment of the binomial
    error = np.sqrt((fourth - variance**2) / sessions)
    information = result.information[:, 0, 0] / sd**2
    # Monte-Carlo error of a mean of squared scores; 4 of them at 3 places: false alarm 2e-4.
    assert (np.abs(information - variance) < 4 * error).all()
    assert result.standard_error[0] == pytest.approx(1 / np.sqrt(information.mean()))
    share = 1 / np.sqrt(1 + information * sd**2)
    assert result.posterior_share[0] == pytest.approx(share.mean())


@pytest.fixture(scope="module")
def long_design():
    """One learner in a session of 1,000 trials, and the estimates of 400 such sessions."""
    theta, design = np.array([[0.35, 0.2, 3.0, 0.3]]), InstrumentalLearning(250)
    result = identifiability(RescorlaWagnerDual, design, theta=theta, sessions=400, seed=1)
    trials = simulate(RescorlaWagnerDual, np.repeat(theta, 400, axis=0), design, 77)
    return result, maximum_likelihood(RescorlaWagnerDual, trials)


def test_estimates_of_a_long_session_spread_as_expected(long_design):
    result, fit = long_design
    ratio = fit.z.std(axis=0, ddof=1) / result.standard_error
    # A standard deviation from 400 estimates has a relative error of 1 / sqrt(2 * 400), the
    # expected error from 400 squared scores the same: together 5%. 4 of them.
    assert np.abs(np.log(ratio)).max() < 4 * np.sqrt(2 / 800)


# ----- null directions in words


def logs(*signs):
    """Log-odds that are a signed sum of logs, with derivatives."""
    return lambda context, *theta: (
        float(np.dot(signs, np.log(theta))),
        np.array(signs) / np.array(theta),
    )


def sums(*signs):
    return lambda context, *theta: (float(np.dot(signs, theta)), np.array(signs, dtype=float))


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (coin(logs(1, -1), q="log", r="log"), "q and r only through log(q) - log(r)"),
        (coin(sums(1, 1), a="identity", b="identity"), "a and b only through a + b"),
        (
            coin(logs(1, -1, 1), a="log", b="log", c="log"),
            "a and b and c only through log(a) - log(b) + log(c)",
        ),
        (
            coin(logs(-1, 1), q=(POSITIVE, 0.3), r=(POSITIVE, 1.7)),  # weights survive scaling
            "q and r only through log(q) - log(r)",
        ),
        (
            coin(
                lambda context, a, b: (
                    np.log(a / (1 - a)) - 0.5 * np.log(b),
                    (1 / (a * (1 - a)), -0.5 / b),
                ),
                alpha="logit",
                beta="log",
            ),
            "alpha and beta only through logit(alpha) - 0.5 log(beta)",
        ),
    ],
)
def test_what_enters_only_together_is_said_in_words(model, sentence):
    assert no_weak(told(model)) == [sentence]


def test_parameters_that_are_told_apart_are_not_called_lost():
    """The same two parameters, met one by one in two contexts."""

    def apart(context, q, r):
        return (np.log(q), (1 / q, 0)) if context == 0 else (np.log(r), (0, 1 / r))

    result = told(coin(apart, q="log", r="log"))
    assert no_weak(result) == []
    assert result.null.shape == (2, 0)
    assert result.estimable({"q": 1})
    assert result.estimable({"q": 1, "r": -1})


def test_an_unused_parameter_is_told_not_at_all_and_the_rest_is_unharmed():
    def log_odds(context, q, unused, r):
        return np.log(q / r), (1 / q, 0, -1 / r)

    result = told(coin(log_odds, q="log", unused="identity", r="log"))
    assert no_weak(result) == ["q and r only through log(q) - log(r)", "unused: not at all"]
    assert result.estimable({"q": 1, "r": -1})
    assert not result.estimable({"q": 1})
    assert not result.estimable({"q": 1, "r": -1, "unused": 0.1})
    assert np.isinf(result.standard_error).all()
    assert result.posterior_share[1] == pytest.approx(1)
    # Prior sds are equal, so a ratio known ever better leaves 1 / sqrt(2) of each.
    assert (result.posterior_share[[0, 2]] > np.sqrt(0.5)).all()


PRODUCT = coin(lambda context, a, b: (a * b - 1, (b, a)), alpha="logit", beta="log")


def test_a_null_direction_that_turns_with_theta_is_detected():
    result = told(PRODUCT)
    assert result.null.shape == (2, 0)  # no direction is null everywhere
    assert np.isinf(result.standard_error).all()
    assert not result.estimable({"alpha": 1})


# ----- a real design


def test_without_rewards_the_rate_for_good_surprises_is_told_not_at_all():
    result = identifiability(RescorlaWagnerDual, NO_REWARDS)
    assert no_weak(result) == ["alpha_positive: not at all"]
    assert np.isinf(result.standard_error[0])
    assert np.isfinite(result.standard_error[1:]).all()


def test_the_default_design_tells_every_parameter():
    result = identifiability(RescorlaWagnerDual, DEFAULT)
    assert result.sentences == ()
    assert np.isfinite(result.standard_error).all()


def test_information_under_a_known_lapse_rate_has_its_closed_form():
    """p = (1 - lapse) s + lapse / 2 of repeating, s the logistic of kappa; 4 x 23 trials tell."""
    kappa, lapse, n, sessions = 1.5, 0.2, 92, 1000
    result = identifiability(
        Perseverator, DEFAULT, theta=[[kappa]], lapse=lapse, sessions=sessions, seed=2
    )
    s = expit(kappa)
    p = (1 - lapse) * s + lapse / 2
    expected = n * ((1 - lapse) * s * (1 - s)) ** 2 / (p * (1 - p))
    # The score is nearly normal with this variance: its square has a relative sd of sqrt(2).
    sd = Perseverator.parameters.sd[0]
    assert abs(result.information.item() / sd**2 / expected - 1) < 4 * np.sqrt(2 / sessions)


# ----- bounds, misuse, form


def test_a_gradient_that_is_not_finite_is_counted_and_left_out():
    model = coin(sums(1), a="identity")
    whole = told(model, theta=[[0.2], [-0.4]])
    kernel = model.log_likelihood

    def broken(*arguments):
        total, gradient = kernel(*arguments)
        gradient[:3] = np.nan
        return total, gradient

    model.log_likelihood = staticmethod(broken)
    result = told(model, theta=[[0.2], [-0.4]])
    assert (result.failed, whole.failed) == (3, 0)
    assert np.isfinite(result.information).all()
    assert result.information[1] == whole.information[1]
    assert result.sentences == whole.sentences

    model.log_likelihood = staticmethod(lambda *a: (kernel(*a)[0], kernel(*a)[1] * np.nan))
    with pytest.raises(ValueError, match="finite gradients"):
        told(model, theta=[[0.2], [-0.4]])


def test_a_score_of_central_differences_spans_what_is_told():
    """Without rewards no session's likelihood moves with the rate for good surprises."""
    result = identifiability(RescorlaWagnerDual, NO_REWARDS, subjects=4, sessions=8)
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(1), 6)
    data = ModelData.read(RescorlaWagnerDual, simulate(RescorlaWagnerDual, theta, NO_REWARDS, 3))
    slopes = []
    for k in range(4):
        h = 1e-5 * np.eye(4)[k]
        up, down = (data.log_likelihood(theta + s * h)[0] for s in (1, -1))
        slopes.append((up - down) / 2e-5)
    lost = [name for name, one in zip(result.names, slopes, strict=True) if abs(one).max() < 1e-6]
    assert lost == ["alpha_positive"]
    assert np.isinf(result.standard_error).tolist() == [name in lost for name in result.names]
