"""What a design tells about parameters agrees with closed forms, and its gaps are named rightly."""

import json
import time

import numpy as np
import pytest
from scipy.special import expit

from knownminds.agents import (
    Agent,
    Perseverator,
    RandomResponder,
    RescorlaWagner,
    RescorlaWagnerDual,
    simulate,
)
from knownminds.agents.parameters import (
    IDENTITY,
    POSITIVE,
    UNIT,
    Parameter,
    Parameters,
    interval,
)
from knownminds.agents.play import simulate_sessions
from knownminds.environments import InstrumentalLearning
from knownminds.inference import maximum_likelihood
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

    class Coin(Agent):
        name = "coin"
        summary = source = "a test"
        n_actions = 2
        columns = ("action", "context")
        design = ("context",)
        parameters = Parameters(
            *(Parameter(n, support, 0.1, sd, "a test") for n, (support, sd) in pairs.items())
        )

        def reset(self): ...
        def action_probabilities(self, observation): ...
        def learn(self, observation, action, reward): ...

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
    assert result.error_of({"p": 1}, prior=True) == pytest.approx(sd * np.sqrt((share**2).mean()))


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


def test_the_expected_error_of_a_contrast_uses_the_correlations(long_design):
    result, fit = long_design
    weights = {"alpha_negative": 1.0, "beta": 1.0}
    estimates = fit.z[:, 1] + fit.z[:, 2]
    ratio = estimates.std(ddof=1) / result.error_of(weights)
    assert abs(np.log(ratio)) < 4 * np.sqrt(2 / 800)
    alone = np.hypot(result.standard_error[1], result.standard_error[2])
    # It is not the sum of the variances: further off than 4 sampling errors of a log sd of 400.
    assert abs(np.log(result.error_of(weights) / alone)) > 4 / np.sqrt(2 * 399)


