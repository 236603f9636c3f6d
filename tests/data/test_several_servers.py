"""Runs of models that are called the same, at two addresses: what counts as one says so."""

from fault_server import FaultServer, by_hash


def test_a_score_says_that_a_model_was_served_at_two_addresses(tmp_path, knownminds):
    words = ("run", "instrumental_learning", "--llm", "openai:m", "--set", "n_visits=2")
    for name in ("one", "another"):
        with FaultServer(by_hash) as server:
            address = ("--base-url", server.address["openai"])
            assert knownminds(*words, *address, "--out", str(tmp_path / name))[0] == 0
    code, both, errors = knownminds("score", str(tmp_path))
    assert code == 0, errors
    assert "Runs of m were sent to http" in both
    _, alone, _ = knownminds("score", str(tmp_path / "one"), "--full")
    assert "were sent to" not in alone


def test_a_score_says_that_one_name_stands_for_several_models(tmp_path, knownminds):
    with FaultServer(by_hash) as server:
        words = ("run", "instrumental_learning", "--set", "n_visits=2", "--base-url",
                 server.address["openai"])  # fmt: skip
        for llm in ("openai:m", "openai:other?name=m"):
            name = ("--llm", llm, "--out", str(tmp_path / llm.partition("?")[0][-1]))
            assert knownminds(*words, *name)[0] == 0
    code, both, errors = knownminds("score", str(tmp_path), "--full")
    assert code == 0, errors
    assert "Behind the name m are openai:m and openai:other;" in " ".join(both.split())
    assert "Behind the name" not in knownminds("score", str(tmp_path / "m"), "--full")[1]


def test_a_score_says_that_runs_of_a_model_had_several_efforts(tmp_path, knownminds):
    with FaultServer(by_hash) as server:
        words = ("run", "instrumental_learning", "--llm", "openai:m", "--set", "n_visits=2",
                 "--base-url", server.address["openai"])  # fmt: skip
        for effort in ("low", "high"):
            effort_of = ("--reasoning-effort", effort, "--out", str(tmp_path / effort))
            assert knownminds(*words, *effort_of)[0] == 0
    code, both, errors = knownminds("score", str(tmp_path), "--full")
    assert code == 0, errors
    sentence = "Runs of m differ in reasoning_effort (high and low); they count as one participant."
    assert sentence in " ".join(both.split())
    assert "differ in" not in knownminds("score", str(tmp_path / "low"), "--full")[1]
