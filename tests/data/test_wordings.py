"""Sessions that are no independent ones: one design in several wordings, and copies."""

import numpy as np
import pandas as pd
import pytest

from knownminds import score
from knownminds.agents import RescorlaWagnerDual, WeightedBayes, simulate
from knownminds.environments import make
from knownminds.validation.data.fit import FitTask
from knownminds.validation.data.questions import AskFit


def test_the_same_answers_in_three_wordings_say_no_more_than_in_one(tmp_path):
    place = make("probabilistic_reasoning")
    theta = np.tile([0.3, 0.6, 0.8, 0.3], (6, 1))  # b_0, b_prior, b_likelihood, sigma
    lived = simulate(WeightedBayes, theta, place, 3).to_frame()
    lived = lived.assign(session=lived["subject"], subject="m", model="m")
    files = []
    for wording in ("shipped", "second", "third"):
        files.append(tmp_path / f"{wording}.csv")
        lived.assign(template=wording).to_csv(files[-1], index=False)
    wanted = ["performance", "prior_weighting"]
    one, three = (
        score(several, measures=wanted)["Measures"].set_index("measure")
        for several in (files[:1], files)
    )
    assert three.loc["performance", ["n", "unit"]].tolist() == [6, "session"]
    for name in ("value", "low", "high"):
        assert three.loc["performance", name] == pytest.approx(one.loc["performance", name])
    for name in ("standard_error", "freedom"):
        assert three.loc["prior_weighting", name] == pytest.approx(one.loc["prior_weighting", name])


def test_copies_of_a_session_are_counted_and_tested_by_nothing(tmp_path):
    place = make("instrumental_learning")
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(1), 1)
    lived = simulate(RescorlaWagnerDual, theta, place, 5).to_frame()
    lived = pd.concat([lived.assign(subject="m", session=str(k)) for k in range(12)])
    file = tmp_path / "copies.csv"
    lived.assign(environment=place.name).to_csv(file, index=False)
    result = score(file)
    said = "11 of 12 sessions of instrumental_learning have the stimuli and answers of another one"
    assert any(said in text for text in result.warnings)
    found = result["Measures"]
    assert found["value"].notna().all()
    assert found[["low", "high", "p_value"]].isna().all(axis=None)
    assert any(said in text for text in FitTask.of(AskFit(str(file))).warnings)