def test_ten_times_the_trials_give_a_coin_ten_times_the_information():
    small, large = (
        identifiability(Perseverator, InstrumentalLearning(n), theta=[[1.0]], sessions=2000)
        for n in (11, 101)
    )
    # All trials of a context but the first tell: 10 and 100. Relative error sqrt(2 / 2000) each.
    ratio = (large.information / small.information).item()
    assert abs(np.log(ratio / 10)) < 4 * np.sqrt(2 * 2 / 2000)


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
        (coin(logs(1, -1), q="log", r="log"), "q and r only through their ratio"),
        (coin(logs(1, 1), q="log", r="log"), "q and r only through their product"),
        (coin(sums(1, -1), a="identity", b="identity"), "a and b only through their difference"),
        (coin(sums(1, 1), a="identity", b="identity"), "a and b only through their sum"),
        (
            coin(logs(1, 1, 1), a="log", b="log", c="log"),
            "a, b and c only through their product",
        ),
        (coin(logs(1, -1, 1), a="log", b="log", c="log"), "a, b and c only through a * c / b"),
        (
            coin(sums(1, 1, -1), a="identity", b="identity", c="identity"),
            "a, b and c only through a + b - c",
        ),
        (
            coin(logs(1, -2), q="log", r="log"),
            "q and r only through 0.5 log(q) - log(r)",
        ),
        (
            coin(logs(-1, 1), q=(POSITIVE, 0.3), r=(POSITIVE, 1.7)),  # weights survive scaling
            "q and r only through their ratio",
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
        (
            coin(
                lambda context, a, b: (
                    np.log(a / (2 - a)) + b,
                    (1 / a + 1 / (2 - a), 1.0),
                ),
                a=(interval(0, 2), 0.7),
                b="identity",
            ),
            "a and b only through logit(a / 2) + b",
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
    assert no_weak(result) == ["q and r only through their ratio", "unused: not at all"]
    np.testing.assert_allclose(result.null_directions, [[1, 0, 1], [0, 1, 0]], atol=1e-6)
    assert result.estimable({"q": 1, "r": -1})
    assert not result.estimable({"q": 1})
    assert not result.estimable({"q": 1, "r": -1, "unused": 0.1})
    assert np.isinf(result.standard_error).all()
    assert np.isfinite(result.error_of({"q": 1, "r": -1}))
    assert result.posterior_share[1] == pytest.approx(1)
    # Prior sds are equal, so a ratio known ever better leaves 1 / sqrt(2) of each.
    assert (result.posterior_share[[0, 2]] > np.sqrt(0.5)).all()


def test_three_parameters_known_through_two_ratios():
    def ratios(context, a, b, c):
        if context == 0:
            return np.log(a / c), (1 / a, 0, -1 / c)
        return np.log(b / c), (0, 1 / b, -1 / c)

    result = told(coin(ratios, a="log", b="log", c="log"))
    assert no_weak(result) == ["a, b and c only through 2 combinations: a / c and b / c"]
    assert result.estimable({"a": 1, "b": -1})


def test_two_separate_groups_have_a_sentence_each():
    def log_odds(context, a, x, b, y):
        return (x + y, (0, 1, 0, 1)) if context else (np.log(a * b), (1 / a, 0, 1 / b, 0))

    result = told(coin(log_odds, a="log", x="identity", b="log", y="identity"))
    assert no_weak(result) == [
        "a and b only through their product",
        "x and y only through their sum",
    ]


PRODUCT = coin(lambda context, a, b: (a * b - 1, (b, a)), alpha="logit", beta="log")


def test_a_null_direction_that_turns_with_theta_is_detected():
    result = told(PRODUCT)
    assert result.null.shape == (2, 0)  # no direction is null everywhere
    assert no_weak(result) == [
        "alpha and beta cannot both be told from a session (only a combination that depends on "
        "their values)"
    ]
    assert np.isinf(result.standard_error).all()
    assert not result.estimable({"alpha": 1})


def test_at_a_single_theta_the_direction_is_given_and_called_local():
    result = told(PRODUCT, theta=[[0.5, 2.0]])
    # log(a b) moves by 1 - a = 0.5 with logit(a), by 1 with log(b).
    assert no_weak(result) == ["alpha and beta only through 0.5 logit(alpha) + log(beta)"]
    assert "the one theta looked at" in str(result)
    assert result.estimable({"alpha": 0.5, "beta": 1})
    assert "the one theta" not in str(told(PRODUCT))


def test_a_direction_lost_at_some_theta_only_is_counted():
    def log_odds(context, a, b):
        return (a, (1, 0)) if context == 0 or b < 0 else (b, (0, 1))

    result = told(coin(log_odds, a="identity", b="identity"), theta=[[0, 1], [0, -1], [0, 2]])
    assert no_weak(result) == [
        "at 1 of 3 theta a session says nothing along one more direction or several"
    ]
    assert result.estimable({"b": 1})


# ----- a real design


def test_without_rewards_the_rate_for_good_surprises_is_told_not_at_all():
    result = identifiability(RescorlaWagnerDual, NO_REWARDS)
    assert no_weak(result) == ["alpha_positive: not at all"]
    assert np.isinf(result.standard_error[0])
    assert np.isfinite(result.standard_error[1:]).all()
    assert "alpha_positive: not at all" in str(result)


def test_holding_that_rate_fixed_leaves_nothing_untold():
    result = identifiability(RescorlaWagnerDual, NO_REWARDS, fixed={"alpha_positive": 0.3})
    assert result.names == ("alpha_negative", "beta", "kappa")
    assert result.sentences == ()


@pytest.mark.parametrize("model", [RescorlaWagner, RescorlaWagnerDual])
def test_the_default_design_tells_every_parameter(model):
    result = identifiability(model, DEFAULT)
    assert result.sentences == ()
    assert np.isfinite(result.standard_error).all()
    assert "tells every parameter apart" in str(result)


def test_optimism_is_estimable_only_where_rewards_come():
    optimism = {"alpha_positive": 0.25, "alpha_negative": -0.25}
    assert identifiability(RescorlaWagnerDual, DEFAULT).estimable(optimism)
    without = identifiability(RescorlaWagnerDual, NO_REWARDS)
    assert not without.estimable(optimism)
    assert without.error_of(optimism) == np.inf
    assert without.estimable({"alpha_negative": 1, "beta": 0.3})


def test_one_visit_to_each_casino_tells_a_learner_nothing():
    result = identifiability(RescorlaWagner, InstrumentalLearning(1))
    assert result.sentences == ("alpha: not at all", "beta: not at all", "kappa: not at all")
    np.testing.assert_array_equal(result.posterior_share, 1)


def test_two_visits_cannot_separate_rate_and_temperature():
    """After one outcome only alpha * beta counts, as the first update is alpha / 2."""
    result = identifiability(RescorlaWagner, InstrumentalLearning(2))
    assert no_weak(result)[0].startswith("alpha and beta cannot both be told from a session")
    assert np.isfinite(result.standard_error[2])


def test_repeating_and_lapsing_cannot_both_be_told():
    """One probability of repetition, two parameters."""
    result = identifiability(Perseverator, DEFAULT, fit_lapse=True)
    assert no_weak(result)[0].startswith("kappa and lapse cannot both be told")
    known = identifiability(Perseverator, DEFAULT, lapse=0.1)
    assert known.names == ("kappa",)
    assert known.sentences == ()


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


def test_a_known_lapse_rate_costs_information():
    lapsing, attentive = (
        identifiability(RescorlaWagnerDual, DEFAULT, lapse=rate) for rate in (0.3, None)
    )
    assert (lapsing.standard_error > attentive.standard_error).all()


def test_a_rare_lapse_is_called_weak_not_null():
    result = identifiability(RescorlaWagnerDual, DEFAULT, fit_lapse=True)
    assert result.null.shape == (5, 0)
    assert len(result.sentences) == 1
    assert result.sentences[0].startswith("lapse: hardly at all; a session leaves 98.")
    assert 0.98 < result.posterior_share[-1] < 1


def test_a_weak_direction_across_parameters_is_written_as_a_combination():
    def log_odds(context, a, b):
        return (a + b, (1, 1)) if context == 0 else (0.05 * (a - b), (0.05, -0.05))

    result = told(coin(log_odds, a="identity", b="identity"))
    assert len(result.sentences) == 1
    assert result.sentences[0].startswith("a - b: hardly at all; a session leaves 99.")


def test_parameters_that_are_weak_one_by_one_are_named_one_by_one():
    """Equally weak directions have no axes of their own; the names come first."""

    def log_odds(context, a, b):
        return (0.1 * a, (0.1, 0)) if context == 0 else (0.1 * b, (0, 0.1))

    sentences = told(coin(log_odds, a="identity", b="identity")).sentences
    assert [s.split(":")[0] for s in sentences] == ["a", "b"]


# ----- bounds, misuse, form


def test_a_model_without_parameters_has_an_empty_result():
    result = identifiability(RandomResponder, DEFAULT)
    assert result.names == ()
    assert result.sentences == ()
    assert len(result.to_frame()) == 0
    assert "There is no parameter to estimate." in str(result)
    lapse = identifiability(RandomResponder, DEFAULT, fit_lapse=True)
    assert lapse.sentences == ("lapse: not at all",)


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
    assert "3 failed" in str(result)
    assert np.isfinite(result.information).all()
    assert result.information[1] == whole.information[1]
    assert result.sentences == whole.sentences

    def silent(*arguments):
        total, gradient = kernel(*arguments)
        gradient[:24] = np.nan  # all sessions at the first theta
        return total, gradient

    model.log_likelihood = staticmethod(silent)
    result = told(model, theta=[[0.2], [-0.4]])
    assert np.isnan(result.information[0]).all()
    assert result.standard_error[0] == pytest.approx(
        result.parameters.sd[0] / np.sqrt(whole.information[1].item())
    )
    model.log_likelihood = staticmethod(lambda *a: (kernel(*a)[0], kernel(*a)[1] * np.nan))
    with pytest.raises(ValueError, match="finite gradients"):
        told(model, theta=[[0.2], [-0.4]])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"theta": [[1.0, 0.5, 2.0, 0.0]]}, "alpha_positive lies strictly inside"),
        ({"theta": [[1.5, 0.5, 2.0, 0.0]]}, "alpha_positive lies in"),
        ({"theta": [[0.5, 0.5]]}, "theta needs 4 columns"),
        ({"theta": [[0.5, 0.5, 2.0, 0.0]], "fixed": {"beta": 3.0}}, "beta is fixed at 3"),
        ({"fixed": {"bata": 3.0}}, "Did you mean beta"),
        ({"sessions": 4}, "more than 4 sessions"),
        ({"subjects": 0}, "subjects=0"),
        ({"lapse": [0.1, 0.2]}, "one for each theta"),
        ({"lapse": 1.5}, "lapse lies in"),
        ({"lapse": 0.0, "fit_lapse": True}, "lapse lies strictly inside"),
    ],
)
def test_misuse_is_answered_in_one_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        identifiability(RescorlaWagnerDual, DEFAULT, **options)


