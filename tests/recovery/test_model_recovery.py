"""Model recovery: rivals are told apart where they can be, and nowhere else."""

import dataclasses
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, Perseverator
from knownminds.environments import session_stream
from knownminds.validation.recovery import model_recovery
from knownminds.validation.recovery.confusion import confuse
from knownminds.validation.recovery.model_recovery import (
    CRITERIA,
    ModelChoice,
    Winners,
    confusion_shares,
    inversion_shares,
    judge_model,
    winners,
)

PLACE = "instrumental_learning"
RIVALS = ("rescorla_wagner", "random_responder", "perseverator", "win_stay_lose_shift")


def won(matrix, undecided=0, failed=0):
    """Winners of these counts."""
    matrix = np.array(matrix)
    zero = np.zeros(len(matrix), dtype=np.int64)
    return Winners(matrix, zero + undecided, zero + failed, zero)


def words(matrix):
    """The verdicts on these counts."""
    own = won(matrix)
    shares = confusion_shares(own.counts, own.n), inversion_shares(own.counts, own.n, RNG)
    return [judge_model(own, i, *shares) for i in range(len(matrix))]


RNG = session_stream(1)


# What cannot be told apart is not


def test_data_that_all_models_explain_equally_are_undecided():
    # One visit to each casino: all of these models guess there, whatever their parameters.
    result = confuse(PLACE, RIVALS, trials=4, replicates=20, criteria=["aic", "cv"], workers=1)
    assert all(str(ModelChoice(name)) in result.methods for name in ("aic", "cv"))
    models, shares = result["Data sets by model"], result["Shares"]
    assert (models.xs("cross-validation")["undecided"] == 20).all()
    assert shares.xs("cross-validation")["best"].sum() == 0
    assert shares.xs("cross-validation")["inversion"].isna().all()
    # Equal likelihoods leave AIC the number of parameters: it always names the guesser.
    best = shares.xs("AIC").xs("random_responder", level="fitted")["best"]
    assert (best == 20).all()
    assert {verdict.word for verdict in result.verdicts.values()} == {"not identified"}
    assert result.failed == 0


# Matrices, intervals, verdicts


def test_shares_are_counts_over_all_data_sets_and_inversion_divides_columns():
    own = won([[60, 20], [30, 60]], undecided=[15, 10], failed=[5, 0])
    assert own.n.tolist() == [100, 100]
    confusion = confusion_shares(own.counts, own.n)
    inversion = inversion_shares(own.counts, own.n, RNG)
    np.testing.assert_allclose(confusion.value, [[0.6, 0.2], [0.3, 0.6]])
    np.testing.assert_allclose(inversion.value, [[2 / 3, 1 / 4], [1 / 3, 3 / 4]])
    for shares in (confusion, inversion):
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
    for matrix, word in (
        ([[98, 2], [3, 97]], "recoverable"),
        # Always the first: found without fail, and said of everything.
        ([[100, 0], [100, 0]], "not identified"),
        ([[700, 300], [320, 680]], "weak"),
        # Of 100 data sets, 65 are best fitted by the first: 55% to 74%, and 60% is a limit of two.
        ([[65, 35], [35, 65]], "between weak and not identified"),
        ([[80, 20], [20, 80]], "between recoverable and weak"),
        # Models that cannot be told apart are as good as chance, and said to be with enough data.
        ([[500, 500], [500, 500]], "not identified"),
        ([[19, 0], [0, 19]], "not judged"),
    ):
        assert [verdict.word for verdict in words(matrix)] == [word] * 2
    assert words([[80, 20], [20, 80]])[0].more.unit == "data set"


def test_the_best_is_best_by_more_than_rounding():
    totals = np.array([[1.0, 2.0], [2.0, 2.0 + 1e-6], [3.0, 2.0], [np.nan, 1.0]])
    assert ModelChoice("bic").best(totals).tolist() == [0, -1, 1, -1]
    assert ModelChoice("cv").best(totals).tolist() == [1, -1, 0, -1]
    for choice in map(ModelChoice, CRITERIA):  # what is said is what is done
        word = ("smallest", "largest")[choice.best(np.array([[1.0, 2.0]]))[0]]
        assert f"the model with the {word} sum" in str(choice)
        table = pd.DataFrame({"replicate": [0, 1]})
        table[[f"{choice.criterion}_a", f"{choice.criterion}_b"]] = [[1.0, 2.0], [1.0, 2.0]]
        counts = winners([table, table], choice.criterion, ["a", "b"]).counts.tolist()
        assert counts == [[0, 2] if word == "largest" else [2, 0]] * 2
    impossible = np.array([[-np.inf, -9.0], [-np.inf, -np.inf]])
    assert ModelChoice("cv").best(impossible).tolist() == [1, -1]


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
    models = marred["Data sets by model"]
    assert (models["failed"] == 1).all()
    assert (models["data sets"] == 30).all()
    fewer = sound["Shares"]["best"] - marred["Shares"]["best"]
    assert (fewer.groupby(level=["criterion", "simulated"]).sum() == 1).all()
    assert marred.failed == 3
    assert marred["Messages"].loc["perseverator: planted", "simulated subjects"] == 3
    assert sound.failed == 0


def test_every_design_of_a_grid_is_the_comparison_of_that_design_alone():
    given = {"criteria": ["bic"], "replicates": 20, "seed": 3, "workers": 1}
    grid = confuse(PLACE, RIVALS[:2], subjects=[1, 3], trials=24, **given)
    alone = confuse(PLACE, RIVALS[:2], subjects=3, trials=24, **given)
    own = grid["Data sets by model"].xs((3, 1, 24), level=(1, 2, 3))
    assert own.equals(alone["Data sets by model"])


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


def test_the_screen_names_models_and_counts_what_was_simulated(knownminds):
    words = ("--model", "random_responder", "--model", "perseverator", "--replicates", 2)
    code, out, err = knownminds("confuse", PLACE, *words, "--workers", 1)
    assert code == 0, err
    head = next(line for line in out.splitlines() if line.startswith("criterion"))
    assert head.split() == ["criterion", "simulated", "random", "responder", "perseverator"]
    assert "4 simulated subjects: 4 ok" in out
