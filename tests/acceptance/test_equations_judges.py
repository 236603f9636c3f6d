"""Judges against their equations: causes, chances and magnitudes, by quadrature or by hand."""

import numpy as np
import pytest
from plain_colliders import ASKED, predicted
from plain_equations import judgements
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

from knownminds.agents import (
    AGENTS,
    CueCombiner,
    KalmanObserver,
    LinearObserver,
    LinearObserverLog,
    StaticBayesObserver,
    play,
    simulate,
)
from knownminds.environments import (
    Choice,
    Coins,
    Dice,
    MarkerLocation,
    MazeDistance,
    Preference,
    Trials,
)
from knownminds.inference import ModelData, maximum_likelihood

# Beliefs about chances


PLAIN, STATES = AGENTS["belief_sampler"], AGENTS["belief_sampler_stated"]


HONEST = dict.fromkeys(PLAIN.parameters.names, 0.0) | {"temperature": 1.0}


def mind(**changes):
    return PLAIN(**(HONEST | changes))


MARKS = ("first", "middle", "round", "repeat", "heads", "left")
ALL_FOUR = (Dice(1, 6), Dice(2, 4), Coins(3), Choice(6), Preference())


def test_without_biases_the_sampler_knows_the_truth():
    for environment in ALL_FOUR:
        for context in environment.contexts:
            cell = int(environment.cells(np.array([context.values]))[0])
            shares = mind().outcome_probabilities(cell)
            assert shares == pytest.approx(context.chance.probabilities, abs=1e-15)


def test_a_bias_multiplies_the_odds_of_the_outcomes_that_have_the_mark():
    for k, mark in enumerate(MARKS):
        result = 0
        for environment in ALL_FOUR:
            for context in environment.contexts:
                cell = int(environment.cells(np.array([context.values]))[0])
                true = context.chance.probabilities
                bent = mind(**{f"bias_{mark}": 0.7}).outcome_probabilities(cell)
                marked = context.marks[:, k] & (true > 0)
                result += marked.any()
                weight = true * np.where(marked, np.exp(0.7), 1.0)
                assert bent == pytest.approx(weight / weight.sum(), abs=1e-14)
        assert result, mark


def test_temperature_is_the_exponent_of_the_odds():
    cell = int(Coins(2).cells(np.array([[2, 0, 3, 0, -1]]))[0])
    true = np.array([1, 6, 9]) / 16
    for temperature in (0.25, 1.0, 2.0):
        weight = true ** (1 / temperature)
        shares = mind(temperature=temperature).outcome_probabilities(cell)
        assert shares == pytest.approx(weight / weight.sum(), abs=1e-14)
    # All alike at a very high temperature; only the most probable one at a very low one.
    assert mind(temperature=1e9).outcome_probabilities(cell) == pytest.approx([1 / 3] * 3)
    assert mind(temperature=1e-5).outcome_probabilities(cell).tolist() == [0, 0, 1]


def test_what_leaks_goes_to_outcomes_that_cannot_come_and_nothing_where_all_can():
    even = int(Dice.cells(np.array([[1, 6, 3, -1, 2, -1]]))[0])
    assert mind(leak=0.3).outcome_probabilities(even) == pytest.approx([0.1, 0.7 / 3] * 3)
    single = int(Dice.cells(np.array([[1, 6, 0, -1, -1, -1]]))[0])
    assert mind(leak=0.3).outcome_probabilities(single) == pytest.approx([1 / 6] * 6)


def test_a_letter_is_right_with_a_probability_or_chosen_by_its_position():
    agent = STATES(**HONEST, known=0.6, bias_b=0.0, bias_c=np.log(3), bias_d=0.0, bias_e=0.0)
    other = 0.4 * np.array([1, 1, 3, 1, 1]) / 7
    for correct in range(5):
        right = other + 0.6 * (np.arange(5) == correct)
        assert agent.letter_probabilities(correct) == pytest.approx(right)


# Observers along lines


def observation(value=0.4, window=1, unit=1.0, ceiling=1.0):
    return {"window": window, "value": value, "unit": unit, "ceiling": ceiling}


