"""Model recovery: rivals are told apart where they can be, and nowhere else."""

import dataclasses
import json
from math import log, sqrt

import numpy as np
import pandas as pd
import pytest
from hand_written_learner import RescorlaWagner as RescorlaWagnerByHand
from scipy.stats import chi2

from knownminds.agents import AGENTS, Perseverator
from knownminds.environments import InstrumentalLearning, session_stream
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.study import Rows, Study
from knownminds.validation.recovery import model_recovery
from knownminds.validation.recovery.model_recovery import (
    CRITERIA,
    Confusion,
    best_of,
    confuse,
    confusion_shares,
    inversion_shares,
    read_confusion,
    score_batch,
    summarise,
)

PLACE = "instrumental_learning"
RIVALS = ("rescorla_wagner", "random_responder", "perseverator", "win_stay_lose_shift")
REPLICATES = 150


@pytest.fixture(scope="module")
def four():
    return confuse(PLACE, RIVALS, replicates=REPLICATES, seed=1, workers=1)


def numbers(result):
    told = result.to_dict()
    del told["seconds"]
    return told


def counts(criterion, matrix, undecided=0, failed=0):
    """Matrices made of these counts."""
    matrix = np.array(matrix)
    zero = np.zeros(len(matrix), dtype=np.int64)
    names = [f"model_{i}" for i in range(len(matrix))]
    rng = session_stream(1)
    return Confusion.of(criterion, names, matrix, zero + undecided, zero + failed, zero, rng)


# What can be told apart is


def test_learners_guessers_repeaters_and_switchers_are_told_apart(four):
    # Chance is 1/4; 5 binomial standard errors of 150 data sets above it are 0.43.
    limit = 0.25 + 5 * sqrt(0.25 * 0.75 / REPLICATES)
    for confusion in four.confusions:
        assert np.all(np.diag(confusion.confusion.value) > limit)
        assert np.all(np.diag(confusion.inversion.value) > limit)
        # None may be chance: which of the better words it is, 150 data sets do not always tell.
        words = {v.word for v in confusion.verdicts}
        assert words <= {"recoverable", "weak", "between recoverable and weak"}
    assert four.attempted == 4 * REPLICATES
    assert four.failed == 0


def test_several_subjects_together_tell_more_than_one():
    one, ten = (
        confuse(PLACE, RIVALS[1:], subjects=n, replicates=40, seed=2, workers=1)["bic"]
        for n in (1, 10)
    )
    assert [v.word for v in ten.verdicts] == ["recoverable"] * 3
    assert np.diag(ten.counts).sum() > np.diag(one.counts).sum()


def test_prediction_tells_them_apart_as_well():
    result = confuse(PLACE, RIVALS[1:], replicates=100, criteria=["cv", "loo"], seed=3, workers=1)
    # As above, for 3 models and 100 data sets: 0.57
    limit = 1 / 3 + 5 * sqrt(2 / 9 / 100)
    for confusion in result.confusions:
        assert np.all(np.diag(confusion.confusion.value) > limit)
    loo = result["loo"]
    assert loo.unreliable.sum() == 0  # poor weights were replaced by new posteriors
    assert "predicted by a posterior drawn without them" in result.notes[-1]
    assert result.to_dict()["sequences"] == ["session", "context"]


# What cannot be told apart is not


def test_nested_models_are_confused_as_often_as_theory_says():
    # A guesser is a perseverator of kappa = 0: twice the gain in log-likelihood is chi-square
    # with 1 degree of freedom (Wilks 1938), and AIC asks for 2, BIC for log 96.
    n = 1500
    result = confuse(PLACE, ["random_responder", "perseverator"], replicates=n, workers=1)
    for name, penalty in (("aic", 2.0), ("bic", log(96))):
        expected = chi2.sf(penalty, 1)
        wrong = result[name].confusion.value[0, 1]
        # 4 binomial errors, and a half again for whole numbers of repeats among 92 chances
        assert abs(wrong - expected) < 4 * sqrt(expected * (1 - expected) / n) + 0.01


