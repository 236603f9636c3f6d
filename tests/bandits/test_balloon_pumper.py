"""What is special to the pumper: its target, its beliefs, and what a session can tell of them."""

import itertools

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import BalloonPumper, MeanVariancePumper, simulate
from knownminds.environments import BalloonRisk, Trials
from knownminds.inference import ModelData, maximum_a_posteriori

P = BalloonPumper.parameters


def rows(played, subject="a"):
    """Lay out balloons as (type, pumps that hold, how it ends: "stop", "burst" or "gone")."""
    out = []
    for balloon, (kind, held, end) in enumerate(played):
        at = {"subject": subject, "balloon": balloon, "type": kind}
        out += [{**at, "pump": k, "action": 1, "reward": 1.0} for k in range(1, held + 1)]
        ends = {"stop": (0, 0.0), "burst": (1, float(-held)), "gone": (None, None)}
        action, reward = ends[end]
        out.append({**at, "pump": held + 1, "action": action, "reward": reward})
    table = pd.DataFrame(out)
    table["action"] = table["action"].astype("Int64")
    table["outcome"] = np.where(table["action"].isna(), "malformed", "ok")
    return table.assign(trial=np.arange(len(table)))


def data_of(played):
    return ModelData.read(BalloonPumper, Trials.from_frame(rows(played)))


def closed_form(theta, played):
    """Follow the definition, with the beliefs of each type kept apart."""
    phi, eta, gamma, tau = theta
    pumps, bursts, total = {}, {}, 0.0
    for kind, held, end in played:
        seen, burst = pumps.get(kind, 0), bursts.get(kind, 0)
        p = (phi + eta * (seen - burst)) / (1 + eta * seen)
        target = -gamma / np.log(p)
        made = held + (end == "burst")
        x = tau * (target - np.arange(1, made + 1))
        total -= np.log1p(np.exp(-x)).sum()
        if end == "stop":
            total -= np.log1p(np.exp(tau * (target - held - 1)))
        pumps[kind] = seen + made
        bursts[kind] = burst + (end == "burst")
    return total


PLAYED = [
    (0, 4, "stop"), (1, 2, "burst"), (0, 0, "burst"),
    (1, 3, "gone"), (1, 1, "stop"), (0, 6, "stop"),
]  # fmt: skip


@pytest.mark.parametrize(
    "theta", [(0.95, 0.1, 1.2, 0.5), (0.5, 2.0, 3.0, 0.2), (0.99, 0.001, 0.1, 2)]
)
def test_the_likelihood_is_that_of_the_definition(theta):
    total, _ = data_of(PLAYED).log_likelihood(np.array([theta]))
    assert total[0] == pytest.approx(closed_form(theta, PLAYED), rel=1e-12)


def test_pumps_before_a_burst_are_observed_too():
    theta = np.array([[0.9, 0.5, 1.0, 0.5]])
    gains = []
    for held in (1, 10):
        alone = data_of([(0, held, "burst")]).log_likelihood(theta)[0][0]
        both = data_of([(0, held, "burst"), (0, 3, "stop")]).log_likelihood(theta)[0][0]
        gains.append(both - alone)
    # Ten pumps that held before it make the burst weigh less: stopping at 3 is less likely.
    assert gains[1] < gains[0] - 0.5


def test_without_learning_the_target_is_that_of_the_prior_belief():
    phi, gamma, tau = 0.9, 1.3, 0.4
    theta = np.array([[phi, 1e-12, gamma, tau]])
    target = -gamma / np.log(phi)
    played = [(0, 5, "burst"), (0, 2, "stop"), (1, 30, "stop")]
    x = [tau * (target - k) for k in [*range(1, 7), 1, 2, *range(1, 31)]]
    x += [-tau * (target - 3), -tau * (target - 31)]
    expected = -np.log1p(np.exp(-np.array(x))).sum()
    assert data_of(played).log_likelihood(theta)[0][0] == pytest.approx(expected, rel=1e-9)


def test_with_much_learning_the_belief_is_the_share_of_pumps_that_held():
    theta = np.array([[0.9, 1e9, 1.0, 0.3]])
    played = [(0, 7, "burst"), (0, 4, "stop")]
    target = -1.0 / np.log(7 / 8)
    first = -1.0 / np.log(0.9)
    x = [0.3 * (first - k) for k in range(1, 9)] + [0.3 * (target - k) for k in range(1, 5)]
    expected = -np.log1p(np.exp(-np.array([*x, -0.3 * (target - 5)]))).sum()
    assert data_of(played).log_likelihood(theta)[0][0] == pytest.approx(expected, rel=1e-7)


def test_a_target_with_gamma_1_has_the_highest_expected_points_under_the_belief():
    for p in (0.5, 0.8, 0.95, 0.99):
        k = np.linspace(0, 500, 500_001)
        assert k[np.argmax(k * p**k)] == pytest.approx(-1 / np.log(p), abs=1e-3)


