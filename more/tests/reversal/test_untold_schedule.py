"""A fit to people whose schedule nobody told."""

import numpy as np
import pytest

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import make
from knownminds.validation.data.fit import FitTask, fit
from knownminds.validation.data.questions import AskFit


@pytest.mark.long
def test_a_schedule_that_nobody_told_leaves_what_is_missed_unjudged(tmp_path):
    told = {"win_probability": [0.7, 0.3], "block_length": [25, 35]}
    place = make("reversal_learning", **told)
    theta = RescorlaWagner.parameters.draw(np.random.default_rng(1), 25)
    lived = simulate(RescorlaWagner, theta, place, 1).to_frame()
    file = tmp_path / "people.csv"
    known = lived.assign(environment=place.name)
    known.drop(columns=list(place.fields.hidden)).to_csv(file, index=False)
    found = fit(file, "rescorla_wagner", method="map", workers=1)
    missed = [one for one in found.verdicts.values() if "discrepancy" in " ".join(one.reasons)]
    assert missed
    for verdict in missed:
        assert verdict.word == "not judged"
        assert "--set" in verdict.reasons[-1]
    assert not FitTask.of(AskFit(str(file), "rescorla_wagner", settings=told)).assumed
    known.to_csv(file, index=False)
    assert not FitTask.of(AskFit(str(file), "rescorla_wagner")).assumed
