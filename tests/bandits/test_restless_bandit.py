import numpy as np
import pytest

from knownminds.agents import ChangePointObserver, simulate
from knownminds.environments import RestlessBandit, Trials, correctness


def drawn(environment, n, seed=0):
    return environment.tables(np.random.default_rng(seed).random((n, environment.n_draws)))


def played(n=4, seed=0):
    theta = ChangePointObserver.parameters.draw(np.random.default_rng(seed), n)
    return simulate(ChangePointObserver, theta, RestlessBandit(), seed)


def lengths(block):
    return np.stack([(block == k).sum(axis=1) for k in range(block.max() + 1)], axis=1)


def test_sessions_have_eighty_trials_in_four_blocks_of_any_length_from_18_to_22():
    environment = RestlessBandit()
    assert environment.n_trials == 80
    n = 20_000
    found = lengths(drawn(environment, n)["block"])
    assert set(np.unique(found)) == {18, 19, 20, 21, 22}
    assert (found.sum(axis=1) == 80).all()
    # All 85 sequences that add up to 80 are equally likely.
    counts = np.unique(found, axis=0, return_counts=True)[1]
    assert len(counts) == 85
    chi_square = ((counts - n / 85) ** 2 / (n / 85)).sum()
    assert chi_square < 84 + 5 * np.sqrt(2 * 84)


def test_machines_pay_around_their_means_and_change_places_at_every_block():
    table = drawn(RestlessBandit(), 500)
    mean = np.stack([table["mean_0"], table["mean_1"]], axis=2)
    assert (np.sort(mean, axis=2) == (40, 60)).all()
    changed = np.diff(table["mean_0"], axis=1) != 0
    assert np.array_equal(changed, np.diff(table["block"], axis=1) == 1)
    share = (table["mean_0"][:, 0] == 60).mean()
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(500)
    noise = (table["points"] - mean).reshape(-1, 2)
    n, variance = len(noise), 64 + 1 / 12  # rounding adds the variance of a uniform number
    assert np.array_equal(table["points"], np.round(table["points"]))
    assert np.all(np.abs(noise.mean(axis=0)) < 4 * 8 / np.sqrt(n))
    assert np.all(np.abs(noise.var(axis=0) - variance) < 4 * variance * np.sqrt(2 / n))
    assert abs(np.corrcoef(noise.T)[0, 1]) < 4 / np.sqrt(n)
    assert abs(table["first"].mean() - 0.5) < 4 * 0.5 / np.sqrt(n)


def test_a_choice_is_judged_by_the_means_in_force_when_it_was_made():
    trials = played()
    frame, right = trials.frame, correctness(trials)
    paid = np.where(frame["action"] == 0, frame["mean_0"], frame["mean_1"])
    assert np.array_equal(right, paid == 60)
    assert np.array_equal(right, RestlessBandit().performance(trials))
    swapped = correctness(trials, after=True)
    following = frame.groupby("subject")["block"].shift(-1).fillna(-1)
    changes = (following != frame["block"]).to_numpy()
    assert changes.sum() == 4 * 4  # the last trial of a session ends a block too
    assert np.array_equal(swapped != right, changes)
    frame = trials.to_frame()
    frame.loc[0, ["action", "response", "reward"]] = None
    frame.loc[0, "outcome"] = "refused"
    assert np.isnan(correctness(Trials.from_frame(frame))[0])
    with pytest.raises(ValueError, match=r"no 'mean_1'\. Map one"):
        correctness(Trials.from_frame(frame.drop(columns="mean_1")))
