"""The mutation sampler: walks that are pooled, their limits, and the biases they bring."""

import numpy as np
import pytest

from knownminds.agents import MutationSampler, NoisyOr
from knownminds.agents.causes.mutation_sampler import expected_visits
from knownminds.agents.causes.noisy_or import noisy_or
from knownminds.agents.sequences import Sequences
from knownminds.environments.causes.causal_graph import GRAPHS, TASKS, questions

CAUSAL = (0.4, 0.15, 0.8, 0.6)
ROMAN = {task.roman: (0, *task.question) for task in TASKS}


def judged(model, theta, asked):
    theta = np.array(theta, dtype=float)
    n, q = len(theta), len(asked)
    sequences = Sequences.group(np.repeat(np.arange(n), q), (), n)
    columns = [sequences.pack(c) for c in np.tile(np.array(asked, dtype=float), (n, 1)).T]
    uniforms = sequences.pack(np.full((n * q, 2), 0.5))
    given = model.simulate(theta, None, 0, sequences.row, sequences.start, uniforms, *columns)
    return sequences.unpack(given, n * q).reshape(n, q) / 100.0


def walks(joint, steps, n, rng):
    """Count the visits of n walks, state by state, [n, 8]: no matrix, no expectation."""
    length = rng.poisson(steps, n)
    now = rng.choice([0, 7], n)
    visits = np.zeros((n, 8))
    visits[np.arange(n), now] = 1.0
    for t in range(1, length.max() + 1):
        proposed = now ^ rng.choice([4, 2, 1], n)
        accepted = rng.random(n) < joint[proposed] / joint[now]
        now = np.where(accepted, proposed, now)
        going = length >= t
        visits[np.flatnonzero(going), now[going]] += 1.0
    return visits


@pytest.mark.parametrize("graph", GRAPHS)
def test_walks_come_to_the_visits_that_are_expected(graph):
    joint = noisy_or(graph, np.array([CAUSAL[0], *CAUSAL]))
    n = 40_000
    visits = walks(joint, 5.0, n, np.random.default_rng(1))
    expected = expected_visits(joint, 5.0)
    error = visits.std(axis=0) / np.sqrt(n)
    assert (np.abs(visits.mean(axis=0) - expected) < 4 * error).all()
    assert expected.sum() == pytest.approx(6.0, abs=1e-12)  # the first state, and one a step
    asked = [(GRAPHS.index(graph), *question) for question in questions(graph)]
    answers = judged(MutationSampler, [[*CAUSAL, 5.0, 0.0]], asked)[0]
    for question, answer in zip(questions(graph), answers, strict=True):
        states = np.arange(8)
        bits = np.stack([states >> 2, states >> 1 & 1, states & 1])
        fits = np.ones(8, dtype=bool)
        for bit, value in zip(bits, question[1:], strict=True):
            fits &= (value < 0) | (bit == value)
        holds = fits & (bits[question[0]] == 1)
        a, c = visits[:, holds].sum(axis=1), visits[:, fits].sum(axis=1)
        share = a.sum() / c.sum()
        # Standard error of a ratio (delta method).
        spread = (a - share * c).std() / np.sqrt(n) / c.mean()
        assert abs(answer - share) < 4.5 * spread


def test_a_walk_without_end_is_a_noisy_or():
    asked = [(g, *q) for g, graph in enumerate(GRAPHS) for q in questions(graph)]
    rational = judged(NoisyOr, [[*CAUSAL, 0.0]], asked)[0]
    apart = [
        np.abs(judged(MutationSampler, [[*CAUSAL, steps, 0.0]], asked)[0] - rational).max()
        for steps in (1e3, 1e4, 1e6)
    ]
    # What is left is the share of the first steps: it falls as 1 / lambda.
    assert apart[1] == pytest.approx(apart[0] / 10, rel=0.05)
    assert apart[2] < 1e-5
    assert apart[0] > 1e-4


def test_a_walk_of_no_steps_knows_but_its_prototypes():
    asked = [ROMAN[roman] for roman in ("I", "III", "IV", "V", "VII", "X")]
    answers = judged(MutationSampler, [[*CAUSAL, 1e-9, 0.0]], asked)[0]
    assert np.allclose(answers, [0, 1, 1, 0, 1, 0], atol=1e-8)


def test_short_walks_violate_the_markov_condition_and_explain_less_away():
    asked = [ROMAN[roman] for roman in ("IV", "V", "VI", "VIII")]
    steps = (1.0, 4.0, 16.0, 64.0, 1e5)
    theta = [[*CAUSAL, count, 0.0] for count in steps]
    iv, v, vi, viii = judged(MutationSampler, theta, asked).T
    violation, away = iv - v, viii - vi
    assert (np.diff(violation) < 0).all()
    assert violation[0] > 0.5
    assert abs(violation[-1]) < 1e-4
    rational = judged(NoisyOr, [[*CAUSAL, 0.0]], asked)[0]
    assert away[1] < 0.7 * (rational[3] - rational[2])
    assert away[-1] == pytest.approx(rational[3] - rational[2], abs=1e-4)
