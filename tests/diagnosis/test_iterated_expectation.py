"""The law of iterated expectation in coherent, rounded and incoherent agents."""

import numpy as np
import pytest
from deciders import decided

from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions
from knownminds.inference.diagnosis.iterated_expectation import iterated_expectation

EXACT = "ratio if exact, asked singly"


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
    assert found["published"] == pytest.approx(0.0, abs=1e-7)
    assert found["mass"] == pytest.approx(1.0)
    assert found["n"] == 100
    assert found.reading(EXACT).n == 300


def test_the_ratio_is_the_incoherence_that_was_put_in() -> None:
    found = iterated_expectation(believing(incoherence=0.2))
    assert found["published"] == pytest.approx(0.2, abs=1e-6)
    assert found["published_low"] == pytest.approx(0.2, abs=1e-6)


def test_rounding_alone_lifts_the_ratio_and_is_said_beside_it() -> None:
    found = iterated_expectation(believing(decimals=2))
    assert found["published"] > 0.003
    for other in (found, iterated_expectation(believing())):
        ratio = other.reading(EXACT).value
        assert ratio == pytest.approx(found["published"], abs=1e-12)


@pytest.mark.long
def test_the_interval_holds_the_median_of_the_population_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    held = 0
    for i in range(100):
        data = believing(i)
        off = np.repeat(np.exp(rng.standard_normal(100)) * 0.1, 3)
        for name in ("given_0", "given_1"):
            data.frame[name] = data.frame[f"exact_{name}"] * (1 + off)
        found = iterated_expectation(data, bootstraps=200, seed=i)
        held += found["published_low"] <= 0.1 <= found["published_high"]
    # 95 of 100, standard error 2.2; three of them.
    assert held >= 87
