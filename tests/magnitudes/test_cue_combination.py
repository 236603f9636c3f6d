"""The five references of cue combination, and measures of single participants."""

import numpy as np
import pandas as pd
import pytest
from magnitude_sets import answers_of

from knownminds.agents import AGENTS, simulate
from knownminds.environments import make
from knownminds.inference import MEASURES
from knownminds.inference.magnitudes.cue_combination import (
    CueCombination,
    CuePairs,
    combine,
    cue_combination,
)
from knownminds.inference.magnitudes.magnitude_answers import (
    MODALITIES,
    MagnitudeAnswers,
    TaskAnswers,
)

ITEMS = 3 * 33


def frame_of(said: dict[str, np.ndarray], value: np.ndarray) -> pd.DataFrame:
    frame = answers_of("a", tasks=("marker_location",), conditions=("base",), repeats=3)
    for k, name in enumerate(MODALITIES):
        mine = frame["modality"] == k
        frame.loc[mine, "value"] = value
        frame.loc[mine, "response"] = said[name]
    return frame


def combined(frame: pd.DataFrame, rounds: int = 0) -> CueCombination:
    found = cue_combination(MagnitudeAnswers.read(frame, "model", rounds), "a", "marker_location")
    assert found is not None
    return found


def correlated(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    value = np.linspace(0.1, 0.9, ITEMS)
    shared = 0.05 * rng.standard_normal(ITEMS)
    text = 0.1 + 0.7 * (value + shared + 0.01 * rng.standard_normal(ITEMS))
    image = value + 2 * shared + 0.03 * rng.standard_normal(ITEMS)
    return value, text, image


def pairs_of(n: int, rounds: int, rng: np.random.Generator) -> CuePairs:
    """Answers to each cue drawn towards the middle, and to both between these."""
    value = np.tile(np.linspace(0.1, 0.9, n // 3), 3)
    text, image = (
        0.5 + slope * (value - 0.5) + sd * rng.standard_normal(n)
        for slope, sd in ((0.6, 0.03), (0.8, 0.06))
    )
    both = 0.8 * text + 0.2 * image + 0.02 * rng.standard_normal(n)
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=rounds)
    zero, number = np.zeros(n), np.arange(n)
    answers = TaskAnswers(value, both, 0.5 + zero, zero.astype(int), zero.astype(int), number,
                          number, zero, 1.0, 1.0, np.vstack([np.ones((1, n)), drawn]))  # fmt: skip
    return CuePairs(answers, text, image, "items", 0)


@pytest.mark.parametrize("reference", ["bayes_oracle", "bayes_residuals"])
@pytest.mark.parametrize("n", [12, 99])
def test_the_interval_of_an_efficiency_holds_that_of_endless_items(n: int, reference: str) -> None:
    truth = combine(pairs_of(300_000, 0, np.random.default_rng(0))).efficiency[reference][0]
    inside = []
    for k in range(200):
        found = combine(pairs_of(n, 200, np.random.default_rng(k + 1))).efficiency[reference]
        low, high = np.quantile(found[1:], [0.16, 0.84])
        inside.append(low <= truth <= high)
    # 68% are due, with an error of .033. With 12 items both have .61 and .58 in 400 samples, and an
    # oracle that is not mirrored .08; with 99 that has .56.
    short = 0.17 if n == 12 else 0.1
    assert -short < np.mean(inside) - 0.68 < 0.1


def test_published_weights_follow_the_answers_and_ours_their_errors() -> None:
    value, text, image = correlated()
    weights = combined(frame_of({"text": text, "image": image, "text+image": text}, value))
    found = weights.text_weight
    by_answers = image.var() ** -1, text.var() ** -1
    assert found["bayes_responses"][0] == pytest.approx(by_answers[1] / sum(by_answers))
    errors = (text - value).var(), (image - value).var()
    assert found["bayes_residuals"][0] == pytest.approx(errors[1] / sum(errors))
    assert found["equal"][0] == 0.5


def test_the_oracle_is_the_generalised_least_squares_of_calibrated_answers() -> None:
    value, text, image = correlated()
    found = combined(frame_of({"text": text, "image": image, "text+image": text}, value))
    calibrated = [np.polyval(np.polyfit(said, value, 1), said) for said in (text, image)]
    residual = np.array([said - value for said in calibrated])
    weights = np.linalg.solve(np.cov(residual), np.ones(2))
    weights /= weights.sum()
    assert found.text_weight["bayes_oracle"][0] == pytest.approx(weights[0], rel=1e-9)
    assert weights[1] < 0  # the noise that the picture shares is subtracted
    best = weights @ np.array(calibrated)
    # Middles are those of the windows, which the frame still has.
    assert found.reference_error["bayes_oracle"][0] < found.reference_error["bayes_residuals"][0]
    assert np.mean((best - value) ** 2) == pytest.approx(
        np.mean((text - value) ** 2)
        * (found.reference_error["bayes_oracle"][0] / found.error[0]) ** 2
    )


def test_regression_to_the_mean_is_the_prior_weight_without_its_limits() -> None:
    measure, model = MEASURES["regression_to_the_mean"], AGENTS["static_bayes_observer"]
    names = model.parameters.names
    mind = {"w_prior": 0.0, "mu_short": 0.3, "mu_medium": 0.5, "mu_long": 0.7, "sigma": 0.04}
    for weight in (0.0, 0.35):
        mind["w_prior"] = weight
        theta = np.tile([mind[name] for name in names], (200, 1))
        found = measure.estimate(simulate(model, theta, make("line_ratio"), 1))
        assert found.value == pytest.approx(weight, abs=4 * found.standard_error)
        assert measure.truth(model, theta[:1])[0] == weight
    with pytest.raises(ValueError, match="kalman_observer"):
        measure.truth(AGENTS["kalman_observer"], theta)
