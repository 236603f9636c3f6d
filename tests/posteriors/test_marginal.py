"""The law of a group by marginal likelihood, against one that needs no points."""

import numpy as np
import pandas as pd
import pytest
import scipy
from scipy.stats import multivariate_normal

from knownminds.agents import AGENTS, RescorlaWagnerDual, simulate
from knownminds.environments import InstrumentalLearning, Trials, make
from knownminds.inference import ModelData, Unknowns
from knownminds.inference.groups import marginal as module
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.groups.marginal import marginal

LINE = AGENTS["linear_observer"]  # y = (w x + b) unit + sigma unit e: normal given w and b
SIGMA = 0.1
HELD = Unknowns.of(LINE, {"sigma": SIGMA})
BETWEEN = ["w ~ age"]
WITHIN = ["w ~ drug + (drug | subject)"]


def sessions(n, seed):
    """Let n observers answer twice, under a drug and without; slopes go by age and drug."""
    place, rng = make("marker_location"), np.random.default_rng(seed)
    age = np.linspace(-1, 1, n)
    own = np.array([0.8, 0.1]) + rng.standard_normal((n, 2)) * [0.15, 0.06]
    frames = []
    for drug in (0.0, 1.0):
        w = own[:, 0] + 0.1 * age + drug * (0.15 + 0.1 * rng.standard_normal(n))
        theta = np.column_stack([w, own[:, 1], np.full(n, SIGMA)])
        frame = simulate(LINE, theta, place, seed=seed + int(drug)).frame
        few = frame[frame["trial"] % 9 == 0]
        of_subject = age[few["subject"].astype(int)]
        frames.append(few.assign(drug=drug, age=of_subject, session=f"drug {drug:g}"))
    frame = pd.concat(frames).sort_values(["subject", "session", "trial"], kind="stable")
    return Trials.from_frame(frame.reset_index(drop=True), environment=place)


def exact(data, design, trials):
    """Return the negative log posterior of a group: answers are jointly normal given its law."""
    k, deviations, regressors = 2, design.deviations, design.regressors
    frame, unit = trials.frame, trials.frame["unit"].to_numpy(dtype=float)
    x, y = frame["value"].to_numpy(float) / unit, frame["response"].to_numpy(float) / unit
    row = pd.Index(data.subjects).get_indexer(
        design.of_trial if len(design.of_trial) else frame["subject"]
    )
    onto = np.eye(k)[deviations.moved]
    scale = np.array([p.group_sd for p in HELD.parameters])[deviations.moved]
    sd = 5 * np.append(HELD.parameters.sd, HELD.parameters.sd[regressors.parameter])
    centre = np.append(HELD.parameters.mean, np.zeros(len(regressors.names)))
    q, c = len(deviations.names), len(sd)

    def value(values):
        spread, turn = np.exp(values[c : c + q]), values[c + q :]
        root = spread[:, None] * deviations.roots(turn[None])[0]
        total = -0.5 * (((values[:c] - centre) / sd) ** 2).sum()
        total += (np.log(spread) - 0.5 * (spread / scale) ** 2).sum()
        total += (deviations.exponents * np.log(1 - np.tanh(turn) ** 2)).sum()
        weights = regressors.by_subject * values[k:c]
        middle = values[:k] + weights @ np.eye(k)[regressors.parameter]
        for i in range(deviations.n_subjects):
            mine = deviations.subject[row] == i
            points = np.column_stack([x[mine], np.ones(mine.sum())])
            enters = np.einsum("tk,tq,qk->tq", points, deviations.weight[row[mine]], onto) @ root
            covariance = enters @ enters.T + SIGMA**2 * np.eye(mine.sum())
            expected = (points * middle[row[mine]]).sum(axis=1)
            total += multivariate_normal.logpdf(y[mine], expected, covariance)
        return -total

    return value


@pytest.mark.parametrize(
    ("formula", "correlated"), [((), False), ((), True), (BETWEEN, False), (WITHIN, False)]
)
def test_points_find_the_group_that_the_exact_likelihood_has(formula, correlated):
    trials = sessions(10, 3)
    parameters = HELD.parameters
    names = tuple(trials.frame["subject"].unique())
    design = GroupDesign.plain(parameters, names, correlated)
    if formula:
        design = GroupDesign.of(formula, trials.frame, LINE, parameters)
    rows = design.of_trial if design.within else None
    data = ModelData.read(LINE, trials, rows=rows)
    found = marginal(data, HELD, design)
    value = exact(data, design, trials)
    best = scipy.optimize.minimize(value, found.values, method="BFGS", options={"gtol": 1e-4})
    error = np.sqrt(np.diag(found.covariance))
    # 256 points are some 200 equal ones: what they add to the error of a subject's mean, relative
    # to its spread, is 1 / sqrt(200), .07, and to that of the group no more.
    assert found.message == ""
    assert found.effective.min() > 100
    assert (np.abs(found.values - best.x) / error).max() < 0.15
    steps = 1e-2 * np.eye(len(best.x))
    slopes = [scipy.optimize.approx_fprime(best.x + s, value, 1e-5) for s in (*steps, *-steps)]
    information = (np.array(slopes[: len(steps)]) - slopes[len(steps) :]) / 2e-2
    assert error == pytest.approx(np.sqrt(np.diag(np.linalg.inv(information))), rel=0.1)


def test_the_mean_of_a_contrast_is_that_of_the_whole_law_on_the_natural_scale():
    place, parameters = InstrumentalLearning(), RescorlaWagnerDual.parameters
    rng = np.random.default_rng(0)
    z = parameters.mean + 0.5 * rng.standard_normal((12, 4))
    data = ModelData.read(
        RescorlaWagnerDual, simulate(RescorlaWagnerDual, parameters.constrain(z), place, seed=1)
    )
    unknowns = Unknowns.of(RescorlaWagnerDual)
    found = marginal(data, unknowns, GroupDesign.plain(parameters, data.subjects))
    contrast = {"alpha_positive": 1.0, "alpha_negative": -1.0}

    def brute(values):
        """Average over members of the group, evenly spaced."""
        normal = scipy.stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
        members = scipy.special.expit(values[:2, None] + np.exp(values[4:6, None]) * normal)
        return float(members[0].mean() - members[1].mean())

    mean, error = found.mean_of(contrast)
    assert mean == pytest.approx(brute(found.values), abs=1e-6)
    drawn = np.random.default_rng(1).multivariate_normal(found.values, 1e-4 * found.covariance, 400)
    # So near the estimate the contrast is linear; 400 draws know their spread to 3.5%.
    spread = np.std([brute(one) for one in drawn]) * 100
    assert error == pytest.approx(spread, rel=0.12)
    assert found.freedom == 11


def test_points_that_are_worth_too_little_are_said(monkeypatch):
    trials = sessions(6, 5)
    data = ModelData.read(LINE, trials)
    design = GroupDesign.plain(HELD.parameters, data.subjects)
    monkeypatch.setattr(module, "POINTS", (64, 64))
    monkeypatch.setattr(module, "LEAST_EFFECTIVE", 65.0)
    found = marginal(data, HELD, design)
    assert found.message.startswith("64 points of a subject are worth ")


def test_what_moves_subjects_without_a_deviation_is_refused():
    trials = sessions(6, 5)
    design = GroupDesign.of(["w ~ drug + (1 | subject)"], trials.frame, LINE, HELD.parameters)
    data = ModelData.read(LINE, trials, rows=design.of_trial)
    with pytest.raises(ValueError, match=r"do not deviate in w ~ drug.*Write \(column \| subject"):
        marginal(data, HELD, design)
