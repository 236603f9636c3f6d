"""NRMSE against arithmetic, its parts, and its truth in known agents."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from magnitude_sets import answers_of
from scipy.integrate import quad
from scipy.stats import norm

from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES
from knownminds.inference.magnitudes.magnitude_answers import MagnitudeAnswers, TaskAnswers
from knownminds.inference.magnitudes.normalised_error import (
    bias_and_variance,
    error_by_items,
    normalised_error,
)


def only(frame: pd.DataFrame, modality: str = "text", rounds: int = 0) -> TaskAnswers:
    read = MagnitudeAnswers.read(frame, by="model", rounds=rounds)
    (cell,) = (cell for key, cell in read.cells.items() if key[3] == modality)
    return cell


def one_task(**settings: object) -> pd.DataFrame:
    return answers_of("a", tasks=("marker_location",), conditions=("base",), **settings)  # type: ignore[arg-type]


@pytest.mark.long
def test_the_error_of_the_nrmse_is_its_spread_over_new_answers() -> None:
    """400 participants without bias, whose spread has an error of 3.5%; four of them.

    Items are drawn with their stimuli, which are fixed here: up to a third wider.
    """
    cells = [only(one_task(prior=0.0, seed=seed)) for seed in range(400)]
    spread = np.std([normalised_error(cell)[0] for cell in cells], ddof=1)
    errors, freedom = zip(*map(error_by_items, cells), strict=True)
    assert 1.0 - 4 * 0.036 < np.sqrt(np.mean(np.square(errors))) / spread < 1.33 + 4 * 0.036
    assert set(freedom) == {96.0}  # 99 answers, three windows
    without = replace(cells[0], response=np.full(99, np.nan))
    assert np.isnan(error_by_items(without)).all()


def test_bias_and_variance_sum_to_the_squared_error() -> None:
    cell = only(one_task(prior=0.5))
    bias, variance = bias_and_variance(cell)
    assert bias + variance == pytest.approx(normalised_error(cell)[0] ** 2, rel=1e-12)
    # (0.5 x distance from the middle)**2 of the constant's, and noise of .03.
    spread = np.mean((np.linspace(0.1, 0.5, 11) - 0.3) ** 2)
    each = 0.03**2 / spread
    assert bias == pytest.approx(0.25 + each / 3, abs=4 * each * np.sqrt(2 / 33) + 0.03)
    assert variance == pytest.approx(each * 2 / 3, abs=4 * each * np.sqrt(2 / 66))
    once = only(one_task(repeats=1))
    assert np.isnan(bias_and_variance(once)[1])


def squared_error(value: float, mean: float, sigma: float) -> float:
    """Expected squared error of an answer that is cut off at the ends of the scale, 0 and 1."""

    def squared(y: float) -> float:
        return float((y - value) ** 2 * norm.pdf(y, mean, sigma))

    ends = value**2 * norm.cdf(0, mean, sigma) + (1 - value) ** 2 * norm.sf(1, mean, sigma)
    return float(quad(squared, 0, 1)[0] + ends)


def test_simulated_minds_have_the_error_that_their_parameters_imply() -> None:
    model, measure = AGENTS["static_bayes_observer"], MEASURES["normalised_error"]
    names = model.parameters.names
    mind = {"w_prior": 0.4, "mu_short": 0.35, "mu_medium": 0.5, "mu_long": 0.6, "sigma": 0.2}
    theta = np.tile([mind[name] for name in names], (300, 1))
    lived = simulate_sessions(model, theta, make("marker_location"), 1)
    frame = pd.DataFrame(
        {"subject": lived.subject.astype(str), "trial": lived.trial, **lived.columns}
    )
    values = measure.values(Trials.from_frame(frame)).value  # type: ignore[attr-defined]
    total, constant = 0.0, 0.0
    for low, name in ((0.1, "mu_short"), (0.3, "mu_medium"), (0.5, "mu_long")):
        for x in np.linspace(low, low + 0.4, 11):
            mean = 0.6 * x + 0.4 * mind[name]
            total += squared_error(x, mean, mind["sigma"])
            constant += (x - low - 0.2) ** 2
    truth = np.sqrt(total / constant)
    # The root is concave: a single subject's lies below by about var / (2 x), a share of .003.
    error = values.std() / np.sqrt(len(values))
    assert np.sqrt(np.mean(values**2)) == pytest.approx(truth, abs=4 * error)
    # The truth of the measure is simulated, with seven times as many sessions.
    simulated = measure.truth(model, theta[:1])[0]
    assert simulated == pytest.approx(truth, abs=4 * error / np.sqrt(2048 / 300))
    assert abs(values.mean() - measure.truth(model, theta[:1] * 0.9)[0]) > 4 * error
