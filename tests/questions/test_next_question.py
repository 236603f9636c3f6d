"""Chosen questions: expected information by routes of its own, and what choosing gains."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from knownminds.agents import HyperbolicDiscounter, RescorlaWagner, WeightedBayes
from knownminds.environments import (
    ChosenSession,
    InstrumentalLearning,
    ProbabilisticReasoning,
    TemporalDiscounting,
    session_stream,
)
from knownminds.inference import ChosenQuestions, Inquiry, play_chosen
from knownminds.inference.questions.next_question import chosen_rows

GRID = TemporalDiscounting(design="grid", losses=False)
PRIOR = HyperbolicDiscounter.parameters
FIXED = {"eta": 1.0}


def dense(rows=()):
    """Return log k, tau and posterior weights on a grid, by the formula written out."""
    z = np.linspace(-4.5, 4.5, 121)
    k, tau = (np.exp(PRIOR[name].mean + PRIOR[name].sd * z) for name in ("k", "tau"))
    weights = np.outer(norm.pdf(z), norm.pdf(z))
    for row in rows:
        p = chance(k[:, None], tau[None, :], row["sooner_amount"], row["later_delay"])
        weights = weights * (p if row["action"] else 1 - p)
    return k[:, None], tau[None, :], weights / weights.sum()


def chance(k, tau, sooner, delay):
    return expit((500 / (1 + k * delay) - sooner) / 500 / tau)


def entropy(p):
    p = np.clip(p, 1e-300, 1.0)
    return -p * np.log(p) - (1 - p) * np.log(np.clip(1 - p, 1e-300, 1.0))


def informed(rows, sooner, delay):
    k, tau, weights = dense(rows)
    p = chance(k, tau, sooner, delay)
    return float(entropy((weights * p).sum()) - (weights * entropy(p)).sum())


def test_information_of_choices_is_that_of_a_dense_grid_at_first_and_after_answers():
    # 512 points of low discrepancy integrate these smooth functions to some thousandths of a nat;
    # after ten answers their weights are worth a quarter of that.
    agent = HyperbolicDiscounter(k=0.08, tau=0.07, eta=1.0)
    chosen = ChosenQuestions(HyperbolicDiscounter, 10, fixed=FIXED)
    trials = play_chosen(agent, GRID, chosen, 3, 0)
    rows = trials.frame.to_dict("records")
    for n in (0, 4):
        own = informed(rows[:n], rows[n]["sooner_amount"], rows[n]["later_delay"])
        assert rows[n]["expected_information"] == pytest.approx(own, abs=0.012), n
        design = GRID.draw(session_stream(3, 0))
        table = design.table
        every = [
            informed(rows[:n], s, d)
            for s, d in zip(table["sooner_amount"], table["later_delay"], strict=True)
        ]
        left = [i for i in range(len(every)) if i not in {r["picked"] for r in rows[:n]}]
        assert own > max(every[i] for i in left) - 0.02, n  # none is better by more than the error


def test_information_of_numbers_is_that_of_the_linear_normal_model():
    """With its noise known, WeightedBayes is a regression: I = log(1 + x'Sx / sigma^2) / 2."""
    place = ProbabilisticReasoning(n_problems=24)
    sigma = 0.5
    design = place.draw(session_stream(1, 0))
    inquiry = Inquiry(WeightedBayes, place, design, {"sigma": sigma})
    table = design.table
    ratio = np.where(table["ball"] == 1, 1, -1) * logit(table["likelihood"])
    x = np.column_stack([np.ones(24), logit(table["prior"]), ratio])
    covariance = np.diag(WeightedBayes.parameters.sd[:3] ** 2)
    rows = []
    for asked in range(4):
        own = 0.5 * np.log1p(np.einsum("ij,jk,ik->i", x, covariance, x) / sigma**2)
        found, error = inquiry.expected()
        away = (found[inquiry._kind] - own) / error[inquiry._kind]
        # One set of answers for all questions, so their errors go together.
        assert np.abs(away).max() < 4.5, asked
        picked = inquiry(rows)
        best = own[[i for i in range(24) if i not in {r["picked"] for r in rows}]].max()
        assert own[picked.position] > best - 0.25
        one = x[picked.position]
        covariance = np.linalg.inv(np.linalg.inv(covariance) + np.outer(one, one) / sigma**2)
        rows.append({"picked": picked.position, "response": 0.6})
        inquiry.take_in(rows)


def spread_of_log_k(by):
    """Return the posterior's sd of log k after 20 questions, of 12 minds from the prior."""
    found = []
    for i in range(12):
        rng = np.random.default_rng([7, i])
        theta = PRIOR.draw(rng, 1)[0]
        agent = HyperbolicDiscounter(k=theta[0], tau=theta[1], eta=1.0)
        chosen = ChosenQuestions(HyperbolicDiscounter, 20, by, FIXED)
        rows = chosen_rows(agent, GRID, chosen, 5, i)
        k, _, weights = dense(rows)
        values, share = np.log(k[:, 0]), weights.sum(axis=1)
        found.append(np.sqrt(share @ (values - share @ values) ** 2))
    return np.array(found)


def test_chosen_questions_tell_more_than_as_many_in_mixed_order():
    gain = spread_of_log_k("order") - spread_of_log_k("information")
    assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_a_question_without_an_answer_is_used_up_and_teaches_nothing():
    design = GRID.draw(session_stream(1))
    inquiry = Inquiry(HyperbolicDiscounter, GRID, design, FIXED)
    session = ChosenSession(GRID, design, 3, inquiry)
    for _ in session:
        session.take(None)
    assert session.over
    assert len({row["picked"] for row in session.rows}) == 3
    np.testing.assert_array_equal(inquiry.particles.weights, np.full(512, 1 / 512))


@pytest.mark.parametrize(
    ("environment", "model", "more", "told"),
    [
        (InstrumentalLearning(), RescorlaWagner, {}, "pay rewards"),
        (TemporalDiscounting(), HyperbolicDiscounter, {}, "depends on earlier answers"),
        (GRID, HyperbolicDiscounter, {"questions": 1000}, "144 questions"),
        (GRID, HyperbolicDiscounter, {"fixed": {"k": 0.1, "tau": 0.1, "eta": 1.0}}, "are held"),
        (GRID, WeightedBayes, {}, "asks for an action"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_the_rule(environment, model, more, told):
    with pytest.raises(ValueError, match=told):
        ChosenQuestions(model, **{"questions": 5, **more}).check(environment)
