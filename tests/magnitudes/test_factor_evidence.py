"""Evidence for factors, against arithmetic on a handful of AICs."""

import numpy as np
import pytest

from knownminds.inference.magnitudes.factor_evidence import VARIANTS, factor_evidence


def test_evidence_is_the_share_of_the_best_in_each_cell() -> None:
    aic = {
        "linear_observer": 10.0,
        "linear_observer_log": 12.0,
        "static_bayes_observer": 8.0,
        "static_bayes_observer_gain": 30.0,
        "static_bayes_observer_log": 14.0,
        "kalman_observer": 9.0,
        "kalman_observer_log": 40.0,
    }
    found = factor_evidence(aic)
    weight = {name: np.exp(-0.5 * (value - 8.0)) for name, value in aic.items()}
    # Cells of BAYESIAN: linear scale and log scale; the best of each family within them.
    there = weight["static_bayes_observer"] + weight["static_bayes_observer_log"]
    absent = weight["linear_observer"] + weight["linear_observer_log"]
    assert found["bayesian"][0] == pytest.approx(there / (there + absent), rel=1e-12)
    # Cells of SEQUENTIAL: the output none on either scale; static + gain has no sequential rival.
    there = weight["kalman_observer"] + weight["kalman_observer_log"]
    absent = weight["static_bayes_observer"] + weight["static_bayes_observer_log"]
    assert found["sequential"][0] == pytest.approx(there / (there + absent), rel=1e-12)
    # Cells of WEBER: linear, static, Kalman, each without output.
    logs = ("linear_observer_log", "static_bayes_observer_log", "kalman_observer_log")
    there = sum(weight[name] for name in logs)
    absent = sum(weight[name.removesuffix("_log")] for name in logs)
    assert found["weber"][0] == pytest.approx(there / (there + absent), rel=1e-12)
    cells = [f"{factor}_cells" for factor in ("bayesian", "weber", "sequential")]
    assert found[cells].iloc[0].tolist() == [2, 3, 2]


def test_a_failed_fit_is_a_missing_variant_and_not_a_weak_one() -> None:
    aic = {name: np.array([10.0, 10.0]) for name in VARIANTS}
    aic["linear_observer"] = np.array([10.0, np.nan])
    aic["linear_observer_log"] = np.array([10.0, np.nan])
    found = factor_evidence(aic, ["a", "b"])
    assert found["bayesian"][0] == pytest.approx(0.5)
    assert np.isnan(found["bayesian"][1])
    assert found["weber"][1] == pytest.approx(0.5)
    assert found["missing"].tolist() == ["", "linear_observer, linear_observer_log"]
    assert found["subject"].tolist() == ["a", "b"]
