"""Psych-201: what we write its rules accept, and the check sees each broken rule."""

import json

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.environments.formats.psych_101 import psych_101_records
from knownminds.environments.formats.psych_201 import check_psych_201, main, psych_201_records


def sessions(environment, model, **settings):
    place = make(environment, **settings)
    agent = AGENTS[model]
    return simulate(agent, agent.parameters.draw(np.random.default_rng(1), 2), place, 1), place


@pytest.mark.parametrize(
    ("environment", "model", "settings"),
    [
        ("instrumental_learning", "rescorla_wagner", {"n_visits": 4}),
        ("two_step", "two_step_reduced", {"n_days": 10}),
        ("temporal_discounting", "hyperbolic_discounter", {}),
    ],
)
def test_what_is_exported_is_accepted(knownminds, tmp_path, environment, model, settings):
    trials, place = sessions(environment, model, **settings)
    times = np.linspace(0.4, 2.0, len(trials))
    times[1] = np.nan
    frame = trials.frame.assign(rt_s=times, age=31)
    Trials.from_frame(frame, environment=place).save(tmp_path / "trials.parquet")
    file = tmp_path / "prompts.jsonl"
    words = ("export", tmp_path / "trials.parquet", "--format", "psych-201", "--out", file)
    code, _, err = knownminds(*words)
    assert code == 0, err
    assert check_psych_201(file) == []
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["participant"] for record in records] == ["0", "1"]
    for record, (_, rows) in zip(records, frame.groupby("subject"), strict=True):
        assert set(record) == {"text", "experiment", "participant", "RTs", "age"}
        assert record["text"].count("<<") == len(record["RTs"]) == len(rows)
        ms = [np.nan if time is None else time for time in record["RTs"]]
        np.testing.assert_allclose(ms, 1000 * rows["rt_s"], atol=1e-3)
    told = psych_101_records(trials, place)
    assert [record["text"] for record in records] == [record["text"] for record in told]


def test_sessions_of_a_participant_are_one_line_and_times_without_any_are_left_out():
    trials, place = sessions("instrumental_learning", "rescorla_wagner", n_visits=2)
    frame = trials.frame
    frame = frame.assign(session=frame["subject"], subject="one")
    (record,) = psych_201_records(Trials.from_frame(frame), place)
    assert record["text"].count("<<") == len(frame)
    assert "RTs" not in record


GOOD = {"text": "Press A or B.\n<<A>>\n\nAgain.\n<<B>>", "experiment": "e", "participant": 1,
        "RTs": [500.0, None]}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"participant": None}, "lacks participant"),
        ({"text": "Press A or B."}, "no answer is marked"),
        ({"text": "Press <<A.\n<<B>>", "RTs": [1000]}, "do not alternate"),
        ({"text": "<<A>> <<B>>"}, "begins with an answer"),
        ({"text": "word " * 40_000 + "<<A>><<B>>"}, "at most 32,000"),
        ({"RTs": [[500, 400]]}, "one flat list"),
        ({"RTs": "[500, 400]"}, "one flat list"),
        ({"RTs": [500.0]}, "RTs has 1 entries, and 2 answers are marked"),
        ({"RTs": [0.5, 0.7]}, "times are in milliseconds"),
        ({"RTs": [500, -1]}, "below 0"),
        ({"RTs": [500, "slow"]}, "is no number"),
    ],
)
def test_each_broken_rule_is_named(tmp_path, capsys, change, sentence):
    file = tmp_path / "prompts.jsonl"
    file.write_text(json.dumps(GOOD) + "\n")
    assert main([str(file)]) == 0
    file.write_text(json.dumps(GOOD | {"participant": 2}) + "\n" + json.dumps(GOOD | change) + "\n")
    assert main([str(file)]) == 2
    assert sentence in capsys.readouterr().out


def test_a_file_with_a_participant_twice_or_with_nothing_is_refused(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text(2 * (json.dumps(GOOD) + "\n"))
    assert "Lines 1 and 2 are of the same participant" in check_psych_201(file)[0]
    file.write_text("")
    assert check_psych_201(file) == ["The file has no participant."]
    file.write_text("{\n")
    assert "Line 1 is no JSON" in check_psych_201(file)[0]
    assert check_psych_201(tmp_path / "none.jsonl") == ["There is no such file."]
