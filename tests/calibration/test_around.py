"""Calibration around a data set: right posteriors are, and those that forget the data are not."""

import numpy as np
import pytest

from knownminds.agents import RescorlaWagner
from knownminds.environments import InstrumentalLearning
from knownminds.inference import ModelData
from knownminds.validation.calibration import calibration as module
from knownminds.validation.calibration.calibration import calibrate, say
from knownminds.validation.engine.simulated_data import simulated_data
from knownminds.validation.engine.study import Rows

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
    whole, simulated = [], []
    own = module.with_observed

    def keeping(study, batch, these):
        simulated.append(these)
        whole.append(own(study, batch, these))
        return whole[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "with_observed", keeping)
        result = calibrate(PLACE, "rescorla_wagner", around=file, out=tmp_path / "s", **FEW)
    assert {one.word for one in result.verdicts.values()} == {"calibrated"}
    assert say(Rows.read(tmp_path / "s")).to_json() == result.to_json()
    # Every replicate has the trials of its subject before its own, and their likelihoods add up.
    theta = np.array([[0.2, 4.0, 0.0]])
    alone = ModelData.read(RescorlaWagner, trials).log_likelihood(np.repeat(theta, 2, axis=0))[0]
    data = whole[0]
    assert (data.n_trials == 4 * PLACE.n_trials).all()  # of three sessions, and its own
    both = data.log_likelihood(np.repeat(theta, len(data), axis=0))[0]
    new = simulated[0].data(RescorlaWagner).log_likelihood(np.repeat(theta, len(data), axis=0))[0]
    np.testing.assert_allclose(both, np.resize(alone, len(data)) + new, rtol=1e-12)


def test_posteriors_that_forget_the_data_are_not(observed, monkeypatch):
    def forgetful(study, batch, simulated):
        return simulated.data(RescorlaWagner)

    monkeypatch.setattr(module, "with_observed", forgetful)
    result = calibrate(PLACE, "rescorla_wagner", around=observed[0], **FEW)
    words = {one.word for one in result.verdicts.values()}
    assert words - {"calibrated", "not judged"}, words


def test_other_trials_in_the_file_are_refused(observed, tmp_path):
    file = tmp_path / "observed.csv"
    file.write_bytes(observed[0].read_bytes())
    study = {"around": file, "out": tmp_path / "s", **FEW}
    calibrate(PLACE, "rescorla_wagner", **study)
    file.write_bytes(file.read_bytes() + b"\n")
    with pytest.raises(ValueError, match="holds another study"):
        calibrate(PLACE, "rescorla_wagner", **study)


def test_bad_input_is_refused(observed, knownminds, tmp_path):
    words = ["calibrate", "instrumental_learning", "--model", "rescorla_wagner", "--trials", 48]
    for more, rule in (
        (["--around", tmp_path / "none.csv"], "is not there"),
        (["--around", observed[0], "--method", "hierarchical"], "single posteriors"),
    ):
        code, _, err = knownminds(*words, *more)
        assert code == 2
        assert rule in " ".join(err.split())
