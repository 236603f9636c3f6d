"""Scores of many participants: read off together, each as if it were alone."""

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES
from knownminds.inference.measure import Measure
from knownminds.validation.data.scores_of_trials import score
from knownminds.validation.pages.result_page import write_page


def of_several_sessions(name):
    """Trials of four subjects in two or three sessions each, of the measure's rational model."""
    measure = MEASURES[name]
    environment = make(measure.environments[0], **measure.settings)
    model = AGENTS[measure.rational or measure.violator]
    theta = np.repeat(model.parameters.draw(np.random.default_rng(3), 4), 3, axis=0)
    frame = simulate_sessions(model, theta, environment, 7).to_trials().frame
    number = pd.factorize(frame["subject"])[0]
    frame = frame.assign(
        subject=[f"s{k // 3}" for k in number], session=[str(k % 3) for k in number]
    )
    return Trials(frame[number != 5].reset_index(drop=True))


# A fit, a number of a session, a regression, cells, and a test of contexts.
@pytest.mark.parametrize(
    "name", ["learning_rate", "meta_cognition", "risk", "explaining_away", "normalised_error"]
)
def test_subjects_together_have_the_estimates_that_each_has_alone(name):
    trials, measure = of_several_sessions(name), MEASURES[name]
    together, alone = measure.of_each(trials), Measure.of_each(measure, trials)
    assert len(together) == 4
    for one, other in zip(together, alone, strict=True):
        for column in ("value", "standard_error", "low", "high", "p_value"):
            # 1e-6: fits in one batch end within the optimiser's tolerance of those alone.
            assert getattr(one, column) == pytest.approx(
                getattr(other, column), abs=1e-6, nan_ok=True
            )
        assert (one.n, one.unit, one.excluded) == (other.n, other.unit, other.excluded)


def test_of_very_many_participants_a_page_has_the_distribution_and_the_csv_has_all(tmp_path):
    model = AGENTS["rescorla_wagner_dual"]
    theta = model.parameters.draw(np.random.default_rng(1), 400)
    environment = make("instrumental_learning", n_visits=4)
    trials = simulate_sessions(model, theta, environment, 1).to_trials()
    result = score(trials, by="subject")
    write_page(result, tmp_path)
    assert len(pd.read_csv(tmp_path / "tables" / "1-measures.csv")) == 3 * 400
    assert "1,200 rows" in (tmp_path / "report.html").read_text(encoding="utf-8")
    [(_, drawing)] = result.figures.items()
    axes = drawing.figure().axes
    assert [sum(bar.get_height() for bar in axis.patches) for axis in axes] == [400] * 3
