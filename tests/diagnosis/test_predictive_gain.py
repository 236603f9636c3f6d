"""Predicting decisions with and without the state."""

import numpy as np
import pytest
from deciders import decided

from knownminds.inference.diagnosis.predictive_gain import folds_of, predictive_gain


class Frequencies:
    """Predicts from how often each action was taken in each bin of p, apart by state if told."""

    def __init__(self, seed: int):
        self.classes_ = np.arange(3)

    def cells(self, x):
        state = x[:, -1].astype(int) if x.shape[1] > 1 else 0
        return np.minimum((x[:, 0] * 5).astype(int), 4) * 2 + state

    def fit(self, x, y):
        self.share = np.ones((10, 3))
        np.add.at(self.share, (self.cells(x), y), 1)
        self.share /= self.share.sum(axis=1, keepdims=True)

    def predict_proba(self, x):
        return self.share[self.cells(x)]


def test_all_repetitions_of_a_context_are_in_one_fold_and_folds_are_even() -> None:
    context = np.repeat(np.arange(53), 4)
    fold = folds_of(context, 5, seed=1)
    assert all(len(np.unique(fold[context == c])) == 1 for c in range(53))
    assert sorted(np.bincount(fold) // 4) == [10, 10, 11, 11, 11]
    assert (folds_of(context, 5, seed=2) != fold).any()


def test_the_gain_is_the_log_loss_of_predictions_for_contexts_not_learnt_from() -> None:
    data = decided(1, peek=0.3)
    found = predictive_gain(data, learner=Frequencies, bootstraps=50)
    frame, fold = data.frame, folds_of(data.context, 5, seed=0)
    losses = []
    for columns in (["plain"], ["plain", "state"]):
        x, y = frame[columns].to_numpy(), frame["action"].to_numpy(dtype=int)
        loss = 0.0
        for f in range(5):
            model = Frequencies(0)
            model.fit(x[fold != f], y[fold != f])
            chance = 0.999 * model.predict_proba(x[fold == f]) + 0.001 / 3
            loss -= np.log(chance[np.arange(len(chance)), y[fold == f]]).sum()
        losses.append(loss)
    assert found["published"] == pytest.approx(100 * (1 - losses[1] / losses[0]))
    assert found["without"] == pytest.approx(losses[0] / 1000)
    assert len(found.table) == 1


def test_rational_deciders_gain_nothing_and_keep_the_level_of_the_test() -> None:
    found = [
        predictive_gain(
            decided(i, contexts=100), learner=Frequencies, replicates=19, bootstraps=50, seed=i
        )
        for i in range(40)
    ]
    # Standard error .034 at .05; three of them.
    assert np.mean([gain["p_value"] <= 0.05 for gain in found]) <= 0.05 + 0.102
    assert np.mean([gain["published"] for gain in found]) < 0.5
    excess = np.array([gain["published"] - gain["null_mean"] for gain in found])
    assert abs(excess.mean()) < 3 * excess.std() / np.sqrt(len(excess))


def test_one_who_peeks_is_predicted_better_with_the_state() -> None:
    gain = predictive_gain(decided(1, peek=0.3), learner=Frequencies, replicates=99)
    assert gain["p_value"] == 0.01
    assert 0 < gain["published_low"] < gain["published"] < gain["published_high"]
    assert gain["low"] > 0
    loss, exchanged = 100 - gain["published"], 100 - gain["null_mean"]
    assert gain["value"] == pytest.approx(100 * (1 - loss / exchanged))


def test_an_action_never_seen_costs_much_but_not_infinitely() -> None:
    data = decided(1, contexts=10)
    data.frame["action"] = np.where(data.frame["context"] == 3, 1.0, 0.0)
    gain = predictive_gain(data, learner=Frequencies, bootstraps=0)
    assert np.isfinite(gain["without"])
    assert np.isnan(gain["low"])