def test_answers_inside_have_the_density_of_a_gaussian_per_unit_of_the_task():
    theta = np.array([[0.7, 0.1, 0.05]])
    rng = np.random.default_rng(0)
    x = rng.uniform(2.0, 16.0, 40)
    y = np.clip(18 * (0.7 * x / 18 + 0.1) + rng.normal(0, 1.0, 40), 0.1, 59.0)
    result = judgements(LinearObserver, y, x, unit=18.0, ceiling=60.0).log_likelihood(theta)[0]
    assert result[0] == pytest.approx(norm.logpdf(y, 0.7 * x + 1.8, 0.05 * 18).sum(), rel=1e-12)


def test_the_log_scale_counts_its_jacobian():
    agent = LinearObserverLog(w=0.8, b=-0.2, sigma=0.15)
    shown = observation(9.0, unit=18.0, ceiling=60.0)
    at_the_end = sum(np.exp(agent.log_density(shown, end)) for end in (0.0, 60.0))
    inside, _ = quad(lambda y: np.exp(agent.log_density(shown, y)), 0.0, 60.0, limit=200)
    assert inside + at_the_end == pytest.approx(1.0, abs=1e-7)
    one = judgements(LinearObserverLog, [7.0, 11.0], [9.0, 9.0], unit=18.0, ceiling=60.0)
    expected = agent.log_density(shown, 7.0) + agent.log_density(shown, 11.0)
    assert one.log_likelihood(agent.theta[None])[0][0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("response", "beyond"), [(0.0, -1), (1.0, 1)])
def test_an_answer_at_an_end_has_the_probability_of_all_beyond_it(response, beyond):
    theta = np.array([[0.9, 0.05, 0.3]])
    mean = 0.9 * 0.4 + 0.05
    expected = norm.logcdf(beyond * (mean - response) / 0.3)
    result = judgements(LinearObserver, [response, 0.5], 0.4).log_likelihood(theta)[0][0]
    assert result - norm.logpdf(0.5, mean, 0.3) == pytest.approx(expected, rel=1e-12)


def test_answers_are_drawn_towards_the_prior_of_their_window():
    theta = [[0.5, 0.2, 0.5, 0.9, 1e-9]]
    frame = simulate(StaticBayesObserver, theta, MarkerLocation(), 1).frame
    mu = np.array([0.2, 0.5, 0.9])[frame["window"].astype(int)]
    assert np.allclose(frame["response"], 0.5 * frame["value"] + 0.5 * mu, atol=1e-7)


def test_maximum_likelihood_is_least_squares():
    theta = np.column_stack([np.full(3, 0.6), np.full(3, 0.2), [0.01, 0.02, 0.03]])
    trials = simulate(LinearObserver, theta, MarkerLocation(), 6)
    fit = maximum_likelihood(LinearObserver, trials)
    for k, (_, own) in enumerate(trials.frame.groupby("subject", sort=False)):
        x = np.column_stack([own["value"], np.ones(len(own))])
        weights, rest, _, _ = np.linalg.lstsq(x, own["response"].to_numpy(float), rcond=None)
        expected = [*weights, np.sqrt(rest[0] / len(own))]
        assert np.allclose(fit.estimate[k], expected, rtol=1e-5, atol=1e-6)


# Kalman observers


def beliefs(frame, q, p0, mu, r=1.0):
    """Follow one session by the textbook's recursion with measurement variance r."""
    result, place, m, p = [], None, 0.0, 0.0
    for window, value, unit in frame[["window", "value", "unit"]].to_numpy(float):
        if window != place:
            place, m, p = window, mu[int(window)], p0
        p += q
        gain = p / (p + r)
        m += gain * (value / unit - m)
        p = (1.0 - gain) * p
        result.append(m)
    return np.array(result)


@pytest.mark.parametrize("r", [1.0, 0.04, 30.0])
def test_the_likelihood_is_that_of_the_recursion_and_knows_only_ratios(r):
    agent = KalmanObserver.from_theta(np.array([0.3, 2.0, 0.2, 0.6, 0.9, 0.07]))
    frame = play(agent, MazeDistance(), 4).frame
    m = beliefs(frame, 0.3 * r, 2.0 * r, (0.2, 0.6, 0.9), r)
    y = frame["response"].to_numpy(float)
    assert ((y > 0) & (y < 60)).all()
    agent.reset()
    result = []
    for row in frame.to_dict("records"):
        result.append(agent.log_density(row, row["response"]))
        agent.learn(row, -1, np.nan)
    assert result == pytest.approx(norm.logpdf(y, 18 * m, 18 * 0.07), rel=1e-9)