def test_bic_prefers_the_simpler_of_two_nested_models_more_than_aic():
    result = confuse(
        PLACE, ["rescorla_wagner", "rescorla_wagner_dual"], replicates=150, seed=4, workers=1
    )
    aic, bic = result["aic"].counts, result["bic"].counts
    assert np.all(bic[:, 0] > aic[:, 0])
    assert result["bic"].verdicts[1].word == "not identified"
    assert "Data of rescorla_wagner_dual are taken for rescorla_wagner in" in str(
        result["bic"].verdicts[1]
    )


def test_data_that_all_models_explain_equally_are_undecided():
    # One visit to each casino: all of these models guess there, whatever their parameters.
    result = confuse(
        PLACE, RIVALS, trials=4, replicates=20, criteria=["aic", "cv", "loo"], workers=1
    )
    for name in ("cv", "loo"):
        assert result[name].undecided.tolist() == [20] * 4
        assert result[name].counts.sum() == 0
        assert np.isnan(result[name].inversion.value).all()
    # Equal likelihoods leave AIC the number of parameters: it always names the guesser.
    assert result["aic"].counts[:, 1].tolist() == [20] * 4
    for confusion in result.confusions:
        assert {v.word for v in confusion.verdicts} == {"not identified"}
    assert result.failed == 0
    json.loads(result.to_json())
    assert "equally well" in str(result)


def test_a_learner_who_ignores_rewards_is_not_taken_for_one():
    truth = {"beta": 0.0, "kappa": 0.0}
    result = confuse(PLACE, RIVALS[:2], truth=truth, replicates=60, seed=5, workers=1)
    assert result["bic"].verdicts[0].word == "not identified"
    assert result.to_dict()["truth"] == {"rescorla_wagner": truth}


# Matrices, intervals, verdicts


def test_shares_are_counts_over_all_data_sets_and_inversion_divides_columns():
    one = counts("aic", [[60, 20], [30, 60]], undecided=[15, 10], failed=[5, 0])
    assert one.n.tolist() == [100, 100]
    np.testing.assert_allclose(one.confusion.value, [[0.6, 0.2], [0.3, 0.6]])
    np.testing.assert_allclose(one.inversion.value, [[2 / 3, 1 / 4], [1 / 3, 3 / 4]])
    assert "15 of 100 data sets are explained equally well" in str(one.verdicts[0])
    assert "One model or several could not be fitted to 5 of 100 data sets" in str(one.verdicts[0])
    for shares in (one.confusion, one.inversion):
        assert np.all(shares.low < shares.value)
        assert np.all(shares.value < shares.high)


def test_inversion_takes_models_as_equally_probable_whatever_their_numbers_of_data_sets():
    few = inversion_shares(np.array([[8, 2], [30, 70]]), np.array([10, 100]), session_stream(1))
    np.testing.assert_allclose(few.value[:, 0], [0.8 / 1.1, 0.3 / 1.1])


def test_intervals_hold_the_true_shares_as_often_as_they_say():
    rng = session_stream(6)
    truth = np.array([[0.7, 0.2, 0.1], [0.25, 0.5, 0.25], [0.02, 0.08, 0.9]])
    inverse = truth / truth.sum(axis=0)
    n, repetitions = 100, 150
    held = np.zeros((2, 3, 3))
    for _ in range(repetitions):
        drawn = np.stack([rng.multinomial(n, row) for row in truth])
        each = np.full(3, n)
        for k, (shares, true) in enumerate(
            ((confusion_shares(drawn, each), truth), (inversion_shares(drawn, each, rng), inverse))
        ):
            held[k] += (shares.low <= true) & (true <= shares.high)
    # 0.95 within 4 binomial errors, and 0.02 for what whole numbers of data sets cannot give
    assert np.all(np.abs(held / repetitions - 0.95) < 4 * sqrt(0.95 * 0.05 / repetitions) + 0.02)


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
    assert str(few) == "not judged: Data sets: 19; 20 are needed."


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


