"""Causal reasoners: what they predict, the density of their answers, and what can be recovered."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit

from knownminds.agents import (
    AGENTS,
    AssociativeReasoner,
    LogisticCollider,
    NoisyOr,
    NoisyOrFive,
    NoisyOrGaussian,
    NoisyOrPooled,
    NoisyOrThree,
    simulate,
)
from knownminds.agents.causes.causal_reasoner import CausalReasoner
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
from knownminds.validation.recovery.parameter_recovery import shuffled

MODELS = {name: model for name, model in AGENTS.items() if issubclass(model, CausalReasoner)}
EVERY = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
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


@EVERY
def test_the_kernel_answers_every_question_as_the_agent_does(model):
    theta = model.parameters.draw(np.random.default_rng(1), 3)
    asked = every_question(model)
    for row, answers in zip(theta, judged(model, theta, asked), strict=True):
        agent = model.from_theta(row)
        assert np.allclose(answers, [agent.predict(told(q)) for q in asked], atol=1e-12)


@EVERY
@pytest.mark.parametrize("lapse", [None, 0.15])
def test_gradients_hold_in_all_graphs(model, lapse):
    rng, asked = np.random.default_rng(2), np.repeat(every_question(model), 2, axis=0)
    # Answers at the ends, too.
    responses = np.clip(rng.normal(50, 60, len(asked)), 0, 100)
    merged = data(model, asked, responses)
    for theta in model.parameters.draw(rng, 3):
        wide = theta if lapse is None else np.append(theta, lapse)

        def at(values):
            rates = None if lapse is None else values[-1:]
            return merged.log_likelihood(values[None, : len(theta)], rates)  # noqa: B023

        gradient = at(wide)[1][0]
        for k in range(len(wide)):
            h = np.zeros_like(wide)
            h[k] = 1e-4 * min(1.0, abs(wide[k]))
            ends = [at(wide + j * h)[0][0] for j in (1, -1, 2, -2)]
            numeric = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * h[k])
            assert gradient[k] == pytest.approx(numeric, rel=1e-5, abs=1e-5)


@EVERY
def test_merged_answers_have_the_likelihood_of_single_ones(model):
    asked = np.repeat(every_question(model), 3, axis=0)
    responses = np.clip(np.random.default_rng(3).normal(50, 60, len(asked)), 0, 100)
    several = data(model, asked, responses)
    theta = model.parameters.draw(np.random.default_rng(4), 1)
    merged, single = several.log_likelihood(theta), several.log_likelihood(theta, np.zeros(1))
    told_apart = 11 if model is NoisyOrPooled else len(asked) // 3
    assert len(several.prepared()[1][0]) == told_apart
    assert merged[0] == pytest.approx(single[0], rel=1e-12)
    assert np.allclose(merged[1], single[1][:, :-1], rtol=1e-9, atol=1e-9)


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


def test_whole_numbers_are_equally_likely_in_a_mind_that_only_lapses():
    agent = NoisyOr(p=0.3, b=0.1, m1=0.8, m2=0.6, sigma=0.1, lapse=1.0)
    rng, n = np.random.default_rng(5), 60_000
    rounded = np.round([agent.choose(told((0, 2, 0, 0, -1)), rng) for _ in range(n)])
    count = np.bincount(rounded.astype(int), minlength=101)
    expected = n / 101
    # Chi-square with 100 degrees of freedom: mean 100, sd sqrt(200); four of these.
    assert ((count - expected) ** 2 / expected).sum() < 100 + 4 * np.sqrt(200)


def test_members_of_the_family_agree_where_they_should():
    p, b, m, n, sigma = 0.4, 0.15, 0.7, 0.5, 0.1
    asked = every_question(NoisyOrPooled)
    equal = [judged(NoisyOr, [[p, b, m, m, sigma]], asked)]
    equal += [judged(NoisyOrThree, [[p, b, m, sigma]], asked)]
    equal += [judged(NoisyOrFive, [[p, p, b, m, m, sigma]], asked)]
    equal += [judged(NoisyOrPooled, [[p, b, m, m, sigma]], asked)]
    assert np.ptp(equal, axis=0).max() < 1e-14
    by_cause = judged(NoisyOr, [[p, b, m, n, sigma]], asked)[0]
    pooled = judged(NoisyOrPooled, [[p, b, m, n, sigma]], asked)[0]
    ours = {tuple(q): a for q, a in zip(asked[:, 1:].tolist(), by_cause, strict=True)}
    theirs = {tuple(q): a for q, a in zip(asked[:, 1:].tolist(), pooled, strict=True)}
    for task in TASKS:
        assert theirs[task.question] == pytest.approx(ours[task.question])
        if task.mirrored:  # answered as if it were about C1
            assert theirs[task.mirrored] == pytest.approx(ours[task.question])
    assert max(abs(ours[q] - theirs[q]) for q in ours) > 0.05


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


@EVERY
def test_certainties_and_extreme_parameters_stay_finite(model):
    rng = np.random.default_rng(6)
    z = rng.uniform(-12, 12, (60, len(model.parameters)))
    if "lambda" in model.parameters.names:
        z[:, 4] = np.minimum(z[:, 4], 7.0)  # more than a thousand steps take long, and no more
    theta = model.parameters.constrain(z)
    asked = every_question(model)
    several = data(model, asked, rng.choice([0.0, 40.0, 100.0], len(asked))).repeat(
        np.zeros(60, int)
    )
    for lapse in (None, np.full(60, 1e-5)):
        total, gradient = several.log_likelihood(theta, lapse)
        assert np.isfinite(total).all()
        assert np.isfinite(gradient).all()


def test_causes_that_never_fail_leave_no_question_without_an_answer():
    """P(C1 | E = 0, C2 = 1) asks for what cannot be: the answer is its limit."""
    asked = [(0, *TASKS[8].question), (0, *TASKS[7].question)]
    assert np.allclose(judged(NoisyOr, [[0.3, 0.0, 1.0, 1.0, 0.1]], asked), [[0.0, 1.0]], atol=1e-6)


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


def test_parameters_are_recovered_from_the_twenty_questions_and_not_from_shuffled_answers():
    n = 200
    theta = NoisyOr.parameters.draw(np.random.default_rng(9), n)
    trials = simulate(NoisyOr, theta, Collider(domains=("weather",)), 10)
    fits = [maximum_a_posteriori(NoisyOr, t) for t in (trials, shuffled(trials))]
    truth = NoisyOr.parameters.unconstrain(theta)
    # Fisher's z has the standard error 1 / sqrt(n - 3) = .071.
    for k, name in enumerate(NoisyOr.parameters.names):
        recovered, lost = (np.corrcoef(truth[:, k], fit.z[:, k])[0, 1] for fit in fits)
        assert np.arctanh(recovered) > np.arctanh(0.7) + 3.5 * 0.071, name
        if name in ("m1", "m2", "b"):  # the level of all answers tells of p
            assert np.arctanh(lost) < np.arctanh(recovered) - 3.5 * 0.1, name


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


def test_a_question_that_is_none_is_named():
    with pytest.raises(ValueError, match=r"-1 for the queried one; got 0, 2, 0, 0, 1\. Recode"):
        data(NoisyOr, [(0, 2, 0, 0, 1)] * 2, [3.0, 4.0]).log_likelihood(np.full((1, 5), 0.5))


@pytest.mark.parametrize("model", [NoisyOrFive, NoisyOrPooled])
def test_models_of_two_causes_refuse_a_chain(model):
    with pytest.raises(ValueError, match=r"reasons about a collider; .* has a chain here\. Choose"):
        simulate(model, model.parameters.draw(np.random.default_rng(0), 1), Collider("chain"), 0)
