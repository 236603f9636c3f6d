"""Deciders: what they state, what they decide, and what their likelihood makes of either."""

import numpy as np
import pytest
from scipy.special import expit, log_ndtr, logit, logsumexp
from scipy.stats import norm

from knownminds.agents import FrameDependent, IncoherentBeliever, OutcomePeeker, RandomUtility
from knownminds.agents.diagnosis.belief_places import HIGH, LOG_WIDTH, LOW
from knownminds.agents.sequences import Sequences
from knownminds.inference import ModelData

UTILITIES = (3.0, -3.0, 1.0, 0.5)
TRUTHFUL = (*UTILITIES, 0.3, 0.8, 0.5, 0.0)  # with c, d, s_between, s_report


def asked(n, contexts=10, repeats=2, parts=2, seed=0, all_of_it=True, question=2):
    """Ask n subjects about contexts that spread over (0, 1), in the environment's columns.

    Unless all of it, ask for a plain belief and a decision alone. Parts are asked for one by one,
    or by the question 4 as a distribution.
    """
    rng, rows = np.random.default_rng(seed), []
    for subject in range(n):
        for context in range(contexts):
            m, z = rng.uniform(0.02, 0.98), rng.normal()
            state = float(rng.random() < m)
            present, absent = rng.dirichlet(np.full(parts, 3.0), 2)
            part = m * present + (1 - m) * absent
            within = m * present / part
            for repetition in range(repeats):
                head = (subject, context, repetition)
                beliefs = range(4 if all_of_it else 1)
                rows += [(*head, 0, e, -1, m, m, m, state, z) for e in beliefs]
                rows.append((*head, 1, 0, -1, m, m, m, state, z))
                if not all_of_it:
                    continue
                rows += [
                    (*head, question, 0, j, w, m, q, state, z)
                    for j, (w, q) in enumerate(zip(part, within, strict=True))
                ]
                rows += [(*head, 3, 0, j, q, m, q, state, z) for j, q in enumerate(within)]
    names = "subject context repetition question elicitation part posterior marginal conditional"
    return dict(zip([*names.split(), "state", "idiosyncrasy"], np.array(rows).T, strict=True))


def answered(model, theta, table, seed=1):
    """Let the kernel answer; returns the table with actions and responses, NaN where none is."""
    subject = table["subject"].astype(int)
    sequences = Sequences.group(subject, [table["context"].astype(int)], len(theta))
    uniforms = np.random.default_rng(seed).random((len(subject), 2))
    action, response = (
        sequences.unpack(part, len(subject))
        for part in model.simulate(
            np.asarray(theta, dtype=float), None, 3, sequences.row, sequences.start,
            sequences.pack(uniforms), *(sequences.pack(table[name]) for name in model.design),
        )
    )  # fmt: skip
    acts = table["question"] == 1
    return table | {
        "action": np.where(acts, action, np.nan),
        "response": np.where(acts, np.nan, response),
    }


def read(model, table):
    subject, context = (table[name].astype(np.int64) for name in ("subject", "context"))
    names = [str(k) for k in range(subject.max() + 1)]
    given = np.isfinite(table["action"]) | np.isfinite(table["response"])
    return ModelData.of_columns(model, names, subject, [context], table, 3, given)


def log_likelihood(model, theta, table):
    return read(model, table).log_likelihood(np.asarray(theta, dtype=float))[0]


def only(table, rows):
    return {name: column[rows] for name, column in table.items()}


@pytest.fixture(scope="module")
def truthful():
    return answered(RandomUtility, [TRUTHFUL] * 40, asked(40))


