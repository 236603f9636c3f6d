"""The audit of the observer over all cells: its trials, and scores that are known in advance."""

import numpy as np
import pytest

from knownminds import audit
from knownminds.inference import ModelData
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.magnitudes.observer_audit import OBSERVER, over_cells, played


def test_trials_over_cells_have_the_likelihood_of_all_cells_together():
    theta = OBSERVER.parameters.draw(np.random.default_rng(2), 5)
    cells = read_plan("magnitudes", small=True).cells
    assert len(cells) == 34
    sessions = played(OBSERVER, theta, cells, 3, np.arange(5)[:, None])
    found = over_cells(OBSERVER, sessions, 5)
    assert found.n_trials.tolist() == [34 * 12] * 5
    records = [one.to_trials() for one in sessions]
    expected = sum(ModelData.read(OBSERVER, record).log_likelihood(theta)[0] for record in records)
    assert found.log_likelihood(theta)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.long
def test_an_audit_says_what_each_observer_should_earn_and_what_it_earns():
    result = audit("observer", trials=12, replicates=6, seed=1, workers=1)
    scores = result["Scores"].droplevel("trials")
    by_weights = scores["by its weights"]
    # Verbal, numeric, two kinds of blur in three tasks; a longer context changes nothing.
    assert by_weights["adapts"] == 12
    assert by_weights["adapts to noise alone"] == 6
    assert by_weights["trusts the prior less when told"] == 6 - 6
    assert by_weights["no prior"] == by_weights["never adapts"] == 0
    adapts, never = (scores["expected"][name] for name in ("adapts", "never adapts"))
    # Six scores with a spread below 6 each: errors of 2.5; the gap is 8.5 on average.
    assert adapts.value > never.value + 2.5
    tests = result["Tests of nested observers"].droplevel("trials")
    for name in ("static", "equal", "unsteered", "flat"):
        assert 0 <= tests[name][name].value < tests["flat"]["any"].value
        assert tests["misfit"][name].value <= 0.5  # expected .05; above half of 6 is p < 1e-4
    best = result["Confusion"].droplevel("trials")
    assert best["flat"]["flat"].value > 0.5 > best["flat"]["any"].value
    recovery = result["Recovery"].droplevel("trials")
    assert set(recovery.index) == {*OBSERVER.parameters.names}
    # Of 6 independent pairs r is above .8 in 3%; the noise of pictures is seen in many cells.
    assert all(recovery["r"][name].value > 0.8 for name in ("noise_image", "prior_precision"))


def test_sizes_that_the_benchmark_does_not_have_are_refused():
    with pytest.raises(ValueError, match="99 trials, or 12 in small; got 33"):
        audit("observer", trials=33, replicates=4)
    with pytest.raises(ValueError, match="has no settings"):
        audit("observer", replicates=4, settings={"sigma": 0.1})
