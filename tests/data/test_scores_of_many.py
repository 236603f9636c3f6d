"""Scores of many participants: read off together, each as if it were alone."""

import numpy as np
import pandas as pd
import pytest
from registries import installed

from knownminds import score
from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES
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


# A fit, three numbers of a session, and one that weighs the trials of all sessions.
@pytest.mark.parametrize(
    "name", installed(["learning_rate", "meta_cognition", "risk", "win_stay", "normalised_error"])
)
def test_subjects_together_have_the_estimates_that_each_has_alone(name):
    trials, measure = of_several_sessions(name), MEASURES[name]
    estimates = measure.of_each(trials)
    assert [estimate.n for estimate in estimates] == [3, 2, 3, 3]
    for estimate, (_, part) in zip(
        estimates, trials.frame.groupby("subject", sort=False), strict=True
    ):
        # 1e-6: fits in one batch end within the optimiser's tolerance of those alone.
        [value] = measure.values(Trials(part.reset_index(drop=True))).value
        assert estimate.value == pytest.approx(value, abs=1e-6)
        without = [
            measure.values(Trials(part[part["session"] != session].reset_index(drop=True))).value[0]
            for session in part["session"].unique()
        ]
        # The jackknife (Tukey 1958): pseudo-values vary n - 1 times as much as what is left.
        n = len(without)
        error = (n - 1) * np.std(without, ddof=1) / np.sqrt(n)
        assert estimate.standard_error == pytest.approx(error, abs=1e-6)


@pytest.mark.long
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
    assert drawing.data.groupby("measure").size().tolist() == [400] * 3
    assert len(drawing.figure().axes) == 3
