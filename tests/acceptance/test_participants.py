"""Two configurations of one model are two participants, wherever two models would be."""

import json

import pytest
from fault_server import FaultServer, by_hash

LOW, HIGH = "openai:m?reasoning_effort=low", "openai:m?reasoning_effort=high"
PLAN = """
benchmark = "cogbench"
[experiments]
instrumental_learning = { sessions = 3, settings = { n_visits = 3 } }
"""
PLACE = ("run", "instrumental_learning", "--trials", 4)


@pytest.fixture
def server():
    with FaultServer(by_hash) as one:
        yield one


def where(server):
    return ("--base-url", server.address["openai"])


def efforts(server):
    return {call.body.get("reasoning_effort") for call in server.calls}


def test_two_efforts_of_a_model_stand_on_one_page_and_are_compared(knownminds, server, tmp_path):
    plan, out = tmp_path / "plan.toml", tmp_path / "F"
    plan.write_text(PLAN)
    words = ("benchmark", "cogbench", "--plan", plan, "--llm", LOW, "--llm", HIGH, *where(server))
    code, _, err = knownminds(*words, "--out", out, "--json")
    assert code == 0, err
    assert efforts(server) == {"low", "high"}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert LOW in page
    assert HIGH in page
    assert f"{LOW} - {HIGH}" in page
    assert "effort differs" not in page  # it is what they are, and no condition


def test_runs_of_two_configurations_are_told_apart_by_score(knownminds, server, tmp_path):
    (tmp_path / "high.toml").write_text(
        'environment = "instrumental_learning"\ntrials = 4\n'
        '[llm.thinker]\nmodel = "openai:m"\nreasoning_effort = "high"\nsystem = "Be & stay."\n'
        'price = "1,2"\n'
    )
    low, high = tmp_path / "runs/low", tmp_path / "runs/high"
    code, out, err = knownminds(*PLACE, "--llm", LOW, *where(server), "--out", low, "--json")
    assert code == 0, err
    assert json.loads(out)["llm"] == LOW
    words = ("run", tmp_path / "high.toml", *where(server), "--out", high, "--json")
    code, out, err = knownminds(*words)
    assert code == 0, err
    assert json.loads(out)["llm"] == "openai:thinker"
    assert json.loads(out)["nano_dollars_paid"] > 0
    assert server.calls[-1].messages[0] == ("system", "Be & stay.")
    assert efforts(server) == {"low", "high"}
    code, out, err = knownminds("score", tmp_path / "runs", "--json")
    assert code == 0, err
    measures = json.loads(out)["tables"]["measures"]
    assert {row["participant"] for row in measures} == {"m?reasoning_effort=low", "thinker"}


@pytest.mark.parametrize(
    ("llm", "sentence"),
    [
        ("openai:m?low", "PROVIDER:MODEL?SETTING=VALUE"),
        ("openai:m?effort=low", "Nearest: reasoning_effort"),
        ("openai:m?reasoning_effort=hihg", "Nearest: high"),
        ("openai:m?temperature=hot", "is a number; got 'hot'"),
        ("openai:m?temperature=1&temperature=0", "each setting once"),
        ("openai:m?seed=3", "no setting of a participant named 'seed'"),
        ("openai:m?system=Be%20brief.", "?name="),
        ("openai:m?price=cheap", "INPUT,OUTPUT"),
        ("openai:m?max_tokens=9", "Say it once"),
        ("openai:m?price=5,9", "Say it once"),
        ("openai:m?temperature=", "has a value"),
        ("openai:m?name=%20", "one line without spaces"),
        ("openai:m?name=a%0Ab", "one line without spaces"),
    ],
)
def test_what_is_no_participant_is_refused_in_a_sentence(
    knownminds, server, tmp_path, llm, sentence
):
    out = tmp_path / "F"
    beside = ("--max-tokens", 20, *(("--price", "3,4") if "5,9" in llm else ()))
    code, _, err = knownminds(*PLACE, "--llm", llm, *beside, *where(server), "--out", out)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert not out.exists()
    assert not server.calls


def test_two_participants_have_two_names(knownminds, server, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    named = ("--llm", "openai:m?name=a&temperature=0", "--llm", "openai:m?name=a&temperature=1")
    words = ("benchmark", "cogbench", "--plan", plan, *named, *where(server))
    code, _, err = knownminds(*words, "--out", tmp_path / "F")
    assert code == 2
    assert "has a name of its own; got openai:a twice" in err
    assert not server.calls


@pytest.mark.long
def test_beliefs_of_two_configurations_are_told_apart_even_if_nothing_is_read(knownminds, tmp_path):
    with FaultServer(lambda call: "Well.") as server:
        words = ("reveal", "choice", "--no-stated", "--source", "sampled", "--draws", 1,
                 "--max-tokens", 9, "--llm", LOW, "--llm", HIGH, *where(server))  # fmt: skip
        code, out, err = knownminds(*words, "--out", tmp_path / "R", "--json")
        assert code == 0, err
        assert efforts(server) == {"low", "high"}
    page = (tmp_path / "R/report.html").read_text(encoding="utf-8")
    assert LOW in page
    assert HIGH in page
    assert "nan" not in out.lower()
