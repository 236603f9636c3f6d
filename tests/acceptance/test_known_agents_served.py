"""A known agent behind an address: it answers a run of ours, and its parameters come back."""

import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import RescorlaWagnerDual, simulate
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.inference import ModelData, posterior

PLACE = "instrumental_learning"
TRUTH = {"alpha_positive": 0.6, "alpha_negative": 0.2, "beta": 5.0, "kappa": 0.0}
SESSIONS = 10


@contextmanager
def served(*words):
    """Run `knownminds serve` as a process; give its address."""
    command = [sys.executable, "-P", "-m", "knownminds", "serve", PLACE, *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            yield re.search(r"http://127\.0\.0\.1:\d+/v1", line)[0]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """The trials of a run of a served agent, refusing and garbling a few of its answers."""
    folder = tmp_path_factory.mktemp("run")
    values = [word for name, value in TRUTH.items() for word in ("--set", f"{name}={value}")]
    with served(*values, "--seed", 3) as url:
        command = [
            sys.executable,
            "-P",
            "-m",
            "knownminds",
            "run",
            PLACE,
            "--llm",
            "openai:known-agent",
        ]
        command += ["--base-url", url, "--sessions", str(SESSIONS), "--seed", "3", "--concurrency"]
        subprocess.run([*command, "10", "--out", str(folder)], check=True, capture_output=True)
    return Trials.load(folder / "trials.parquet", environment=InstrumentalLearning())


@pytest.mark.long
def test_what_is_heard_is_what_the_agent_does_without_words(heard):
    theta = np.tile(list(TRUTH.values()), (SESSIONS, 1))
    direct = simulate(RescorlaWagnerDual, theta, InstrumentalLearning(), 3, address=(0,))
    columns = ["session", "trial", "context", "action", "reward"]
    assert (heard.frame["outcome"] == "ok").all()
    pd.testing.assert_frame_equal(
        heard.frame[columns].reset_index(drop=True),
        direct.frame.assign(session=direct.frame["subject"])[columns].reset_index(drop=True),
        check_dtype=False,
    )


@pytest.mark.long
def test_its_parameters_come_back(heard):
    one = heard.frame.assign(subject="all")
    trials = Trials.from_frame(one, environment=InstrumentalLearning())
    data = ModelData.read(RescorlaWagnerDual, trials)
    low, high = posterior(RescorlaWagnerDual, data).interval(0.99)
    # Four intervals of 99% hold the truth all at once in 96% of data sets at least.
    truth = np.array(list(TRUTH.values()))
    assert ((low[0] <= truth) & (truth <= high[0])).all()
    # And the test can fail: an agent with another beta is outside.
    assert not low[0, 2] <= 2.5 <= high[0, 2]
