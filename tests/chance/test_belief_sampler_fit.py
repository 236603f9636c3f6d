import json
import re
from dataclasses import replace

import numpy as np
import pytest
from chance.test_belief_biases import PLACES, believed, exact
from scipy.optimize import minimize

from knownminds.environments import Choice, Dice
from knownminds.environments.chance.outcome_grid import MARKS
from knownminds.inference.chance.belief_sampler_fit import SAMPLER, _nearest, fit_belief_samplers
from knownminds.inference.chance.revealed_belief import RevealedBeliefs, SetUp, set_ups_of
from knownminds.llm_adapters import TokenLogProbability
from knownminds.llm_adapters.outcomes.outcome_tree import extends

THETA = np.array([1.3, 0.4, -0.3, 0.5, 0.8, 0.2, -0.1])
BIASES = dict(zip(MARKS, THETA[1:], strict=True))
SET_UPS = tuple(s for place in PLACES for s in set_ups_of(place))
GROUPS = {}
for each in SET_UPS:
    GROUPS.setdefault(each.outcomes, []).append(each)


def sampled(theta, draws, seed):
    rng = np.random.default_rng(seed)
    parts = []
    for outcomes, own in GROUPS.items():
        biases = dict(zip(MARKS, theta[1:], strict=True))
        q = 0.9 * np.array([believed(set_up, theta[0], **biases) for set_up in own])
        counts = rng.multinomial(draws, np.column_stack([q, np.full(len(q), 0.1)]))
        parts.append(RevealedBeliefs.sampled(counts[:, :-1], counts[:, -1], outcomes, set_ups=own))
    return RevealedBeliefs.join(*parts)


def listed(theta, top, share):
    parts = []
    for set_up in SET_UPS:
        q = share * believed(set_up, theta[0], **dict(zip(MARKS, theta[1:], strict=True)))
        order = [k for k in np.argsort(-q, kind="stable")[:top] if q[k] > 0]
        table = tuple((set_up.outcomes[k] + " ", float(np.log(q[k]))) for k in order)
        parts.append(
            RevealedBeliefs.top_k(
                [[[TokenLogProbability(*table[0], table)]]],
                set_up.outcomes,
                extends=extends,
                set_ups=[set_up],
            )
        )
    return RevealedBeliefs.join(*parts)


def test_exact_beliefs_give_back_all_parameters():
    found = fit_belief_samplers(exact(THETA[0], **BIASES))
    assert found.fit.names == SAMPLER.names
    np.testing.assert_allclose(found.fit.estimate[0], THETA, rtol=1e-6)
    assert found.fit.status == ("ok",)
    assert found.fit.log_likelihood[0] == pytest.approx(0.0, abs=1e-9)
    assert found.elsewhere[0] == pytest.approx(0.1)
    assert found.leak[0] == pytest.approx(0.0, abs=1e-12)
    assert found.held == {}
    assert json.loads(found.to_json())["minds"][0]["temperature"] == pytest.approx(1.3)


def test_the_fit_of_counts_is_the_maximum_of_the_multinomial_likelihood():
    beliefs = sampled(THETA, 50, 1)
    found = fit_belief_samplers(beliefs)

    def against(z):
        total = 0.0
        for k in range(len(beliefs)):
            own = beliefs.rows(k)
            p, counts = beliefs.truth[own], beliefs.count[own]
            at = p > 0
            height = np.log(p[at]) * np.exp(-z[0]) + beliefs.marks[own][at] @ z[1:]
            total -= counts[at] @ (height - np.logaddexp.reduce(height))
        return total

    searched = minimize(against, np.zeros(7), method="BFGS", options={"gtol": 1e-3})
    np.testing.assert_allclose(found.fit.z[0], searched.x, atol=1e-4)
    assert found.fit.log_likelihood[0] == pytest.approx(-searched.fun, abs=1e-6)
    # Curvature by finite differences of the value, column by column.
    h, here = 1e-3, found.fit.z[0]
    information = np.linalg.inv(found.fit.covariance[0])
    for k in range(7):
        e = h * np.eye(7)[k]
        second = (against(here + e) - 2 * against(here) + against(here - e)) / h**2
        assert second == pytest.approx(information[k, k], rel=1e-3)


