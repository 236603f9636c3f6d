"""Controls of players: what they change, who passes and who fails them, and how they are run."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fault_server import FaultServer, by_hash

sys.path.append(str(Path(__file__).parents[2] / "docs"))

from controls import PLAYERS, by_name, learner, replicate

from knownminds import fit, score
from knownminds.agents import RescorlaWagner, play, simulate
from knownminds.environments import Session, check_controls, controlled, make, session_stream
from knownminds.environments.controls import CONTROLS, instructed, payoffs_of
from knownminds.validation.data.controls import TABLE, controls_of_runs
from knownminds.validation.engine.verdicts import ControlTest

# One experiment of each shape: learned from rewards, with confidence, two stages, stated chances,
# numbers, numbers in a range that differs between trials, an end that choices bring about.
SHAPES = ("instrumental_learning", "restless_bandit", "two_step", "coins", "collider",
          "line_ratio", "temporal_discounting")  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_control_changes_one_thing_and_its_prompts_are_read_back(name):
    plain = make(name)
    design = plain.draw(session_stream(1, 0, 0))
    for control in check_controls(plain):
        changed = controlled(plain, control)
        drawn = changed.draw(session_stream(1, 0, 0))
        differ = [t for t in design.table if not np.array_equal(design.table[t], drawn.table[t])]
        assert len(differ) == (control in ("shuffled", "reversed"))
        assert (drawn.labels != design.labels) == (control == "relabelled")
        session = Session(changed, drawn)
        prompt = session.render()
        assert changed.read(drawn, prompt.messages) == ([], session.seen)
        if control == "instruction":
            named = session.say(instructed(plain, 0))
            assert prompt.messages[-1].content.endswith(f"\n{named}")


def test_payoffs_are_exchanged_within_each_trial():
    plain = make("restless_bandit")
    paid = payoffs_of(plain, plain.draw(session_stream(1, 0, 0)))
    swapped, mixed = (
        payoffs_of(plain, controlled(plain, name).draw(session_stream(1, 0, 0)))
        for name in ("reversed", "shuffled")
    )
    assert np.array_equal(swapped, paid[:, ::-1])
    assert np.array_equal(np.sort(mixed), np.sort(paid))
    differ = paid[:, 0] != paid[:, 1]
    exchanged = (mixed != paid).any(axis=1)[differ].mean()
    # Half of the trials, within 3 standard errors of a share.
    assert abs(exchanged - 0.5) < 3 * 0.5 / np.sqrt(differ.sum())


@pytest.mark.parametrize("control", ["shuffled", "reversed"])
def test_a_population_takes_the_sessions_that_one_player_takes(control):
    plain, theta = make("instrumental_learning"), [[0.3, 4.0, 0.0]]
    changed = controlled(plain, control)
    together = simulate(RescorlaWagner, theta, changed, 5).frame
    alone = play(RescorlaWagner.from_theta(np.array(theta[0])), changed, 5, 0).frame
    assert together[["action", "reward"]].equals(alone[["action", "reward"]])
    assert not together["reward"].equals(simulate(RescorlaWagner, theta, plain, 5).frame["reward"])


@pytest.mark.parametrize(
    "choose",
    [
        pytest.param(choose, id=choose.__name__, marks=[] if quick else pytest.mark.long)
        for choose, quick in ((player, player in (learner, by_name)) for player in PLAYERS)
    ],
)
def test_known_players_fail_the_controls_of_their_faults_alone(choose):
    verdicts = replicate(choose, "restless_bandit", seed=1)
    expected = {name: "failed" if name in PLAYERS[choose] else "passed" for name in CONTROLS}
    assert verdicts == expected


@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_is_judged_as_its_test_says(control):
    test = ControlTest(control)
    side, limit = re.search(r"lies (above|below) ([.\d]+)", str(test)).groups()
    for where, step in (("above", 0.05), ("below", -0.05)):
        values = float(limit) + step + np.tile([-0.01, 0.01], 4)
        assert test.judge(values)[1].word == ("passed" if where == side else "failed")
    assert test.judge(values[:5])[1].word == "not judged"


def test_error_rates_are_stored_of_three_experiments():
    stored = pd.read_csv(Path(__file__).parents[2] / "docs" / "data" / "controls.csv")
    assert stored["experiment"].nunique() == 3
    # A wrong word is rarer than one in twenty, by two Monte-Carlo errors.
    assert (stored["wrong"] - 2 * stored["wrong_error"] < 0.05).all()


RUN = ("run", "instrumental_learning", "--llm", "synthetic:rescorla_wagner_dual", "--seed", "3",
       "--set", "beta=8", "--sessions", "8")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("controls") / "run"


@pytest.mark.long
def test_a_run_with_controls_is_judged_by_score_and_fit(folder, knownminds):
    code, said, errors = knownminds(*RUN, "--controls", "--out", str(folder))
    assert code == 0, errors
    assert "control instruction: failed" in said  # a known agent reads no further sentence
    table = controls_of_runs([folder]).tables[TABLE]
    assert list(table.index) == list(CONTROLS)
    assert table.loc[["reversed", "relabelled", "paraphrase"], "verdict"].eq("passed").all()
    for command in (("score",), ("fit",)):
        code, said, errors = knownminds(command[0], str(folder), *command[1:])
        assert code == 0, errors
        assert said.index("control instruction: failed") < said.index("\n\n")  # above all tables
    for result in (score(folder), fit(folder)):
        assert str(ControlTest("reversed")) in result.methods
    code, _, errors = knownminds("fit", str(folder / "controls" / "shuffled"))
    assert code == 2
    assert "control shuffled" in errors


def test_controls_go_on_where_they_stopped_and_share_a_cap(tmp_path, knownminds):
    words = ("run", "instrumental_learning", "--llm", "openai:m", "--set", "n_visits=2",
             "--sessions", "2", "--control", "reversed", "--control", "relabelled",
             "--out", str(tmp_path / "run"))  # fmt: skip
    with FaultServer(by_hash) as server:
        address = ("--base-url", server.address["openai"])
        code, said, _ = knownminds(*words, *address, "--cap", "calls=20", "--json")
        assert code == 1
        assert len(server.calls) == 20
        ended = {
            name: sum(one["calls"].values()) for name, one in json.loads(said)["controls"].items()
        }
        assert ended == {"none": 16, "reversed": 4, "relabelled": 0, "repeat": 0}
        assert knownminds(*words, *address)[0] == 0
        assert len(server.calls) == 4 * 2 * 8
        first, last = server.calls[:16], server.calls[-16:]
    assert {call.body["seed"] for call in first} == {0, 1}
    # A repetition with the seeds of the run would have the same answers.
    assert {call.body.get("seed") for call in last} == {None}
    for result in (controls_of_runs([tmp_path / "run"]), score(tmp_path / "run")):
        tests = [text for text in result.options["analysis"] if text.startswith("control ")]
        assert tests == [str(ControlTest(name)) for name in ("reversed", "relabelled")]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("collider", "--control", "shuffled"), "shuffled is no control of it"),
        (("collider", "--control", "shufled"), "Nearest: shuffled"),
        (("collider", "--control", "repeat"), "no control named 'repeat'"),
        (("collider", "--controls", "--paraphrases", "2"), "--paraphrases is given"),
    ],
)
def test_a_control_that_cannot_be_had_is_refused(words, sentence, tmp_path, knownminds):
    llm = ("--llm", "synthetic:noisy_or", "--out", str(tmp_path / "run"))
    code, _, errors = knownminds("run", *words, *llm)
    assert code == 2
    assert sentence in errors
    assert not (tmp_path / "run").exists()