def test_a_window_begins_with_its_own_belief_and_without_the_last_one():
    theta = np.array([1e-9, 1e-9, 0.11, 0.55, 0.99, 1e-9])  # a belief that nothing moves
    frame = play(KalmanObserver.from_theta(theta), MarkerLocation(), 1).frame
    mu = np.array([0.11, 0.55, 0.99])[frame["window"].astype(int)]
    assert np.allclose(frame["response"], mu, atol=1e-6)


# Combiners of cues


ALL = MarkerLocation(modality="all")


ONE = np.array([[0.7, 0.05, 0.1, 0.02]])


def test_the_answer_to_both_is_the_weighted_mean_of_the_two_before():
    theta = [[0.7, 0.05, 0.1, 1e-9]]
    frame = simulate(CueCombiner, theta, ALL, 1).frame
    wide = frame.pivot_table(index=["window", "item"], columns="modality", values="response")
    assert len(wide) == 99
    assert np.allclose(wide[2], 0.7 * wide[0] + 0.3 * wide[1], atol=1e-7)
    assert (wide[0] - wide[1]).abs().median() > 0.01


def test_the_likelihood_is_that_of_the_three_passes():
    trials = simulate(CueCombiner, ONE, ALL, 3)
    frame = trials.frame
    wide = frame.pivot_table(
        index=["window", "item"], columns="modality", values=["response", "value"]
    )
    y, x = wide["response"], wide["value"][0]
    passes = ((0, x, 0.05), (1, x, 0.1), (2, 0.7 * y[0] + 0.3 * y[1], 0.02))
    expected = 0.0
    for modality, mean, sd in passes:
        inside = norm.logpdf(y[modality], mean, sd)
        below, above = norm.logcdf(-mean / sd), norm.logsf((1.0 - mean) / sd)
        own = np.where(y[modality] <= 0, below, np.where(y[modality] >= 1, above, inside))
        expected += own.sum()
    result = ModelData.read(CueCombiner, trials).log_likelihood(ONE)[0][0]
    assert result == pytest.approx(expected, rel=1e-12)


def test_a_missing_answer_leaves_the_third_with_more_spread():
    trials = simulate(CueCombiner, ONE, ALL, 3)
    frame = trials.frame.copy()
    text = frame.index[(frame["modality"] == 0) & (frame["window"] == 1)][4]
    item = frame.loc[text, "item"]
    whole = ModelData.read(CueCombiner, trials).log_likelihood(ONE)[0][0]
    frame.loc[text, "response"] = None
    frame["outcome"] = "ok"
    frame.loc[text, "outcome"] = "malformed"
    holes = ModelData.read(CueCombiner, Trials.from_frame(frame))
    same = trials.frame[(trials.frame["window"] == 1) & (trials.frame["item"] == item)]
    (y_text, y_image, y), x = same["response"].to_numpy(float), same["value"].iloc[0]
    spread = np.sqrt(0.02**2 + (0.7 * 0.05) ** 2)
    change = norm.logpdf(y, 0.7 * x + 0.3 * y_image, spread)
    change -= norm.logpdf(y, 0.7 * y_text + 0.3 * y_image, 0.02) + norm.logpdf(y_text, x, 0.05)
    assert holes.log_likelihood(ONE)[0][0] - whole == pytest.approx(change, abs=1e-9)
    assert holes.n_trials[0] == 296


# Reasoners about colliders


def question(known, query, graph=0):
    known_values = [-1 if k is None else k for k in known]
    return {
        "graph": graph,
        "query": query,
        **dict(zip(("first", "second", "third"), known_values, strict=True)),
    }


TASK = {task: question(known, query) for task, (query, known) in ASKED.items()}


@pytest.mark.parametrize(
    ("name", "size"), [("noisy_or_three", 3), ("noisy_or", 4), ("noisy_or_five", 5)]
)
def test_a_noisy_or_answers_the_eleven_tasks_as_the_sum_over_eight_states_does(name, size):
    model = AGENTS[name]
    for theta in model.parameters.draw(np.random.default_rng(0), 10):
        expected, agent = predicted(theta[:-1], size), model.from_theta(theta)
        assert {t: agent.predict(q) for t, q in TASK.items()} == pytest.approx(expected, abs=1e-9)