@pytest.mark.parametrize("draws", [50, 1000])
def test_parameters_are_recovered_from_samples_with_intervals_that_hold_them(draws):
    rng = np.random.default_rng(draws)
    theta = np.column_stack([np.exp(rng.normal(0, 0.3, 30)), rng.normal(0, 0.5, (30, 6))])
    found = fit_belief_samplers(
        {f"{i}": sampled(t, draws, i) for i, t in enumerate(theta)}, workers=1
    )
    low, high = found.fit.interval(0.9)
    held = (low <= theta) & (theta <= high)
    # 210 intervals: 189 expected, 4 standard errors 17.4
    assert 171 <= held.sum() <= 206
    for k in range(7):
        r = np.corrcoef(found.fit.estimate[:, k], theta[:, k])[0, 1]
        mixed = np.corrcoef(found.fit.estimate[::-1, k], theta[:, k])[0, 1]
        assert r > 0.8
        assert abs(mixed) < 0.7  # other minds' parameters are not recovered
    np.testing.assert_allclose(found.elsewhere, 0.1, atol=0.02)
    assert (
        (found.elsewhere_low < found.elsewhere) & (found.elsewhere < found.elsewhere_high)
    ).all()


def test_top_20_tables_give_back_the_parameters_as_far_as_they_list_everything():
    errors = []
    for share, wanted in ((0.9999, 0.01), (0.95, 0.25)):
        found = fit_belief_samplers(listed(THETA, 20, share))
        # Some belief within the bounds is just what the model has.
        assert found.fit.log_likelihood[0] == pytest.approx(0.0, abs=1e-6)
        errors.append(np.abs(found.fit.estimate[0] - THETA).max())
        assert errors[-1] < wanted
    assert errors[0] < errors[1]
    # Taken for all there is, three of up to twelve outcomes make a sampler of these three.
    three = listed(THETA, 3, 0.95)
    few = fit_belief_samplers(three, keep_flagged=True)
    assert few.fit.log_likelihood[0] == pytest.approx(0.0, abs=1e-3)
    assert np.abs(few.fit.estimate[0] - THETA).max() < 0.8
    taken = replace(three, unplaced=((),) * len(three), high=three.low)
    wrong = fit_belief_samplers(taken, keep_flagged=True)
    assert (
        np.abs(wrong.fit.estimate[0] - THETA).max() > 2 * np.abs(few.fit.estimate[0] - THETA).max()
    )


def test_the_nearest_belief_within_bounds_is_that_of_a_search():
    rng = np.random.default_rng(5)
    for _ in range(5):
        model, low = rng.dirichlet(np.ones(4)), rng.random(4) * 0.2
        high, missing = low + rng.random(4) * 0.2, 0.15
        found = np.empty(4)
        _nearest(model, low, high, missing, found)
        raised = rng.dirichlet(np.full(5, 0.5), 40000)[:, :4] * missing
        tried = np.minimum(low + raised, high)
        tried /= tried.sum(axis=1, keepdims=True)
        divergence = (tried * np.log(tried / model)).sum(axis=1)
        best = (found * np.log(found / model)).sum()
        assert best <= divergence.min() + 1e-9
        assert divergence.min() - best < 0.01


def test_only_what_contexts_can_tell_is_estimated():
    place = (Choice(4),)
    found = fit_belief_samplers(exact(1.0, place, first=0.5))
    # Choice is always even: no temperature; and nothing is a multiple of ten.
    assert found.fit.names == ("bias_first", "bias_middle", "bias_repeat")
    assert found.held == {
        "temperature": 1.0,
        "bias_round": 0.0,
        "bias_heads": 0.0,
        "bias_left": 0.0,
    }
    assert "The contexts do not tell temperature = 1" in str(found)
    chosen = fit_belief_samplers(exact(THETA[0], **BIASES), parameters=["temperature"])
    assert chosen.fit.names == ("temperature",)


def test_many_minds_are_fitted_as_one_by_one():
    minds = {f"{i}": sampled(THETA, 50, 20 + i) for i in range(3)}
    together = fit_belief_samplers(minds)
    for i, (name, own) in enumerate(minds.items()):
        alone = fit_belief_samplers({name: own})
        np.testing.assert_allclose(together.fit.z[i], alone.fit.z[0], atol=1e-9)
    mixed = fit_belief_samplers({"a": minds["0"], "b": exact(THETA[0], **BIASES)})
    np.testing.assert_allclose(mixed.fit.estimate[1], THETA, rtol=1e-5)


def test_a_mind_all_of_whose_contexts_are_flagged_is_a_failed_fit_among_others():
    set_up = set_ups_of(Choice(4))[0]

    def counted(counts, others):
        return RevealedBeliefs.sampled([counts], [others], set_up.outcomes, set_ups=[set_up])

    found = fit_belief_samplers({"a": counted([1, 0, 0, 0], 99), "b": counted([5, 9, 3, 8], 0)})
    assert found.fit.status == ("failed", "ok")
    assert np.isnan(found.fit.estimate[0]).all()
    assert np.isfinite(found.fit.estimate[1]).all()
    assert found.n_contexts.tolist() == [0, 1]
    assert "1 ok, 1 failed" in str(found)
    assert "1 flagged contexts left out" in str(found)


