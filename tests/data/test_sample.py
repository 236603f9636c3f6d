"""A sample is data as people's come, and who they were stands in a file beside it."""

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import ENVIRONMENTS, Trials
from knownminds.validation.engine.sample import MINDS, sample

BUILT_IN = [name for name in ENVIRONMENTS if name in MINDS]


def test_every_experiment_has_a_usual_mind():
    assert set(MINDS) == set(ENVIRONMENTS)
    assert all(model in AGENTS for model, _ in MINDS.values())


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_sample_is_read_again_and_is_what_its_truth_does(name, tmp_path):
    found = sample(name, subjects=2, seed=3)
    beside = found.save(tmp_path / "s.csv")
    back = Trials.load(tmp_path / "s.csv", environment=found.environment)
    truth = pd.read_csv(beside)
    assert not [column for column in back.frame if column.startswith("true_") and
                column.removeprefix("true_") in truth]  # fmt: skip
    assert truth["subject"].astype(str).tolist() == list(back.subjects) == ["0", "1"]
    # Whoever has the parameters in the file gives these very answers.
    theta = truth[list(AGENTS[found.model].parameters.names)].to_numpy()
    again = simulate(AGENTS[found.model], theta, found.environment, 3, address=(0,))
    for column in ("action", "response"):
        if column in again.frame:
            there, here = (np.asarray(t.numbers(column)) for t in (back, again))
            # To rounding.
            np.testing.assert_allclose(there, here, rtol=1e-14)


def test_the_command_writes_both_files_and_says_what_comes_next(knownminds, tmp_path):
    file = tmp_path / "casinos.csv"
    words = ("--subjects", 4, "--seed", 1)
    code, said, err = knownminds("sample", "instrumental_learning", "--out", file, *words)
    assert code == 0, err
    assert "casinos_truth.csv" in said
    assert f"knownminds fit {file} --model rescorla_wagner_dual" in err
    assert len(pd.read_csv(tmp_path / "casinos_truth.csv")) == 4
    code, _, err = knownminds("sample", "instrumental_learnin", "--out", file)
    assert code == 2
    assert "instrumental_learning" in err
    code, _, err = knownminds("sample", "instrumental_learning", "--out", tmp_path / "x.txt")
    assert code == 2
    assert not (tmp_path / "x_truth.csv").exists()
