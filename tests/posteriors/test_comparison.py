"""Comparing models: what is left out is predicted, and alike for all rivals."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from knownminds.agents import (
    AGENTS,
    Perseverator,
    RandomResponder,
    RescorlaWagner,
    WinStayLoseShift,
    simulate,
)
from knownminds.environments import InstrumentalLearning, Trials, session_stream
from knownminds.inference import ModelData, compare, maximum_a_posteriori, maximum_likelihood
from knownminds.inference.fits import cross_validation as cross_validation_module
from knownminds.inference.fits.cross_validation import Folds, SequenceData, cross_validate
from knownminds.inference.posteriors import comparison as comparison_module
from knownminds.inference.posteriors.comparison import leave_one_sequence_out
from knownminds.inference.posteriors.posterior import posterior

ALL = tuple(model for model in AGENTS.values() if model.plays(InstrumentalLearning()))


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


def part(trials, chosen):
    return Trials.from_frame(trials.frame[chosen].reset_index(drop=True))


def log_probability(model, theta, frame):
    """Add up one subject's choices, trial by trial, in plain Python."""
    total = 0.0
    for _, session in frame.groupby("session", sort=False):
        agent = model.from_theta(theta, actions=2)
        for row in session.itertuples():
            observation = {"context": row.context, "trial": row.trial}
            if pd.isna(row.action):
                continue
            total += np.log(agent.probabilities(observation)[int(row.action)])
            agent.learn(observation, int(row.action), float(row.reward))
    return total


# Cross-validation


@pytest.mark.parametrize("model", [RescorlaWagner, Perseverator, RandomResponder])
def test_cross_validation_equals_a_slow_loop_over_subjects_and_contexts(model):
    trials = sessions(RescorlaWagner, 3)
    folds = Folds.read(ALL, trials)
    assert folds.by == ("session", "context")
    result = cross_validate(ModelData.read(model, trials), folds)
    frame = trials.frame
    for i, subject in enumerate(trials.subjects):
        slow = 0.0
        for context in frame["context"].unique():
            mine, here = frame["subject"] == subject, frame["context"] == context
            rest = maximum_a_posteriori(model, part(trials, mine & ~here))
            slow += log_probability(model, rest.estimate[0], frame[mine & here])
        assert result.log_score[i] == pytest.approx(slow, rel=1e-6)


def test_subjects_may_have_different_numbers_of_sessions_and_missing_answers():
    trials = sessions(Brooder, 3, count=3)
    frame = trials.to_frame()
    frame = frame[(frame["subject"] != "1") | (frame["session"] != "2")].reset_index(drop=True)
    silent = (frame["subject"] == "2") & (frame["trial"] % 5 == 0)
    frame.loc[silent, ["action", "reward"]] = pd.NA
    frame.loc[silent, "outcome"] = "refused"
    trials = Trials.from_frame(frame)
    folds = Folds.read([Brooder, RescorlaWagner], trials)
    assert folds.by == ("session",)
    assert folds.count.tolist() == [3, 2, 3]
    result = cross_validate(ModelData.read(Brooder, trials), folds)
    frame = trials.frame
    for i, subject in enumerate(trials.subjects):
        slow = 0.0
        for session in frame.loc[frame["subject"] == subject, "session"].unique():
            mine, here = frame["subject"] == subject, frame["session"] == session
            rest = maximum_a_posteriori(Brooder, part(trials, mine & ~here))
            here = frame[mine & here].assign(context=0)  # one memory for all contexts
            slow += log_probability(Brooder, rest.estimate[0], here)
        assert result.log_score[i] == pytest.approx(slow, rel=1e-6)


def test_all_rivals_leave_out_what_the_most_brooding_of_them_keeps_apart():
    once, twice = sessions(Perseverator, 2), sessions(Perseverator, 2, count=2)
    assert Folds.read([Perseverator, RescorlaWagner], once).count.tolist() == [4, 4]
    assert Folds.read([Perseverator, Brooder], twice).count.tolist() == [2, 2]
    with pytest.raises(ValueError, match=r'subject "0" has 1, told apart by session.*--sessions 2'):
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
    result = cross_validate(ModelData.read(RescorlaWagner, trials), Folds.read(ALL, trials))
    assert result.status == ("ok", "failed")
    assert result.message[1].startswith("without sequence ")
    assert result.message[1].endswith(": no trial has a response")
    assert np.isfinite(result.log_score[0])
    assert np.isnan(result.log_score[1])
    assert "1 failed" in str(result)


def test_cross_validation_does_not_reward_parameters_that_fit_noise():
    trials = sessions(RandomResponder, 200, visits=12)
    folds = Folds.read(ALL, trials)
    scores = {m.name: cross_validate(ModelData.read(m, trials), folds).total for m in ALL}
    fits = {m.name: maximum_likelihood(m, trials).log_likelihood.sum() for m in ALL}
    assert max(scores, key=scores.get) == "random_responder"
    assert min(fits, key=fits.get) == "random_responder"


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