@pytest.mark.long
@pytest.mark.parametrize("model", [OutcomePeeker, FrameDependent])
def test_a_violator_whose_dial_is_at_0_is_rational_and_otherwise_is_not(model, truthful):
    rational, table = np.tile(TRUTHFUL, (40, 1)), asked(40)
    still, turned = (np.column_stack([rational, np.full(40, x)]) for x in (0.0, 0.8))
    as_still, as_turned = (answered(model, theta, table) for theta in (still, turned))
    for name in ("action", "response"):
        assert np.array_equal(as_still[name], truthful[name], equal_nan=True)
    assert any(
        not np.array_equal(as_turned[name], truthful[name], equal_nan=True)
        for name in ("action", "response")
    )
    rational[:, -1] = still[:, -2] = turned[:, -2] = 0.2
    plain = log_likelihood(RandomUtility, rational, truthful)
    # A dial of 0 leaves what is stated to the last digit, but for the inverse of a logit.
    assert np.allclose(log_likelihood(model, still, truthful), plain, rtol=1e-10)
    assert not np.allclose(log_likelihood(model, turned, truthful), plain, rtol=1e-4)


def test_beliefs_of_a_rational_decider_are_repeated_and_average_to_the_one_before(truthful):
    def gap(table):
        """Return the largest difference of the average belief given parts, and the belief."""
        shape = (40, 10, 2, 9)  # subjects, contexts, repetitions; trials of one repetition
        told = table["response"].reshape(shape)
        part, within = told[..., 5:7], told[..., 7:9]
        assert np.array_equal(told[:, :, 0, :4], told[:, :, 1, :4])
        return np.abs((part * within).sum(axis=-1) - told[..., 0]).max()

    # Five numbers rounded by at most .005: both factors of two products (parts of one whole, so
    # that they weigh 1 together, and beliefs of at most 1 each), and the belief itself.
    assert gap(truthful) <= 0.005 * (1 + 2 + 1) + 1e-9
    dial = answered(IncoherentBeliever, [(*TRUTHFUL, 0.7)] * 40, asked(40))
    assert gap(dial) > 0.1


def integrated(theta, table):
    """Return the log-likelihood of what one subject states in one context, by quadrature."""
    z = np.linspace(-7, 7, 1401)  # the midpoint rule, which is spectral under a normal law
    total = np.log(z[1] - z[0]) + norm.logpdf(z)
    _, _, _, _, c, d, s_between, s_report = theta
    for k in np.flatnonzero(np.isfinite(table["response"])):
        m, q, p = (table[name][k] for name in ("marginal", "conditional", "posterior"))
        mean = c + d * logit(m) + s_between * z
        if table["question"][k] == 2:
            f = expit(mean)
            mean = logit(p * (f * q / m + (1 - f) * (1 - q) / (1 - m)))
        elif table["question"][k] == 3:
            mean = mean + logit(p) - logit(m)
        cell = round(100 * table["response"][k])
        a, b = (LOW[cell] - mean) / s_report, (HIGH[cell] - mean) / s_report
        a, b = np.where(a + b > 0, -b, a), np.where(a + b > 0, -a, b)
        ratio = np.exp(np.minimum(log_ndtr(a) - log_ndtr(b), -1e-15))
        total = total + log_ndtr(b) + np.log1p(-ratio) - LOG_WIDTH[cell]
    return logsumexp(total)


@pytest.mark.parametrize(("s_report", "apart"), [(0.6, 0.003), (0.15, 0.04)])
def test_the_likelihood_of_stated_numbers_is_the_integral_over_how_contexts_are_misread(
    s_report, apart
):
    """Exact but for shape: the bounds are what was found, doubled; nearly all is at 0 and 1."""
    theta = np.array([*UTILITIES, 0.2, 1.1, 0.5, s_report])
    played = answered(RandomUtility, [theta] * 12, asked(12, contexts=1, repeats=3))
    played["response"][played["question"] == 2] = np.nan  # by the mean of z alone
    played["action"][:] = np.nan
    kernel = log_likelihood(RandomUtility, np.tile(theta, (12, 1)), played)
    exact = [integrated(theta, only(played, played["subject"] == k)) for k in range(12)]
    off = kernel - exact
    assert np.abs(off).mean() < apart
    # Without what earlier statements tell of the context it would be far off.
    alone = played | {"context": np.arange(len(played["subject"])).astype(float)}
    assert np.abs(log_likelihood(RandomUtility, np.tile(theta, (12, 1)), alone) - exact).mean() > 1
