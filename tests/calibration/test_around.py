"""Calibration around a data set: right posteriors are, and those that forget the data are not."""

import json

import numpy as np
import pytest

from knownminds.agents import RescorlaWagner
from knownminds.environments import InstrumentalLearning
from knownminds.inference import ModelData
from knownminds.validation.calibration import calibration as module
from knownminds.validation.calibration.calibration import calibrate, read_calibration
from knownminds.validation.engine.simulated_data import simulated_data

PLACE = InstrumentalLearning(n_visits=12)
FEW = {"replicates": 60, "seed": 2, "backend": "threads", "workers": 1, "fixed": {"kappa": 0.0}}


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    file = tmp_path_factory.mktemp("around") / "observed.csv"
    truth = {"alpha": 0.08, "beta": 15.0, "kappa": 0.0}  # far out in the prior
    trials = simulated_data(RescorlaWagner, PLACE, subjects=2, sessions=3, seed=4, truth=truth)
    trials.save(file)
    return file, trials


def test_posteriors_given_the_data_and_more_are_calibrated_around_it(observed, tmp_path):
    file, trials = observed
    whole, lived = [], []
    own = module.with_observed

    def keeping(study, batch, these):
        lived.append(these)
        whole.append(own(study, batch, these))
        return whole[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "with_observed", keeping)
        found = calibrate(PLACE, "rescorla_wagner", around=file, out=tmp_path / "s", **FEW)
    assert found.calibrated, str(found)
    assert json.loads(read_calibration(tmp_path / "s").to_json()) == json.loads(found.to_json())
    # Every replicate has the trials of its subject before its own, and their likelihoods add up.
    theta = np.array([[0.2, 4.0, 0.0]])
    alone = ModelData.read(RescorlaWagner, trials).log_likelihood(np.repeat(theta, 2, axis=0))[0]
    data = whole[0]
    assert (data.n_trials == 4 * PLACE.n_trials).all()  # of three sessions, and its own
    both = data.log_likelihood(np.repeat(theta, len(data), axis=0))[0]
    new = lived[0].data(RescorlaWagner).log_likelihood(np.repeat(theta, len(data), axis=0))[0]
    np.testing.assert_allclose(both, np.resize(alone, len(data)) + new, rtol=1e-12)


def test_posteriors_that_forget_the_data_are_not(observed, monkeypatch):
    def forgetful(study, batch, lived):
        return lived.data(RescorlaWagner)

    monkeypatch.setattr(module, "with_observed", forgetful)
    found = calibrate(PLACE, "rescorla_wagner", around=observed[0], **FEW)
    words = {name: one.word for name, one in found.quantities.items()}
    assert any(word not in ("calibrated", "not judged") for word in words.values()), words


def test_bad_input_is_refused(observed, knownminds, tmp_path):
    words = ["calibrate", "instrumental_learning", "--model", "rescorla_wagner", "--trials", 48]
    for more, rule in (
        (["--around", tmp_path / "none.csv"], "is not there"),
        (["--around", observed[0], "--method", "hierarchical"], "single posteriors"),
    ):
        code, _, err = knownminds(*words, *more)
        assert code == 2
        assert rule in " ".join(err.split())
