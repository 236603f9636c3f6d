"""Sessions that begin late or have gaps: what was learned in what they lack is not known."""

import json

import pandas as pd
import pytest

from knownminds.environments import make
from knownminds.validation.data.trials_of_runs import lacking_trials


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    import knownminds

    file = tmp_path_factory.mktemp("played") / "trials.csv"
    asked = {"subjects": 4, "sessions": 2, "trials": 24, "seed": 1, "out": file}
    knownminds.simulate("instrumental_learning", **asked)
    return pd.read_csv(file)


def late(frame):
    return frame[(frame["trial"] >= 3) | (frame["subject"] > 0)]


def lacking(frame):
    return frame[~((frame["trial"] == 7) & (frame["subject"] == 2) & (frame["session"] == 1))]


WHOLE = {
    "from 0": lambda frame: frame,
    "from 1": lambda frame: frame.assign(trial=frame["trial"] + 1),
    "numbers go on": lambda frame: frame.assign(trial=frame["trial"] + 24 * frame["session"]),
    "end early": lambda frame: frame[frame["trial"] != 23],
}


@pytest.mark.parametrize("change", WHOLE.values(), ids=WHOLE)
def test_whole_sessions_are_not_complained_of(change, played, tmp_path, knownminds):
    change(played).to_csv(tmp_path / "t.csv", index=False)
    code, said, err = knownminds("import", tmp_path / "t.csv", "--json")
    assert (code, json.loads(said)["warning"]) == (0, ""), err


@pytest.mark.parametrize("verb", ["import", "fit", pytest.param("score", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("change", "counted"), [(late, "2 of 8"), (lacking, "1 of 8")], ids=["late", "gaps"]
)
def test_sessions_that_lack_trials_are_counted(verb, change, counted, played, tmp_path, knownminds):
    change(played).to_csv(tmp_path / "t.csv", index=False)
    begin, gaps = (2, 0) if change is late else (0, 1)
    wanted = (
        f"{counted} sessions of instrumental_learning lack trials ({begin} begin late, {gaps} have "
        "gaps): what learners know there is not right. Keep all trials."
    )
    words = [verb, tmp_path / "t.csv"]
    code, said, err = knownminds(*words)
    assert (code, wanted in " ".join(said.split())) == (0, True), said + err
    assert max(map(len, said.splitlines())) <= 80
    code, said, err = knownminds(*words, "--json")
    answer = json.loads(said)
    assert wanted in [answer.get("warning"), *answer.get("warnings", ())]


def test_trials_that_fall_away_are_no_gap():
    import knownminds

    for name in ("balloon_risk", "horizon", "two_step"):
        trials = knownminds.simulate(name, subjects=3, seed=1)
        assert lacking_trials(make(name), trials) == []