def test_contexts_that_differ_in_nothing_are_one_for_counts_and_nothing_is_lost():
    set_up = set_ups_of(Choice(4))[0]
    many = np.array([[5, 9, 3, 8], [1, 2, 0, 4], [7, 3, 3, 3]])
    apart = RevealedBeliefs.sampled(many, [0] * 3, set_up.outcomes, set_ups=[set_up] * 3)
    at_once = RevealedBeliefs.sampled([many.sum(axis=0)], [0], set_up.outcomes, set_ups=[set_up])
    one, other = fit_belief_samplers(apart).fit, fit_belief_samplers(at_once).fit
    np.testing.assert_allclose(one.z, other.z, atol=1e-9)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-9)
    assert one.log_likelihood[0] == pytest.approx(other.log_likelihood[0], abs=1e-9)


def test_a_temperature_that_is_held_stays_where_it_is():
    beliefs = sampled(THETA, 200, 8)
    found = fit_belief_samplers(beliefs, parameters=[f"bias_{mark}" for mark in MARKS])

    def against(z):
        total = 0.0
        for k in range(len(beliefs)):
            own = beliefs.rows(k)
            at = beliefs.truth[own] > 0
            height = np.log(beliefs.truth[own][at]) + beliefs.marks[own][at] @ z
            total -= beliefs.count[own][at] @ (height - np.logaddexp.reduce(height))
        return total

    assert found.fit.log_likelihood[0] == pytest.approx(-against(found.fit.z[0]), abs=1e-6)
    for step in 1e-3 * np.vstack([np.eye(6), -np.eye(6)]):
        assert against(found.fit.z[0] + step) > against(found.fit.z[0])


def test_priors_pull_more_where_beliefs_are_worth_less():
    beliefs = exact(THETA[0], **BIASES)
    little = fit_belief_samplers(beliefs, method="map", worth=0.1).fit.z[0]
    much = fit_belief_samplers(beliefs, method="map", worth=1000.0).fit.z[0]
    free = fit_belief_samplers(beliefs).fit.z[0]
    assert (np.abs(little) < np.abs(free)).all()
    np.testing.assert_allclose(much, free, atol=0.01)


def test_leaks_to_what_cannot_come_are_told_and_change_nothing_else():
    set_ups = [s for s in set_ups_of(Dice(1, 12)) if min(s.truth) == 0]
    parts = []
    for set_up in set_ups:
        p = np.asarray(set_up.truth)
        q = 0.8 * believed(set_up, 1.0, first=0.5) + 0.2 * (p == 0) / (p == 0).sum()
        counts = np.round(q * 1e6).astype(int)
        parts.append(RevealedBeliefs.sampled([counts], [0], set_up.outcomes, set_ups=[set_up]))
    found = fit_belief_samplers(RevealedBeliefs.join(*parts))
    assert found.leak[0] == pytest.approx(0.2, abs=1e-4)
    assert found.fit.estimate[0, found.fit.names.index("bias_first")] == pytest.approx(
        0.5, abs=1e-3
    )


@pytest.mark.parametrize(
    ("beliefs", "options", "sentence"),
    [
        (sampled(THETA, 5, 0), {"parameters": ["bias_last"]}, "bias_last"),
        (sampled(THETA, 5, 0), {"parameters": []}, "at least one"),
        (sampled(THETA, 5, 0), {"method": "bayes"}, '"mle" or "map"'),
        (sampled(THETA, 5, 0), {"worth": 0.0}, "worth is above 0"),
        ({}, {}, "At least one mind"),
        (RevealedBeliefs.sampled([[1, 2]], [0], ("A", "B")), {}, "starts from the true"),
        (
            RevealedBeliefs.sampled([[1]], [0], ("A",), set_ups=[SetUp("a", ("A",), [1.0])]),
            {},
            "at least two outcomes that differ",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(beliefs, options, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        fit_belief_samplers(beliefs, **options)


def test_ends_over_all_that_tables_allow_are_searched_for_unless_nobody_wants_them():
    three = listed(THETA, 3, 0.95)
    names = ["bias_first", "bias_repeat"]
    plain = fit_belief_samplers(three, parameters=names, keep_flagged=True, ends=False)
    assert np.isnan(plain.least).all()
    found = fit_belief_samplers(three, parameters=names, keep_flagged=True)
    np.testing.assert_array_equal(found.fit.z, plain.fit.z)
    assert (found.least < found.fit.estimate).all()
    assert (found.fit.estimate < found.most).all()
