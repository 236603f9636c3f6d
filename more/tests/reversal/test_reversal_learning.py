import numpy as np
import pytest

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import Trials
from knownminds_more.reversal.reversal_learning import ReversalLearning


def drawn(environment, n, seed=0):
    return environment.tables(np.random.default_rng(seed).random((n, environment.n_draws)))


def played(environment, n=3, seed=1):
    return simulate(RescorlaWagner, np.tile([0.4, 4.0, 0.0], (n, 1)), environment, seed)


def test_machines_change_places_after_blocks_of_any_length_in_the_range():
    n = 2000
    table = drawn(ReversalLearning(), n)
    first_five = np.stack([(table["block"] == k).sum(axis=1) for k in range(5)], axis=1)
    counts = np.unique(first_five, return_counts=True)
    assert counts[0].tolist() == [10, 11, 12, 13, 14, 15]
    expected = 5 * n / 6
    assert ((counts[1] - expected) ** 2 / expected).sum() < 5 + 5 * np.sqrt(2 * 5)
    changed = np.diff(table["better"], axis=1) != 0
    assert np.array_equal(changed, np.diff(table["block"], axis=1) == 1)
    assert abs(table["better"][:, 0].mean() - 0.5) < 4 * 0.5 / np.sqrt(n)
    fixed = drawn(ReversalLearning(n_plays=9, block_length=(4, 4)), 2)["block"]
    assert fixed.tolist() == [[0] * 4 + [1] * 4 + [2]] * 2


@pytest.mark.parametrize("loss", [-1.0, 0.0])
def test_each_machine_wins_at_the_rate_in_force(loss):
    table = drawn(ReversalLearning(win_probability=(0.7, 0.4), loss=loss), 1000)
    assert set(np.unique(table["payoffs"])) == {loss, 1.0}
    for machine in (0, 1):
        for better, rate in ((True, 0.7), (False, 0.4)):
            won = table["payoffs"][(table["better"] == machine) == better][:, machine] == 1.0
            assert abs(won.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / len(won))
    both = (table["payoffs"] == 1.0).reshape(-1, 2) - np.where(
        table["better"].reshape(-1, 1) == [0, 1], 0.7, 0.4
    )
    assert abs(np.corrcoef(both.T)[0, 1]) < 4 / np.sqrt(len(both))


def test_performance_is_the_share_of_choices_of_the_better_machine():
    environment = ReversalLearning()
    trials = played(environment)
    right = environment.performance(trials)
    assert np.array_equal(right, trials.frame["action"] == trials.frame["better"])
    bare = Trials.from_frame(trials.frame.drop(columns="better"))
    with pytest.raises(ValueError, match=r"--columns better=YOUR_NAME"):
        environment.performance(bare)


@pytest.mark.parametrize("criterion", ["correct", "consecutive"])
def test_on_a_criterion_machines_reverse_when_the_better_one_was_chosen_often_enough(criterion):
    environment = ReversalLearning(200, block_length=(3, 5), criterion=criterion)
    frame = played(environment, 20).frame
    lengths = set()
    for _, own in frame.groupby("subject"):
        right = (own["action"] == own["better"]).to_numpy()
        for _, block in list(own.groupby("block"))[:-1]:
            counted = right[block.index - own.index[0]]
            on_end = len(counted) - 1 - np.flatnonzero(~counted).max(initial=-1)
            lengths.add(counted.sum() if criterion == "correct" else on_end)
            assert counted[-1]  # which is what turned them round
            runs = "".join("x" if c else " " for c in counted[:-1]).split()
            assert criterion == "correct" or all(len(run) < 5 for run in runs)
        turned = np.diff(own["block"]) == 1
        assert np.array_equal(turned, np.diff(own["better"]) != 0)
    assert lengths == {3, 4, 5}
