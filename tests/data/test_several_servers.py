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
    _, alone, _ = knownminds("score", str(tmp_path / "one"))
    assert "were sent to" not in alone
