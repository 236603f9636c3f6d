"""Populations whose parameters go together: what is drawn, and what recovery says of it."""

import numpy as np
import pytest

from knownminds.agents import AGENTS
from knownminds.environments import InstrumentalLearning
from knownminds.validation.engine.population import CORRELATED, HYPERPRIOR, draw_subjects
from knownminds.validation.engine.study import Batch, Cell, Study
from knownminds.validation.recovery.parameter_recovery import read_recovery, recover
from knownminds.validation.recovery.recovery_page import recovery_page

MODEL = AGENTS["rescorla_wagner"]


def drawn(law, subjects, replicates=1):
    cell = Cell("instrumental_learning", {}, MODEL.name, law=law, subjects=subjects)
    study = Study("recover", (cell,), replicates, 1)
    found = draw_subjects(study, Batch(0, 0, subjects * replicates))
    return found, MODEL.parameters.unconstrain(found.theta)


def test_subjects_have_the_correlations_they_are_given():
    n = 4000
    _, z = drawn({"correlation": {"alpha, beta": 0.6}}, n)
    r = np.corrcoef(z.T)
    # Fisher's z has the standard error 1 / sqrt(n - 3); 4 of them.
    for value, truth in ((r[0, 1], 0.6), (r[0, 2], 0.0), (r[1, 2], 0.0)):
        assert abs(np.arctanh(value) - np.arctanh(truth)) < 4 / np.sqrt(n)
    np.testing.assert_allclose(z.mean(axis=0), MODEL.parameters.mean, atol=4 / np.sqrt(n) * 2)
    # More subjects begin with the same ones.
    np.testing.assert_array_equal(drawn({"correlation": {"alpha, beta": 0.6}}, 5)[1], z[:5])


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


@pytest.mark.long
def test_recovery_says_how_correlations_came_back(tmp_path):
    study = tmp_path / "study"
    found = recover(
        InstrumentalLearning(8), "rescorla_wagner", subjects=8, replicates=2, seed=1, workers=1,
        method="hierarchical", correlation={"beta,alpha": 0.6}, out=study,
    )  # fmt: skip
    scores = {one.name: one for one in found.correlations}
    assert list(scores) == ["alpha, beta", "alpha, kappa", "beta, kappa"]
    rows = found.rows.drop_duplicates("replicate")
    for pair, truth in (("alpha, beta", 0.6), ("alpha, kappa", 0.0)):
        error = rows[f"cor({pair})"] - truth
        assert scores[pair].n == 2
        assert scores[pair].bias.value == pytest.approx(error.mean())
        assert scores[pair].rmse.value == pytest.approx(np.sqrt((error**2).mean()))
        held = (rows[f"low cor({pair})"] <= truth) & (truth <= rows[f"high cor({pair})"])
        assert scores[pair].coverage.value == pytest.approx(held.mean())
    again = read_recovery(study)
    assert again.correlations[0] == found.correlations[0]
    page = recovery_page(again)
    assert "correlations over subjects: alpha, beta 0.6" in dict(page.asked)["true values"]
    (table,) = [rows for title, _, rows in page.tables if title == "Correlations over subjects"]
    assert [row[0] for row in table] == list(scores)
    assert "--correlation" in page.command