def test_an_association_is_the_share_of_what_is_present_and_mixes_with_a_noisy_or():
    causal = {"p": 0.4, "b": 0.15, "m1": 0.7, "m2": 0.5, "sigma": 0.1}
    expected = predicted([0.4, 0.15, 0.7, 0.5], 4)
    agent = AGENTS["associative_reasoner"](**causal, k=0.25)
    for task, shown in TASK.items():
        known_values = [shown[n] for n in ("first", "second", "third") if shown[n] >= 0]
        mixed = 0.75 * expected[task] + 0.25 * np.mean(known_values)
        assert agent.predict(shown) == pytest.approx(mixed, abs=1e-9)


def test_log_odds_add_up_where_a_noisy_or_multiplies():
    leak, single = 0.1, [1 - 0.9 * (1 - m) for m in (0.6, 0.7)]
    weights = [logit(e) - logit(leak) for e in single]
    agent = AGENTS["logistic_collider"](
        **dict(zip(AGENTS["logistic_collider"].parameters.names,
                   [0.5, logit(leak), *weights, 0.1], strict=True))
    )  # fmt: skip
    effects = [agent.predict(TASK[task]) for task in ("I", "III")]
    assert effects == pytest.approx([leak, expit(logit(leak) + sum(weights))], abs=1e-9)


@pytest.mark.parametrize("lapse", [0.0, 0.2])
@pytest.mark.parametrize("sigma", [0.05, 0.6])
def test_density_and_the_masses_at_both_ends_make_one(lapse, sigma):
    agent = AGENTS["noisy_or"](p=0.3, b=0.1, m1=0.8, m2=0.6, sigma=sigma, lapse=lapse)

    def density(y):
        return np.exp(agent.log_probability(TASK["VIII"], None, y))

    middle = [100 * agent.predict(TASK["VIII"])]
    inside, _ = quad(density, 0, 100, points=middle, limit=200)
    assert inside + density(0.0) + density(100.0) == pytest.approx(1.0, abs=1e-7)
    assert density(0.0) + density(100.0) > (1e-6 if sigma < 0.1 else 0.1)


def test_a_mutation_sampler_answers_as_very_many_walks_do():
    """States are counted on walks that are drawn: no matrix and no expectation."""
    p, b, m1, m2, steps, n = 0.4, 0.15, 0.8, 0.6, 5.0, 40_000
    state = np.arange(8)
    c1, c2, e = state >> 2, state >> 1 & 1, state & 1
    works = 1 - (1 - b) * (1 - m1) ** c1 * (1 - m2) ** c2
    joint = np.where(c1, p, 1 - p) * np.where(c2, p, 1 - p) * np.where(e, works, 1 - works)
    rng = np.random.default_rng(1)
    length, now, visits = rng.poisson(steps, n), rng.choice([0, 7], n), np.zeros((n, 8))
    visits[np.arange(n), now] = 1.0
    for t in range(1, length.max() + 1):
        proposed = now ^ rng.choice([4, 2, 1], n)
        now = np.where(rng.random(n) < joint[proposed] / joint[now], proposed, now)
        walks = np.flatnonzero(length >= t)
        visits[walks, now[walks]] += 1.0
    agent = AGENTS["mutation_sampler"](**{"p": p, "b": b, "m1": m1, "m2": m2, "lambda": steps,
                                          "sigma": 0.1})  # fmt: skip
    for task, (query, known) in ASKED.items():
        bits = (c1, c2, e)
        fits = np.ones(8, dtype=bool)
        for bit, k in zip(bits, known, strict=True):
            fits &= True if k is None else bit == k
        a, c = visits[:, fits & (bits[query] == 1)].sum(axis=1), visits[:, fits].sum(axis=1)
        share = a.sum() / c.sum()
        # Standard error of a ratio (delta method), in eleven tasks.
        spread = (a - share * c).std() / np.sqrt(n) / c.mean()
        assert abs(agent.predict(TASK[task]) - share) < 4.5 * spread, task
