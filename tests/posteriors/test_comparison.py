"""Comparing models: what is left out is predicted, and alike for all rivals."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from knownminds.agents import AGENTS, Perseverator, RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning, Trials, session_stream
from knownminds.inference import ModelData
from knownminds.inference.fits.cross_validation import Folds, SequenceData, cross_validate
from knownminds.inference.posteriors.comparison import leave_one_sequence_out
from knownminds.inference.posteriors.posterior import posterior


@cache
def learners():
    return tuple(model for model in AGENTS.values() if model.plays(InstrumentalLearning()))


class Brooder(Perseverator):
    """Carries its last choice from one context into the next."""

    name = "brooder"
    separate = ()


def sessions(model, n, count=1, visits=6, seed=1):
    """Trials of n subjects who each live `count` sessions."""
    theta = model.parameters.draw(session_stream(seed), n)
    frames = []
    for k in range(count):
        lived = simulate(model, theta, InstrumentalLearning(visits), seed, address=(k,))
        frames.append(lived.to_frame().assign(session=str(k)))
    return Trials.from_frame(pd.concat(frames, ignore_index=True))


# Cross-validation


def test_all_rivals_leave_out_what_the_most_brooding_of_them_keeps_apart():
    once, twice = sessions(Perseverator, 2), sessions(Perseverator, 2, count=2)
    assert Folds.read([Perseverator, RescorlaWagner], once).count.tolist() == [4, 4]
    assert Folds.read([Perseverator, Brooder], twice).count.tolist() == [2, 2]
    with pytest.raises(ValueError, match=r'subject "0" has 1, separated by session.*--sessions 2'):
        Folds.read([Perseverator, Brooder], once)


def test_a_model_that_carries_over_is_not_cut_up():
    trials = sessions(Perseverator, 2)
    folds = Folds.read([Perseverator], trials)
    for score in (cross_validate, leave_one_sequence_out):
        with pytest.raises(ValueError, match="brooder carries something over"):
            score(ModelData.read(Brooder, trials), folds)


def test_a_subject_with_nothing_to_fit_to_fails_with_a_reason():
    frame = sessions(RescorlaWagner, 2).to_frame()
    silent = (frame["subject"] == "1") & (frame["context"] > 0)
    frame.loc[silent, ["action", "reward"]] = pd.NA
    frame.loc[silent, "outcome"] = "refused"
    trials = Trials.from_frame(frame)
    result = cross_validate(ModelData.read(RescorlaWagner, trials), Folds.read(learners(), trials))
    assert result["status"].tolist() == ["ok", "failed"]
    assert result.message[1].startswith("without sequence ")
    assert result.message[1].endswith(": no trial has a response")
    assert np.isfinite(result.log_score[0])
    assert np.isnan(result.log_score[1])


# PSIS-LOO


def from_new_posteriors(cut, draws):
    """log p(y_k | the others) of every pair from posteriors without y_k, and its error."""
    pairs = np.arange(len(cut.pairs[0]))
    rest = posterior(
        cut.data.model, cut.without(pairs), draws=draws, seed=77, nuts=False, workers=1
    )
    assert (rest.pareto_k <= 0.7).all()
    held = cut.only(pairs)
    log_likelihood = np.stack([held.log_likelihood(theta)[0] for theta in rest.draws])
    value = logsumexp(log_likelihood, axis=0) - np.log(draws)
    return value, np.exp(log_likelihood - value).std(axis=0) / np.sqrt(draws)


@pytest.mark.long
def test_sequences_the_weights_cannot_serve_are_counted_or_fitted_anew():
    trials = sessions(RescorlaWagner, 80, visits=12, seed=4)
    data, folds = ModelData.read(RescorlaWagner, trials), Folds.read(learners(), trials)
    cut = SequenceData.cut(data, folds)
    value, error = from_new_posteriors(cut, 1000)
    elpd, bound = np.bincount(cut.pairs[0], value), 10 * np.bincount(cut.pairs[0], error)
    weighted = leave_one_sequence_out(data, folds, workers=1, refit=False)
    anew = leave_one_sequence_out(data, folds, workers=1)
    poor = weighted.pareto_k > 0.7
    assert weighted.unreliable == poor.sum() > 3
    assert anew.unreliable == 0
    assert np.array_equal(anew.refitted > 0, poor)
    assert np.array_equal(anew.elpd[~poor], weighted.elpd[~poor])
    assert np.all(np.abs(anew.elpd - elpd)[poor] < bound[poor])  # the bound of the test above
