"""Observers with other priors, and weighers of cues, against quadrature and grids."""

import numpy as np
import pytest
from scipy.stats import norm

from knownminds.agents import AGENTS, play
from knownminds.environments import make

# Observers by quadrature


GRID = np.linspace(-3, 4, 70_001)


def observation(value=0.4, window=1, unit=1.0, ceiling=1.0):
    return {"value": value, "window": window, "unit": unit, "ceiling": ceiling}


def mean_of(agent, x):
    """The mean of the Gaussian that answers to x follow, from its log density at three places."""
    seen = observation(x)
    low, middle, high = (agent.log_density(seen, y) for y in (0.3, 0.5, 0.7))
    variance = -(0.2**2) / (low + high - 2 * middle)
    return 0.5 + (high - low) * variance / 0.4


def expected(name, values, x):
    return mean_of(AGENTS[name](**values), x)


def posterior_mean(prior, noise, x):
    weight = prior * norm.pdf(x, GRID, noise)
    return (weight * GRID).sum() / weight.sum()


@pytest.mark.parametrize("x", [0.12, 0.35, 0.5, 0.88])
def test_the_answer_is_the_mean_of_the_posterior_by_quadrature(x):
    noise = 0.09
    flat = ((GRID >= 0.25) & (GRID <= 0.75)).astype(float)
    own = {"middle": 0.5, "width": 0.5, "noise": noise, "sigma": 0.05}
    assert expected("uniform_observer", own, x) == pytest.approx(
        posterior_mean(flat, noise, x), abs=2e-4
    )
    wide = 0.12  # standard deviation of either mode
    own = {"middle": 0.45, "gap": 0.4, "sigma": 0.05, "spread": np.hypot(wide, noise),
           "w_prior": noise**2 / (noise**2 + wide**2)}  # fmt: skip
    for name, share in (("bimodal_observer", 0.5), ("skewed_observer", 0.25)):
        prior = share * norm.pdf(GRID, 0.65, wide) + (1 - share) * norm.pdf(GRID, 0.25, wide)
        assert expected(name, own, x) == pytest.approx(posterior_mean(prior, noise, x), abs=2e-4)
    own = {"rho": 0.3 / 0.2, "mu": 0.4, "weber": 0.1}
    mean = posterior_mean(norm.pdf(GRID, 0.4, 0.2), 0.3 * x, x)
    assert expected("weber_observer", own, x) == pytest.approx(mean, abs=2e-4)


def test_traces_of_two_rates_draw_the_answers():
    own = {"w_fast": 0.3, "weight_slow": 0.5, "rate_fast": 0.8, "rate_slow": 0.1, "sigma": 0.05}
    agent = AGENTS["two_scale_observer"](**own)
    fast = slow = 0.5
    for x in (0.2, 0.9, 0.4):
        mean = 0.35 * x + 0.3 * fast + 0.35 * slow
        assert mean_of(agent, x) == pytest.approx(mean)
        agent.learn(observation(x), -1, np.nan)
        fast, slow = fast + 0.8 * (x - fast), slow + 0.1 * (x - slow)


# Medians


MEDIAN_GRID = np.linspace(-1, 2, 60_001)  # steps of 5e-5


NOISE = 0.09


def of_grid(prior, x):
    weight = prior * norm.pdf(x, MEDIAN_GRID, NOISE)
    mass = weight.cumsum()
    return MEDIAN_GRID[np.searchsorted(mass, mass[-1] / 2)]


@pytest.mark.parametrize("x", [0.05, 0.12, 0.35, 0.52, 0.63, 0.88])
def test_the_answer_is_that_of_a_grid(x):
    own = {"middle": 0.45, "width": 0.5, "noise": NOISE, "sigma": 0.05}
    flat = ((MEDIAN_GRID >= 0.2) & (MEDIAN_GRID <= 0.7)).astype(float)
    assert expected("uniform_observer_median", own, x) == pytest.approx(of_grid(flat, x), abs=2e-4)


@pytest.mark.parametrize("name", [name for name in AGENTS if name.startswith("cue_weigher")])
def test_weighers_of_words_and_pictures_answer_by_the_equations(name):
    """By hand, with SciPy, every kind of trial and blur."""
    model = AGENTS[name]
    place = make("cue_conflict", condition="gradual_noise", n_values=3, repeats=3)
    values = {"alpha": 0.7, "sigma_text": 0.05, "sigma_image": 0.09, "bias_text": 0.02,
              "bias_image": -0.01, "per_pixel": 0.008}  # fmt: skip
    agent = model(**{p: values[p] for p in model.parameters.names})
    frame = play(agent, place, 5).frame
    image = np.full(len(frame), 0.09)
    if "per_pixel" in model.parameters.names:
        image = np.sqrt(image**2 + (0.008 * frame["blur"].to_numpy(float)) ** 2)
    optimal = image**2 / (image**2 + 0.05**2)
    weight = {"cue_weigher": 0.7, "cue_weigher_equal": 0.5, "cue_weigher_text": 1.0,
              "cue_weigher_image": 0.0}.get(name, optimal)  # fmt: skip
    modality = frame["modality"].to_numpy()
    weight = np.choose(modality, [1.0, 0.0, weight])
    x, c = frame["value"].to_numpy(float), frame["conflict"].to_numpy(float)
    mean = weight * (x + c / 2 + 0.02) + (1 - weight) * (x - c / 2 - 0.01)
    sd = np.sqrt((weight * 0.05) ** 2 + ((1 - weight) * image) ** 2)
    y = frame["response"].to_numpy(float)
    own = np.where(y <= 0, norm.logcdf(0, mean, sd), norm.logpdf(y, mean, sd))
    own = np.where(y >= 1, norm.logsf(1, mean, sd), own)
    seen = zip(frame.to_dict("records"), y, strict=True)
    result = [agent.log_probability(row, None, said) for row, said in seen]
    assert result == pytest.approx(own, rel=1e-9)