def test_a_replicate_that_breaks_fails_alone(monkeypatch):
    work = model_recovery.live

    def broken(study, batch, subjects):
        if (subjects.replicate == 4).any() and batch.cell == 1:
            raise FloatingPointError("planted")
        return work(study, batch, subjects)

    monkeypatch.setattr(model_recovery, "live", broken)
    result = confuse(PLACE, RIVALS[:2], replicates=20, workers=1)
    for confusion in result.confusions:
        assert confusion.failed.tolist() == [0, 1]
        assert confusion.n.tolist() == [20, 20]
    assert result.notes == ("1 of 40 subjects: planted",)


# Studies


def test_workers_folders_and_cuts_change_no_number(tmp_path):
    settings = {"replicates": 12, "subjects": 3, "seed": 7, "criteria": ["aic", "cv"]}
    models = RIVALS[1:]
    first = confuse(PLACE, models, workers=1, out=tmp_path / "one", **settings)
    assert numbers(confuse(PLACE, models, workers=2, **settings)) == numbers(first)

    # The folder is read, resumed after a loss, and refused to another question.
    assert read_confusion(tmp_path / "one").to_json() == first.to_json()
    parts = sorted((tmp_path / "one" / "parts").iterdir())
    parts[0].unlink()
    resumed = confuse(PLACE, models, workers=1, out=tmp_path / "one", **settings)
    assert numbers(resumed) == numbers(first)
    settings["criteria"] = ["aic"]
    with pytest.raises(ValueError, match="another design"):
        confuse(PLACE, models, workers=1, out=tmp_path / "one", **settings)

    # Parts of 7 subjects cut data sets of 3 in two.
    cells = tuple(dataclasses.replace(cell, batch=7) for cell in first.study.cells)
    cut = run(dataclasses.replace(first.study, cells=cells), score_batch, summarise, workers=1)
    assert numbers(cut) == numbers(first)

    # Folders of 0.1.0 do not say which trials were fitted (all of them), and are read.
    cells = tuple(
        dataclasses.replace(
            cell, options={k: v for k, v in cell.options.items() if k != "all_trials"}
        )
        for cell in first.study.cells
    )
    older = dataclasses.replace(first.study, cells=cells)
    parts = tmp_path / "one" / "parts"
    for now, then in zip(first.study.batches(), older.batches(), strict=True):
        (parts / first.study.part_name(now)).rename(parts / older.part_name(then))
    assert numbers(summarise(Rows(older, tmp_path / "one", {}))) == numbers(first)


def test_methods_of_other_studies_see_the_same_subjects():
    from knownminds.validation.recovery.parameter_recovery import recover

    cell = confuse(PLACE, RIVALS[:2], replicates=5, workers=1).study.cells[0]
    assert cell.data_key == recover(PLACE, RIVALS[0], subjects=5, workers=1).cell.data_key


def test_a_lapse_rate_is_estimated_where_it_changes_anything():
    result = confuse(PLACE, RIVALS[:3], lapse=0.1, fit_lapse=True, replicates=20, workers=1)
    told = result.to_dict()
    assert told["lapse_in"] == ["rescorla_wagner", "perseverator"]
    # A guesser has no lapses: AIC must not charge for any.
    assert result["aic"].counts[1, 1] > 10
    assert confuse(PLACE, RIVALS[:3], replicates=2, workers=1).to_dict()["lapse_in"] == []


def test_the_study_says_how_to_ask_again():
    study = confuse(
        PLACE,
        RIVALS[:2],
        trials=40,
        replicates=3,
        sessions=2,
        truth={"beta": 3.0},
        criteria=["bic", "cv"],
        fit_lapse=True,
        workers=1,
    ).study
    assert study.command_line() == (
        "knownminds confuse instrumental_learning --model rescorla_wagner --model "
        "random_responder --criterion bic --criterion cv --subjects 1 --replicates 3 "
        "--sessions 2 --trials 40 --seed 0 --set beta=3 --fit-lapse"
    )
    assert isinstance(study, Study)