def by_quadrature(cut, draws):
    """Return the same for a model of one parameter, exactly; the error is that of n draws."""
    pairs = np.arange(len(cut.pairs[0]))
    parameters, held, rest = cut.data.model.parameters, cut.only(pairs), cut.without(pairs)
    grid = (parameters.mean + parameters.sd * np.linspace(-7, 7, 2001))[:, None]
    ones = np.ones((len(pairs), 1))
    left_out = np.stack([held.log_likelihood(z * ones)[0] for z in grid])
    weight = np.stack([rest.log_likelihood(z * ones)[0] for z in grid])
    weight += parameters.log_prior(grid)[0][:, None]
    weight -= logsumexp(weight, axis=0)
    value = logsumexp(weight + left_out, axis=0)
    variance = (np.exp(weight) * (np.exp(left_out - value) - 1) ** 2).sum(axis=0)
    return value, np.sqrt(variance / draws)


@pytest.mark.parametrize(
    ("model", "truth"), [(RescorlaWagner, from_new_posteriors), (Perseverator, by_quadrature)]
)
def test_loo_is_what_posteriors_without_the_sequences_say(model, truth):
    draws = 5000
    trials = sessions(model, 25, visits=12, seed=4)
    data, folds = ModelData.read(model, trials), Folds.read(ALL, trials)
    cut = SequenceData.cut(data, folds)
    subject, _ = cut.pairs
    value, error = truth(cut, draws)
    elpd = np.bincount(subject, value)
    # Draws are resampled from as many again weighted ones, which about doubles their variance;
    # PSIS weights them once more. Both sides together have some 2.5 errors per sequence; the
    # sequences of a subject share its draws, so theirs add up. The bound is 4 of these.
    bound = 10 * np.bincount(subject, error)
    result = leave_one_sequence_out(data, folds, draws=draws, workers=1)
    assert result.unreliable == 0
    assert np.all(np.abs(result.elpd - elpd) < bound)
    # Negative control: what the sequences themselves have shaped predicts them too well.
    inside = posterior(model, data, nuts=False, workers=1)
    fitted = np.stack([data.log_likelihood(theta)[0] for theta in inside.draws]).mean(axis=0)
    assert np.median((fitted - elpd) / bound) > 1


def test_sequences_the_weights_cannot_serve_are_counted_or_fitted_anew():
    trials = sessions(RescorlaWagner, 80, visits=12, seed=4)
    data, folds = ModelData.read(RescorlaWagner, trials), Folds.read(ALL, trials)
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


def test_no_number_depends_on_how_many_subjects_are_held_in_memory(monkeypatch):
    trials = sessions(WinStayLoseShift, 7, visits=12, seed=2)
    data, folds = ModelData.read(WinStayLoseShift, trials), Folds.read(ALL, trials)
    scored = [cross_validate(data, folds).log_score, leave_one_sequence_out(data, folds).elpd]
    monkeypatch.setattr(comparison_module, "SUBJECTS_AT_ONCE", 3)
    monkeypatch.setattr(cross_validation_module, "ROWS", 8)
    again = [cross_validate(data, folds).log_score, leave_one_sequence_out(data, folds).elpd]
    for before, after in zip(scored, again, strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-9)


def test_a_model_without_parameters_predicts_what_it_always_predicts():
    trials = sessions(RandomResponder, 3)
    data, folds = ModelData.read(RandomResponder, trials), Folds.read(ALL, trials)
    result = leave_one_sequence_out(data, folds)
    assert result.elpd == pytest.approx(np.full(3, 24 * np.log(0.5)))
    assert result.unreliable == 0
    assert cross_validate(data, folds).log_score == pytest.approx(result.elpd)


# AIC and BIC


def test_fits_are_ranked_by_their_sums_and_a_failed_one_is_counted():
    trials = sessions(RescorlaWagner, 6, visits=12)
    fits = {m.name: maximum_likelihood(m, trials) for m in (RescorlaWagner, RandomResponder)}
    table = compare(fits)
    simple, learner = fits["random_responder"], fits["rescorla_wagner"]
    assert table.loc["random_responder", "aic"] == pytest.approx(6 * 48 * 2 * np.log(2))
    penalty = 3 * np.log(48)
    assert learner.bic == pytest.approx(penalty - 2 * learner.log_likelihood)
    assert table["best_by_aic"].sum() == table["best_by_bic"].sum() == 6
    status = ("failed", *learner.status[1:])
    table = compare(fits | {"rescorla_wagner": dataclasses.replace(learner, status=status)})
    assert table.loc["rescorla_wagner", "failed"] == 1
    assert table["best_by_aic"].sum() == 5
    assert table.loc["random_responder", "aic"] == pytest.approx(simple.aic[1:].sum())


def test_fits_of_different_trials_are_not_compared():
    fits = {
        "a": maximum_likelihood(Perseverator, sessions(Perseverator, 2)),
        "b": maximum_likelihood(RandomResponder, sessions(Perseverator, 3)),
    }
    with pytest.raises(ValueError, match="of the same trials"):
        compare(fits)
