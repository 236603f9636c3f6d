"""Causal reasoners: what they predict, the density of their answers, and what can be recovered."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit

from knownminds.agents import (
    AssociativeReasoner,
    LogisticCollider,
    NoisyOr,
    NoisyOrFive,
    NoisyOrGaussian,
    NoisyOrThree,
    simulate,
)
from knownminds.agents.sequences import Sequences
from knownminds.environments import Collider, Trials
from knownminds.environments.causes.causal_graph import (
    GRAPHS,
    TASKS,
    conditional,
    joint,
    noisy_or_table,
    questions,
)
from knownminds.inference import ModelData, least_squares, maximum_a_posteriori, maximum_likelihood

QUESTION = ("graph", "query", "first", "second", "third")


def every_question(model):
    """All questions about all graphs that a model knows, [Q, 5]."""
    return np.array(
        [(GRAPHS.index(g), *q) for g in model.graphs for q in questions(g)], dtype=float
    )


def judged(model, theta, asked):
    """What the compiled simulation answers without noise, [N, Q], from 0 to 1."""
    theta = np.array(theta, dtype=float)
    theta[:, -1] = 0.0
    n, q = len(theta), len(asked)
    sequences = Sequences.group(np.repeat(np.arange(n), q), (), n)
    uniforms = sequences.pack(np.full((n * q, 2), 0.5))
    columns = [sequences.pack(c) for c in np.tile(asked, (n, 1)).T]
    given = model.simulate(theta, None, 0, sequences.row, sequences.start, uniforms, *columns)
    return sequences.unpack(given, n * q).reshape(n, q) / 100.0


def data(model, asked, responses):
    """Answers of one subject to questions [Q, 5]."""
    frame = pd.DataFrame(np.asarray(asked), columns=QUESTION).assign(
        subject="a", trial=np.arange(len(asked)), response=responses
    )
    return ModelData.read(model, Trials.from_frame(frame))


def told(asked):
    return dict(zip(QUESTION, asked, strict=True))


def test_the_noisy_or_answers_the_eleven_tasks_by_the_closed_forms():
    theta = NoisyOrFive.parameters.draw(np.random.default_rng(0), 20)
    table = noisy_or_table(*theta[:, :5].T)
    for direction in (0, 1):
        asked = [t.mirrored if direction and t.mirrored else t.question for t in TASKS]
        answers = judged(NoisyOrFive, theta, [(0, *question) for question in asked])
        assert np.allclose(answers, table[:, :, direction], atol=1e-12)


@pytest.mark.parametrize("graph", ["chain", "fork"])
def test_edges_of_chains_and_forks_are_noisy_ors_of_a_single_cause(graph):
    p, b, m = 0.3, 0.2, (0.6, 0.9)
    causes = {"chain": (None, 0, 1), "fork": (None, 0, 0)}[graph]

    def chance(variable, states):
        if causes[variable] is None:
            return [p]
        return 1 - (1 - b) * (1 - m[variable - 1] * states[:, 0])

    states = joint(graph, chance)
    asked = np.array([(GRAPHS.index(graph), *q) for q in questions(graph)])
    expected = conditional(states, *asked[:, 1:].T)
    assert np.allclose(judged(NoisyOr, [[p, b, *m, 0.1]], asked)[0], expected, atol=1e-12)


@pytest.mark.parametrize("lapse", [0.0, 0.2])
@pytest.mark.parametrize("sigma", [0.05, 0.6])
def test_density_and_the_masses_at_both_ends_make_one(lapse, sigma):
    agent = NoisyOr(p=0.3, b=0.1, m1=0.8, m2=0.6, sigma=sigma, lapse=lapse)
    shown = told((0, *TASKS[7].question))

    def density(y):
        return np.exp(agent.log_probability(shown, None, y, (0.0, 100.0)))

    inside, _ = quad(density, 0, 100, points=[100 * agent.predict(shown)], limit=200)
    ends = density(0.0) + density(100.0)
    assert inside + ends == pytest.approx(1.0, abs=1e-7)
    assert ends > (1e-6 if sigma < 0.1 else 0.1)
    kernel = data(NoisyOr, [list(shown.values())] * 2, [0.0, 100.0])
    rates = np.array([lapse]) if lapse else None
    total = kernel.log_likelihood(agent.theta[None], rates)[0][0]
    assert total == pytest.approx(np.log(density(0.0) * density(100.0)), rel=1e-10)


def test_an_association_is_the_share_of_what_is_present_and_mixes_with_a_noisy_or():
    asked = every_question(NoisyOr)
    causal = [0.4, 0.15, 0.7, 0.5]
    noisy_or = judged(NoisyOr, [[*causal, 0.1]], asked)
    none, all_of_it, half = judged(
        AssociativeReasoner, [[*causal, k, 0.1] for k in (0.0, 1.0, 0.5)], asked
    )
    shown = [[v for v in question[2:] if v >= 0] for question in asked]
    assert np.allclose(none, noisy_or[0])
    assert np.allclose(all_of_it, [np.mean(values) for values in shown])
    assert np.allclose(half, (none + all_of_it) / 2)


def test_log_odds_and_noisy_or_differ_in_what_two_causes_do_together():
    b, m1, m2 = 0.1, 0.6, 0.7
    singles = [1 - (1 - b) * (1 - m) for m in (m1, m2)]
    weights = [logit(e) - logit(b) for e in singles]
    asked = [(0, *TASKS[k].question) for k in range(3)] + [(0, *TASKS[1].mirrored)]
    causes = judged(NoisyOr, [[0.5, b, m1, m2, 0.1]], asked)[0]
    added = judged(LogisticCollider, [[0.5, logit(b), *weights, 0.1]], asked)[0]
    assert np.allclose(causes[[0, 1, 3]], added[[0, 1, 3]])
    assert added[2] == pytest.approx(expit(logit(b) + sum(weights)))
    assert added[2] - causes[2] > 0.05


def test_least_squares_is_the_maximum_likelihood_of_the_gaussian_without_a_cut():
    theta = NoisyOr.parameters.draw(np.random.default_rng(7), 4)
    trials = simulate(NoisyOr, theta, Collider(), 8)
    assert ((trials.frame["response"] == 0) | (trials.frame["response"] == 100)).any()
    gaussian, published = maximum_likelihood(NoisyOrGaussian, trials), least_squares(trials)
    assert np.allclose(gaussian.estimate[:, :4], published.estimate, atol=2e-4)
    assert np.allclose(gaussian.estimate[:, 4], published.rmse, atol=1e-5)


def test_the_cut_matters_where_answers_lie_at_the_ends_and_nowhere_else():
    shown = every_question(NoisyOr)[:6]
    theta = np.array([[0.4, 0.15, 0.7, 0.5, 0.2]])
    inside, at_ends = np.full(6, 30.0), np.array([0.0, 30.0, 30.0, 30.0, 30.0, 100.0])
    for responses, equal in ((inside, True), (at_ends, False)):
        ours = data(NoisyOr, shown, responses).log_likelihood(theta)[0][0]
        plain = data(NoisyOrGaussian, shown, responses).log_likelihood(theta)[0][0]
        assert (ours == pytest.approx(plain, rel=1e-12)) == equal


def test_eleven_answers_support_three_parameters_and_no_more():
    """Least correlation of estimate and truth among the causal parameters, 400 subjects."""
    least, n = {}, 400
    eleven = Collider(directions="one", domains=("weather",), senses=("ppp",))
    for model in (NoisyOrThree, NoisyOr, NoisyOrFive):
        theta = model.parameters.draw(np.random.default_rng(11), n)
        estimate = maximum_a_posteriori(model, simulate(model, theta, eleven, 12)).estimate
        pairs = zip(theta.T[:-1], estimate.T[:-1], strict=True)
        least[model.name] = np.arctanh(min(np.corrcoef(a, b)[0, 1] for a, b in pairs))
    # Fisher's z has the standard error 1 / sqrt(n - 3) = .05; recoverable means r = .8.
    assert least["noisy_or_three"] > np.arctanh(0.8) + 2 * 0.05
    assert least["noisy_or"] < np.arctanh(0.8) - 2 * 0.05
    assert least["noisy_or_five"] < np.arctanh(0.5) - 2 * 0.05  # the prior of the other cause
