"""The law of iterated expectation in coherent, rounded and incoherent minds."""

import json
import sys

import numpy as np
import pytest
from deciders import decided

from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions
from knownminds.inference.diagnosis.iterated_expectation import (
    TREES,
    _grown,
    _weighted_medians,
    iterated_expectation,
)


def believing(seed: int = 1, *, incoherence: float = 0.0, decimals: int = 9) -> BeliefDecisions:
    """Give each context two parts; their beliefs average to the whole, times 1 + incoherence."""
    data = decided(seed, contexts=100, repetitions=3)
    rng = np.random.default_rng(seed)
    frame = data.frame
    p = frame["posterior"].to_numpy()
    weight = np.repeat(0.2 + 0.6 * rng.random(100), 3)
    first = p * (0.3 + 0.4 * p)
    second = (p - weight * first) / (1 - weight)
    exact = {"part_0": weight, "part_1": 1 - weight, "given_0": first, "given_1": second}
    for name, value in exact.items():
        frame[f"exact_{name}"] = value
        told = value * (1 + incoherence) if name.startswith("given") else value
        frame[name] = np.round(told, decimals)
    frame["plain"] = np.round(p, decimals)
    frame["x"], frame["y"] = p, weight
    frame["noise"] = np.repeat(rng.random(100), 3)
    return data


def test_coherent_beliefs_stated_exactly_have_no_error() -> None:
    found = iterated_expectation(believing())
    assert found.stated.value == pytest.approx(0.0, abs=1e-7)
    assert found.mass == pytest.approx(1.0)
    assert found.stated.rows == 300
    assert found.stated.contexts == 100


def test_the_ratio_is_the_incoherence_that_was_put_in() -> None:
    found = iterated_expectation(believing(incoherence=0.2))
    assert found.stated.value == pytest.approx(0.2, abs=1e-6)
    assert found.stated.low == pytest.approx(0.2, abs=1e-6)


def test_rounding_alone_lifts_the_ratio_and_is_said_beside_it() -> None:
    found = iterated_expectation(believing(decimals=2))
    assert found.stated.value > 0.003
    assert found.rounding is not None
    assert found.rounding.value == pytest.approx(found.stated.value, abs=1e-12)
    exactly = iterated_expectation(believing())
    assert exactly.rounding is not None
    assert exactly.rounding.value == pytest.approx(found.stated.value, abs=1e-12)


def test_the_interval_holds_the_median_of_the_population_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    held = 0
    for i in range(100):
        data = believing(i)
        off = np.repeat(np.exp(rng.standard_normal(100)) * 0.1, 3)
        for name in ("given_0", "given_1"):
            data.frame[name] = data.frame[f"exact_{name}"] * (1 + off)
        found = iterated_expectation(data, bootstraps=200, seed=i).stated
        held += found.low <= 0.1 <= found.high
    # 95 of 100, standard error 2.2; three of them.
    assert held >= 87


def test_medians_of_weighted_values_are_medians_of_repeated_ones() -> None:
    rng = np.random.default_rng(3)
    values, weight = rng.random(9), rng.integers(0, 3, (50, 9))
    expected = [np.median(np.repeat(values, w)) for w in weight]
    assert _weighted_medians(values, weight).tolist() == pytest.approx(expected)
    assert np.isnan(_weighted_medians(values, np.zeros((1, 9), dtype=np.int64))).all()


def test_a_belief_of_zero_has_no_ratio_and_is_counted() -> None:
    data = believing()
    data.frame.loc[[0, 1], "plain"] = 0.0
    data.frame.loc[5, "given_1"] = np.nan
    found = iterated_expectation(data)
    assert found.excluded == {"no given_1": 1, "no ratio to a belief of 0": 2}
    assert found.stated.rows == 297


def test_trials_without_parts_are_told_what_they_lack() -> None:
    with pytest.raises(ValueError, match="every part j; the trials ask for none"):
        iterated_expectation(decided(1))


def test_a_forest_that_was_never_told_of_the_law_is_nearly_coherent() -> None:
    pytest.importorskip("sklearn")
    found = iterated_expectation(
        believing(incoherence=0.3), features=["x", "y"], forest=True, bootstraps=100
    )
    assert found.baseline is not None
    assert 0 < found.baseline.value < 0.1
    assert found.above_low > 0.2
    # Negative control: evidence that says nothing leaves it nothing to learn from.
    blind = iterated_expectation(believing(), features=["noise"], forest=True, bootstraps=100)
    assert blind.baseline is not None
    assert blind.baseline.value > 2 * found.baseline.value
    with pytest.raises(ValueError, match="none were named"):
        iterated_expectation(believing(), forest=True)
    with pytest.raises(ValueError, match="'age' is none"):
        iterated_expectation(believing(), features=["age"], forest=True)


def test_the_forest_is_that_of_scikit_learn() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(3)
    x, y, told = rng.integers(0, 4, (40, 3)) * 1.0, rng.random(40), rng.integers(0, 4, (9, 3)) * 1.0
    forest = ensemble.RandomForestRegressor(n_estimators=TREES, random_state=5)
    assert _grown(x, y, told, 5).tolist() == forest.fit(x, y).predict(told).tolist()


def test_without_scikit_learn_the_forest_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r'pip install "knownminds\[learning\]"'):
        iterated_expectation(believing(), features=["x"], forest=True)


def test_the_result_prints_and_goes_to_json() -> None:
    found = iterated_expectation(believing(incoherence=0.2))
    assert "median ratio            0.2000" in str(found)
    assert json.loads(found.to_json())["above_baseline"] is None