def test_the_result_prints_both_matrices_and_gives_a_long_frame(four):
    text = str(four)
    for title in ("AIC: p(best fit | simulated)", "BIC: p(simulated | best fit)"):
        assert title in text
    frame = four.to_frame()
    assert len(frame) == len(four.criteria) * len(RIVALS) ** 2
    row = frame.query("criterion == 'bic' and simulated == fitted == 'perseverator'").iloc[0]
    told = four.to_dict()
    cell = told["confusion"]["bic"]["perseverator"]["perseverator"]
    assert row["share"] == cell["share"] == row["best"] / row["n"]
    assert row["low"] < row["share"] < row["high"]
    assert row["verdict"] == told["verdicts"]["bic"]["perseverator"]["verdict"]
    shares = frame.groupby(["criterion", "simulated"])["share"].sum()
    assert shares.to_numpy() == pytest.approx(1)
    keys = "environment settings models criteria subjects replicates sessions seed attempted failed"
    assert set(keys.split()) <= set(told)
    assert isinstance(frame, pd.DataFrame)


# Misuse


class Brooder(Perseverator):
    name = "brooder"
    separate = ()


class Glutton(Perseverator):
    name = "glutton"
    columns = ("action", "calories")


class Juggler(Perseverator):
    name = "juggler"
    n_actions = 3


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        (["perseverator"], {}, "at least 2 models against each other; got only perseverator"),
        ([], {}, "got none"),
        (["perseverator", Perseverator], {}, "got perseverator twice"),
        (["perseverater", "rescorla_wagner"], {}, "perseverator"),
        (RIVALS, {"criteria": ["aik"]}, "aic"),
        (RIVALS, {"criteria": []}, "at least one criterion"),
        (RIVALS, {"criteria": ["aic", "aic"]}, "named once; got aic, aic"),
        (RIVALS, {"truth": {"alhpa": 0.3}}, "alpha"),
        (RIVALS, {"truth": {"alpha": 1.3}}, r"alpha lies in \(0, 1\); got 1.3"),
        (RIVALS, {"lapse": 2.0}, "lapse lies in"),
        (RIVALS, {"subjects": 0}, "number of subjects is at least 1; got 0"),
        (RIVALS, {"replicates": 0}, "number of replicates is at least 1; got 0"),
        (RIVALS, {"sessions": 0}, "number of sessions is at least 1; got 0"),
        (["brooder", "perseverator"], {"criteria": ["cv"]}, "needs at least 2.*--sessions 2"),
        (["glutton", "perseverator"], {}, "goes by 'calories'"),
        (["juggler", "perseverator"], {}, "juggler chooses between 3 actions"),
    ],
)
def test_misuse_is_one_clear_sentence(models, options, message, monkeypatch, tmp_path):
    for model in (Brooder, Glutton, Juggler):
        monkeypatch.setitem(AGENTS, model.name, model)
    with pytest.raises(ValueError, match=message):
        confuse(PLACE, models, out=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


class Deaf(RescorlaWagnerByHand):
    """Its kernels learn, its steps do not."""

    name = "deaf"

    def learn(self, observation, action, reward):
        pass


def test_a_model_that_plays_differently_step_by_step_is_refused(monkeypatch):
    monkeypatch.setitem(AGENTS, "deaf", Deaf)
    with pytest.raises(RuntimeError, match="deaf plays differently"):
        confuse(PLACE, ["deaf", "perseverator"])


def test_a_brooder_is_cross_validated_over_sessions(monkeypatch):
    monkeypatch.setattr(model_recovery, "check_step_loop", lambda study: None)  # it has none
    monkeypatch.setitem(AGENTS, "brooder", Brooder)
    result = confuse(
        InstrumentalLearning(8),
        ["brooder", "perseverator", "random_responder"],
        criteria=["cv"],
        sessions=2,
        replicates=30,
        workers=1,
    )
    assert result.to_dict()["sequences"] == ["session"]
    # Whoever repeats 13 choices of 28 has kappa = 0 by the MAP: a perseverator who guesses.
    assert result["cv"].counts.sum() + result["cv"].undecided.sum() == 90
    assert result["cv"].counts.sum() > 80
    assert set(CRITERIA) == {"aic", "bic", "cv", "loo"}