def test_probabilities_of_all_ways_to_play_sum_to_one():
    # Two balloons of at most 3 pumps, the first bursting at 3, the second at 2.
    ways = [[(0, h, "stop") for h in range(fatal)] + [(0, fatal - 1, "burst")] for fatal in (3, 2)]
    theta = np.array([[0.8, 0.3, 1.5, 0.7]])
    for lapse in (None, np.array([0.2])):
        total = 0.0
        for one, two in itertools.product(*ways):
            # A fit wants two trials, and these have two or more.
            total += np.exp(data_of([one, two]).log_likelihood(theta, lapse)[0][0])
        assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("lapse", [None, 0.3])
def test_extreme_parameters_stay_finite(lapse):
    z = np.array(list(itertools.product((-12.0, 0.0, 12.0), repeat=4)))
    theta = P.constrain(z)
    played = [(0, 100, "stop"), (0, 0, "burst"), (0, 20, "gone"), (0, 60, "burst"), (0, 0, "stop")]
    data = data_of(played).repeat(np.zeros(len(z), dtype=int))
    rates = None if lapse is None else np.full(len(z), lapse)
    total, gradient = data.log_likelihood(theta, rates)
    assert np.isfinite(total).all()
    assert np.isfinite(gradient).all()
    ends = np.array([[0.0, 0.1, 1.0, 1.0], [1.0, 0.1, 1.0, 1.0]])
    assert np.isfinite(data.repeat([0, 0]).log_likelihood(ends)[0]).all()


def test_a_balloon_longer_than_a_thousand_pumps_is_summed_right():
    theta = np.array([[0.999, 0.01, 1.0, 0.004]])
    played = [(0, 3000, "stop"), (0, 900, "stop")]
    total, _ = data_of(played).log_likelihood(theta)
    assert total[0] == pytest.approx(closed_form(theta[0], played), rel=1e-11)


def test_whoever_takes_more_risk_pumps_more():
    environment = BalloonRisk()
    means = []
    for gamma in (0.3, 1.0, 3.0):
        theta = np.tile([0.95, 0.05, gamma, 0.4], (200, 1))
        frame = simulate(BalloonPumper, theta, environment, 2).frame
        means.append(frame["action"].sum() / 200 / environment.n_all)
    assert means[0] < means[1] - 5 < means[2] - 10


def test_balloons_are_told_apart_by_type():
    """Who has seen big balloons only does not know small ones."""
    theta = np.array([[0.9, 1.0, 1.0, 0.5]])
    seen = data_of([(0, 60, "stop"), (1, 3, "stop")]).log_likelihood(theta)[0][0]
    alone = data_of([(1, 3, "stop")]).log_likelihood(theta)[0][0]
    big = data_of([(0, 60, "stop")]).log_likelihood(theta)[0][0]
    assert seen == pytest.approx(alone + big, rel=1e-12)


def test_parameters_are_recovered_and_from_somebody_elses_balloons_they_are_not():
    n = 300
    theta = P.draw(np.random.default_rng(5), n)
    trials = simulate(BalloonPumper, theta, BalloonRisk(), 6)
    fit = maximum_a_posteriori(BalloonPumper, trials)
    truth = P.unconstrain(theta)
    other = np.roll(fit.z, 1, axis=0)
    least = {"phi": 0.75, "eta": 0.55, "gamma": 0.8, "tau": 0.75}
    for k, name in enumerate(P.names):
        recovered, lost = (np.corrcoef(truth[:, k], z[:, k])[0, 1] for z in (fit.z, other))
        # Fisher's z has the standard error 0.058; the bounds lie 3 of them below what
        # 1,000 other subjects gave.
        assert recovered > least[name], name
        assert abs(lost) < 4 / np.sqrt(n - 3), name


def test_a_pump_is_weighed_by_its_mean_and_variance():
    values = {"phi": 0.1, "xi": 0.05, "rho": 0.02, "lambda_": 1.5, "tau": 0.8}
    agent = MeanVariancePumper(**values)

    def lead(pump):
        stop, go = agent.action_probabilities({"type": 0, "pump": pump})
        return np.log(go / stop)

    def worth(p, pump):
        """Mean and variance of a gamble: 1 point, or a loss of l."""
        outcomes, chances = np.array([1.0, -1.5 * (pump - 1)]), np.array([1 - p, p])
        mean = chances @ outcomes
        return 0.8 * (mean + 0.02 * (chances @ (outcomes - mean) ** 2))

    assert lead(1) == pytest.approx(worth(0.1, 1))
    # Two pumps that hold and a burst: 3 pumps, a third of which burst; the same balloon goes by
    # the belief with which it began.
    for pump in (1, 2):
        agent.learn({"type": 0, "pump": pump}, 1, 1.0)
        assert lead(pump + 1) == pytest.approx(worth(0.1, pump + 1))
    agent.learn({"type": 0, "pump": 3}, 1, -2.0)
    p = 0.1 + (1 - np.exp(-0.05 * 3)) * (1 / 3 - 0.1)
    assert lead(1) == pytest.approx(worth(p, 1))