def test_a_contrast_names_estimated_parameters_and_has_a_weight():
    result = identifiability(RescorlaWagnerDual, DEFAULT, subjects=2, sessions=8)
    with pytest.raises(ValueError, match="Nearest: beta"):
        result.estimable({"betta": 1.0})
    for empty in ({}, {"beta": 0.0}, {"beta": np.nan}):
        with pytest.raises(ValueError, match="not all 0"):
            result.error_of(empty)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    one, same, other = (
        identifiability(RescorlaWagner, DEFAULT, subjects=4, sessions=16, seed=s) for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.information, same.information)
    assert not np.array_equal(one.theta, other.theta)


def test_table_and_json_hold_the_same_numbers():
    result = identifiability(RescorlaWagnerDual, NO_REWARDS)
    frame, read = result.to_frame(), json.loads(result.to_json())
    assert list(frame["parameter"]) == list(result.names)
    assert read["parameters"][0]["standard_error"] is None  # JSON has no infinity
    assert read["parameters"][2]["standard_error"] == pytest.approx(frame["standard_error"][2])
    assert read["null_directions"] == [
        {"alpha_positive": 1.0, "alpha_negative": 0.0, "beta": 0.0, "kappa": 0.0}
    ]
    assert read["sentences"] == list(result.sentences)


def test_it_costs_little_more_than_simulating_the_sessions():
    """32 x 64 sessions of 96 trials: 0.15 s on an idle machine, whichever machine it is."""
    theta = np.repeat(RescorlaWagnerDual.parameters.draw(np.random.default_rng(0), 32), 64, axis=0)

    def seconds(work):
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    alone, whole = (
        min(seconds(work) for _ in range(4))
        for work in (
            lambda: simulate_sessions(RescorlaWagnerDual, theta, DEFAULT, 0),
            lambda: identifiability(RescorlaWagnerDual, DEFAULT),
        )
    )
    assert whole < 4 * alone
