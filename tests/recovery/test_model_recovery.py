"""Model recovery: rivals are told apart where they can be, and nowhere else."""

import dataclasses
from math import sqrt

import numpy as np
import pytest

from knownminds.agents import AGENTS, Perseverator
from knownminds.environments import session_stream
from knownminds.validation.recovery import model_recovery
from knownminds.validation.recovery.model_recovery import (
    Confusion,
    best_of,
    confuse,
    confusion_shares,
    inversion_shares,
)

PLACE = "instrumental_learning"
RIVALS = ("rescorla_wagner", "random_responder", "perseverator", "win_stay_lose_shift")


def counts(criterion, matrix, undecided=0, failed=0):
    """Matrices made of these counts."""
    matrix = np.array(matrix)
    zero = np.zeros(len(matrix), dtype=np.int64)
    names = [f"model_{i}" for i in range(len(matrix))]
    rng = session_stream(1)
    return Confusion.of(criterion, names, matrix, zero + undecided, zero + failed, zero, rng)


# What cannot be told apart is not


def test_data_that_all_models_explain_equally_are_undecided():
    # One visit to each casino: all of these models guess there, whatever their parameters.
    result = confuse(PLACE, RIVALS, trials=4, replicates=20, criteria=["aic", "cv"], workers=1)
    assert result["cv"].undecided.tolist() == [20] * 4
    assert result["cv"].counts.sum() == 0
    assert np.isnan(result["cv"].inversion.value).all()
    # Equal likelihoods leave AIC the number of parameters: it always names the guesser.
    assert result["aic"].counts[:, 1].tolist() == [20] * 4
    for confusion in result.confusions:
        assert {v.word for v in confusion.verdicts} == {"not identified"}
    assert result.failed == 0


# Matrices, intervals, verdicts


def test_shares_are_counts_over_all_data_sets_and_inversion_divides_columns():
    one = counts("aic", [[60, 20], [30, 60]], undecided=[15, 10], failed=[5, 0])
    assert one.n.tolist() == [100, 100]
    np.testing.assert_allclose(one.confusion.value, [[0.6, 0.2], [0.3, 0.6]])
    np.testing.assert_allclose(one.inversion.value, [[2 / 3, 1 / 4], [1 / 3, 3 / 4]])
    for shares in (one.confusion, one.inversion):
        assert np.all(shares.low < shares.value)
        assert np.all(shares.value < shares.high)


def test_intervals_hold_the_true_shares_as_often_as_they_say():
    rng = session_stream(6)
    truth = np.array([[0.7, 0.2, 0.1], [0.25, 0.5, 0.25], [0.02, 0.08, 0.9]])
    inverse = truth / truth.sum(axis=0)
    n, repetitions = 100, 150
    inside = np.zeros((2, 3, 3))
    for _ in range(repetitions):
        drawn = np.stack([rng.multinomial(n, row) for row in truth])
        each = np.full(3, n)
        for k, (shares, true) in enumerate(
            ((confusion_shares(drawn, each), truth), (inversion_shares(drawn, each, rng), inverse))
        ):
            inside[k] += (shares.low <= true) & (true <= shares.high)
    # 0.95 within 4 binomial errors, and 0.02 for what whole numbers of data sets cannot give
    assert np.all(np.abs(inside / repetitions - 0.95) < 4 * sqrt(0.95 * 0.05 / repetitions) + 0.02)


def test_verdicts_ask_for_both_shares():
    assert [v.word for v in counts("aic", [[98, 2], [3, 97]]).verdicts] == ["recoverable"] * 2
    # Always the first: found without fail, and said of everything.
    assert [v.word for v in counts("aic", [[100, 0], [100, 0]]).verdicts] == ["not identified"] * 2
    assert [v.word for v in counts("aic", [[700, 300], [320, 680]]).verdicts] == ["weak"] * 2
    # Of 100 data sets, 65 are best fitted by the first: 55% to 74%, and 60% is the limit of two.
    assert [v.word for v in counts("aic", [[65, 35], [35, 65]]).verdicts] == [
        "between weak and not identified"
    ] * 2
    near = counts("aic", [[80, 20], [20, 80]]).verdicts[0]
    assert near.word == "between recoverable and weak"
    assert near.more.unit == "data set"
    # Models that cannot be told apart are as good as chance, and said to be so with enough data.
    assert counts("aic", [[500, 500], [500, 500]]).verdicts[0].word == "not identified"
    few = counts("aic", [[19, 0], [0, 19]]).verdicts[0]
    assert few.word == "not judged"


def test_the_best_is_best_by_more_than_rounding():
    totals = np.array([[1.0, 2.0], [2.0, 2.0 + 1e-6], [3.0, 2.0], [np.nan, 1.0]])
    assert best_of(totals, larger=False).tolist() == [0, -1, 1, -1]
    assert best_of(totals, larger=True).tolist() == [1, -1, 0, -1]
    impossible = np.array([[-np.inf, -9.0], [-np.inf, -np.inf]])
    assert best_of(impossible, larger=True).tolist() == [1, -1]


# Failures


def test_a_failed_fit_of_one_rival_fails_the_data_set_and_stays_in_the_denominator(monkeypatch):
    sound = confuse(PLACE, RIVALS[:3], subjects=2, replicates=30, workers=1)
    fit = model_recovery.maximum_likelihood

    def planted(model, data, **options):
        result = fit(model, data, **options)
        if model is not Perseverator:
            return result
        status, message = list(result.status), list(result.message)
        status[7], message[7] = "failed", "planted"  # subject 1 of replicate 3, in each cell
        return dataclasses.replace(result, status=tuple(status), message=tuple(message))

    monkeypatch.setattr(model_recovery, "maximum_likelihood", planted)
    marred = confuse(PLACE, RIVALS[:3], subjects=2, replicates=30, workers=1)
    for confusion, before in zip(marred.confusions, sound.confusions, strict=True):
        assert confusion.failed.tolist() == [1, 1, 1]
        assert confusion.n.tolist() == [30, 30, 30]
        assert (before.counts - confusion.counts).sum(axis=1).tolist() == [1, 1, 1]
    assert marred.failed == 3
    assert marred.notes == ("3 of 180 subjects: perseverator: planted",)
    assert sound.failed == 0


# Misuse


class Juggler(Perseverator):
    name = "juggler"
    n_actions = 3


@pytest.mark.parametrize(
    ("models", "options", "name"),
    [
        (["perseverator", Perseverator], {}, "perseverator"),
        (RIVALS, {"criteria": []}, "criterion"),
        (RIVALS, {"criteria": ["aic", "aic"]}, "aic"),
        (RIVALS, {"truth": {"alhpa": 0.3}}, "alhpa"),
        (["juggler", "perseverator"], {}, "juggler"),
    ],
)
def test_rivals_that_cannot_be_compared_are_refused(models, options, name, monkeypatch, tmp_path):
    monkeypatch.setitem(AGENTS, "juggler", Juggler)
    with pytest.raises(ValueError, match=name):
        confuse(PLACE, models, out=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()
