"""Predictive checks: panels are read off rows, and wrong models are caught."""

from collections import defaultdict

import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

from knownminds.agents import ForgettingLearner, RescorlaWagner, simulate
from knownminds.environments import make
from knownminds.inference import Unknowns
from knownminds.validation.data import predictive
from knownminds.validation.data.fit import fit
from knownminds.validation.data.panels import panels_of
from knownminds.validation.data.predictive import (
    check_fit,
    discrepancies,
    panels_in,
    recorded_rows,
    replicated_from,
)
from knownminds.validation.data.support import Relived


def people(model, place, n, seed):
    theta = model.parameters.draw(np.random.default_rng(seed), n)
    return simulate(model, theta, place, seed), theta


def lived_by(trials, place):
    return Relived.of(trials.frame, place, trials.frame["subject"])


def check(trials, place, model, draws, replicates=None):
    """Hold trials against sessions that draws [D, N, K] of a model live."""
    relived = lived_by(trials, place)
    usable = np.ones(relived.n_units, dtype=bool)
    made = replicated_from(relived, place, Unknowns.of(model), model, draws, usable, 1)
    return check_fit(trials.frame, made)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(predictive, "SIMULATED_ROWS", 1)
    monkeypatch.setattr(predictive, "LEAST_REPLICATES", 40)


def rows_of(trials, place):
    relived = lived_by(trials, place)
    return recorded_rows(trials.frame, place, relived, np.arange(relived.n_units))


def shown(trials, place, title):
    """Return the cells of a panel of the data: (series, x) -> mean."""
    rows = rows_of(trials, place)
    panel = next(p for p in panels_of(place) if p.title == title)
    cells = panel.cells(rows)
    mean, _ = cells.means(rows, np.zeros(len(rows), dtype=int), 1)
    return {(int(s), float(x)): m for s, x, m in zip(cells.series, cells.x, mean[0], strict=True)}


@pytest.mark.parametrize(
    ("title", "visits"), [("staying after rewards", 5), ("returning to what was left", 8)]
)
def test_staying_and_returning_are_what_a_slow_loop_counts(title, visits):
    place = make("instrumental_learning", n_visits=visits)
    trials, _ = people(RescorlaWagner, place, 12, 5)
    stays, returns = defaultdict(list), defaultdict(list)
    for _, own in trials.frame.groupby(["subject", "context"], sort=False):
        action, reward = own["action"].tolist(), own["reward"].tolist()
        for t in range(1, len(action)):
            stays[int(reward[t - 1] > 0.5), t + 1.0].append(action[t] == action[t - 1])
            other = 1 - action[t - 1]
            if other in action[:t]:
                last = max(k for k in range(t) if action[k] == other)
                series, lag = int(reward[last] > 0.5), float(min(t - last, 5))
                returns[series, lag].append(action[t] == other)
    counted = {"staying after rewards": stays, "returning to what was left": returns}[title]
    slow = {key: np.mean(values) for key, values in counted.items() if len(values) >= 5}
    assert shown(trials, place, title) == pytest.approx(slow)


def test_the_discrepancy_is_a_squared_mahalanobis_distance():
    means = np.random.default_rng(1).normal(size=(50, 4))
    means[:, 3] = 0.2  # a mean that never varies tells nothing
    own = means[:, :3]
    spread = own.std(axis=0)
    shrunk = 0.95 * np.corrcoef(own.T) + 0.05 * np.eye(3)
    inverse = np.linalg.inv(shrunk * np.outer(spread, spread))
    slow = [mahalanobis(row, own.mean(axis=0), inverse) ** 2 for row in own]
    assert discrepancies(means) == pytest.approx(slow)


def test_a_p_is_uniform_where_parameters_are_drawn_from_the_prior(few):
    """Of data and replicates from one law none is special: a rank, whose law is known."""
    place, model = make("instrumental_learning", n_visits=4), RescorlaWagner
    found = []
    for seed in range(40):
        theta = model.parameters.draw(np.random.default_rng(seed), 41 * 4).reshape(41, 4, -1)
        trials = simulate(model, theta[0], place, seed)
        found += panels_in(check(trials, place, model, theta[1:]))["p"].tolist()[:1]
    # 40 ranks: the number below .5 is Binomial(40, about .5), and outside 9 .. 31 once in 4,000
    assert binom.ppf(1e-4, 40, 0.5) <= np.sum(np.array(found) < 0.5) <= binom.ppf(1 - 1e-4, 40, 0.5)


@pytest.mark.long
def test_a_fit_says_whether_the_model_looks_like_the_data(monkeypatch):
    """People forget half of what they do not choose; a model that does not forget is caught."""
    monkeypatch.setattr("knownminds.validation.data.support.SIMULATED", 20)
    place = make("instrumental_learning")
    theta = ForgettingLearner.parameters.draw(np.random.default_rng(1), 40)
    theta[:, ForgettingLearner.parameters.index("phi")] = 0.5
    trials = simulate(ForgettingLearner, theta, place, 1)
    wrong = fit(trials, "rescorla_wagner", workers=1)
    right = fit(trials, "forgetting_learner", workers=1)
    assert wrong.verdicts["returning to what was left"].word == "not reproduced"
    assert "not reproduced" not in {verdict.word for verdict in right.verdicts.values()}


def test_a_panel_is_not_reproduced_only_if_it_is_so_among_all_panels(monkeypatch):
    """Of data of the fitted model one panel of four has p .02: not rare among four."""
    monkeypatch.setattr("knownminds.validation.data.support.SIMULATED", 20)
    model = RescorlaWagner
    theta = model.parameters.draw(np.random.default_rng(1009), 12)
    trials = simulate(model, theta, make("instrumental_learning"), 9)
    found = fit(trials, "rescorla_wagner", workers=1)
    panels = found["Predictive checks"]
    assert (panels["p"] <= 0.05).any()
    assert panels["p, Holm"].tolist() == pytest.approx(multipletests(panels["p"], method="holm")[1])
    assert "not reproduced" not in {verdict.word for verdict in found.verdicts.values()}
