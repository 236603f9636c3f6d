import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.spatial import distance

from knownminds.environments.chance.scenarios import complete_grid
from knownminds.inference.chance.belief_contexts import context_means, increases, kind_of
from knownminds.inference.chance.distribution_distance import (
    FLOOR,
    _bounds,
    distances_of,
    distribution_distances,
)
from knownminds.inference.chance.revealed_belief import (
    Belief,
    DescribedContext,
    RevealedBeliefs,
    Unplaced,
    context_name,
)

LETTERS = ("A", "B", "C", "D")
TRUTH = np.array([0.4, 0.3, 0.2, 0.1])
SET_UP = DescribedContext("four", LETTERS, TRUTH, "choice")
NAMES = ("chebyshev", "manhattan", "kl_truth_belief", "kl_belief_truth", "kl_sum", "entropy")


def test_distances_are_those_of_scipy_for_distributions_of_the_complete_grid():
    rng = np.random.default_rng(4)
    for n in (2, 6, 34):
        truth, beliefs = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), 20)
        truth[0], beliefs[:, -1] = 0.0, 0.0  # what cannot come, and what is never said
        truth, beliefs = truth / truth.sum(), beliefs / beliefs.sum(axis=1, keepdims=True)
        found = distances_of(truth, beliefs)
        for k, q in enumerate(beliefs):
            # SciPy normalises what it is given, as the floor's definition does.
            forth, back = (
                stats.entropy(truth + FLOOR, q + FLOOR),
                stats.entropy(q + FLOOR, truth + FLOOR),
            )
            wanted = {
                "chebyshev": distance.chebyshev(truth, q),
                "manhattan": distance.cityblock(truth, q),
                "kl_truth_belief": forth,
                "kl_belief_truth": back,
                "kl_sum": forth + back,
                "entropy": stats.entropy(q),
            }
            assert {name: value[k] for name, value in found.items()} == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_everything_that_can_be_believed_and_are_met(seed):
    rng = np.random.default_rng(seed)
    certain = rng.random(4) * 0.2 * (rng.random(4) < 0.7) + np.array([0.1, 0, 0, 0])
    units = [Unplaced(0.1, (0, 1, 2, 3)), Unplaced(0.05, (1,)), Unplaced(0.07, (2, 3))]
    truth = rng.dirichlet(np.ones(4))
    low, high = _bounds(certain, units, truth)
    believed = np.tile(certain, (60000, 1))
    for mass, rows in units:
        # Many of them near the corners, where the extremes lie.
        spread = rng.dirichlet(np.full(len(rows) + 1, 0.3), len(believed))
        believed[:, list(rows)] += mass * spread[:, :-1]
    tried = distances_of(truth, believed / believed.sum(axis=1, keepdims=True))
    for name in NAMES:
        width = high[name] - low[name]
        assert low[name] <= tried[name].min() + 1e-7
        assert high[name] >= tried[name].max() - 1e-7
        # A search of 60,000 comes near both ends.
        assert tried[name].min() - low[name] < 0.1 * width
        assert high[name] - tried[name].max() < 0.2 * width


def coverage(belief, draws, names, replicates=200):
    rng = np.random.default_rng(11)
    counts = rng.multinomial(draws, np.append(0.9 * belief, 0.1), size=replicates)
    beliefs = RevealedBeliefs(tuple(Belief.counted(SET_UP, row[:-1], row[-1]) for row in counts))
    found = distribution_distances(beliefs, replicates=400)
    true = distances_of(TRUTH, belief)
    held = {}
    for name in names:
        rows = found[found["measure"] == name]
        held[name] = np.mean((rows["low"] <= true[name]) & (true[name] <= rows["high"]))
    return held, found


@pytest.mark.parametrize("draws", [50, 1000])
def test_intervals_of_sampled_beliefs_hold_the_distance_of_the_belief(draws):
    held, _ = coverage(np.array([0.1, 0.2, 0.3, 0.4]), draws, NAMES)
    for name, share in held.items():
        # 95% wanted; 88% allows for the approximation and 3 standard errors of 200 replicates
        assert share >= 0.88, name


def test_draws_of_the_truth_show_no_increase_and_its_error_is_that_of_the_baselines():
    contexts = [
        (context_name(tuple(one.factors), c.values), np.array(c.chance.shares, dtype=float))
        for one in complete_grid(even_faces=True)
        if one.name == "dice"
        for c in one.contexts
    ]
    table = pd.DataFrame({"scenario": "dice", "context": [name for name, _ in contexts]})
    table["kind"] = [kind_of("dice", name) for name in table["context"]]
    rng = np.random.default_rng(0)
    drawn = np.array(
        [np.abs(rng.multinomial(2, p, size=340) / 2 - p).max(axis=1) for _, p in contexts]
    )
    noise, means = drawn[:, 40:].mean(axis=1), []
    for k in range(40):
        over = increases(table.assign(x=drawn[:, k], x_noise=noise), "x")
        found = context_means(over, "increase", ["kind"], "baseline").set_index("kind")
        means.append(found.loc["two_observations", "value"])
    # Without the floor the mean is -.06.
    assert abs(np.mean(means)) < 4 * np.std(means, ddof=1) / np.sqrt(len(means)) < 0.04
    last = over[over["kind"] == "two_observations"].groupby("baseline")["increase"].mean()
    assert found.loc["two_observations", "n"] == len(last) == 15
    assert found.loc["two_observations", "standard_error"] == pytest.approx(last.sem())
