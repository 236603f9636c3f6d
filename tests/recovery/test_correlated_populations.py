"""Populations whose parameters go together: what is drawn."""

import numpy as np

from knownminds.agents import AGENTS
from knownminds.validation.engine.cells import Cell, Population
from knownminds.validation.engine.population import CORRELATED, HYPERPRIOR, draw_subjects
from knownminds.validation.engine.study import Batch, Study

MODEL = AGENTS["rescorla_wagner"]
GIVEN = Population(correlation={"alpha, beta": 0.6})


def drawn(population, subjects, replicates=1):
    cell = Cell("instrumental_learning", {}, MODEL.name, population=population, subjects=subjects)
    study = Study("recover", (cell,), replicates, 1)
    found = draw_subjects(study, Batch(0, 0, subjects * replicates))
    return found, MODEL.parameters.unconstrain(found.theta)


def test_subjects_have_the_correlations_they_are_given():
    n = 4000
    _, z = drawn(GIVEN, n)
    r = np.corrcoef(z.T)
    # Fisher's z has the standard error 1 / sqrt(n - 3); 4 of them.
    for value, truth in ((r[0, 1], 0.6), (r[0, 2], 0.0), (r[1, 2], 0.0)):
        assert abs(np.arctanh(value) - np.arctanh(truth)) < 4 / np.sqrt(n)
    np.testing.assert_allclose(z.mean(axis=0), MODEL.parameters.mean, atol=4 / np.sqrt(n) * 2)
    # More subjects begin with the same ones.
    np.testing.assert_array_equal(drawn(GIVEN, 5)[1], z[:5])


def test_a_correlated_group_has_the_correlations_that_were_drawn_for_it():
    n = 2000
    found, z = drawn(CORRELATED, n, replicates=3)
    plain, _ = drawn(HYPERPRIOR, n, replicates=3)
    assert set(found.terms) == {"cor(alpha, beta)", "cor(alpha, kappa)", "cor(beta, kappa)"}
    for replicate in range(3):
        r = np.corrcoef(z[found.replicate == replicate].T)
        for (i, j), pair in (((0, 1), "alpha, beta"), ((1, 2), "beta, kappa")):
            truth = found.terms[f"cor({pair})"][replicate]
            assert abs(np.arctanh(r[i, j]) - np.arctanh(truth)) < 4 / np.sqrt(n)
    assert found.group_sd.shape == plain.group_sd.shape
