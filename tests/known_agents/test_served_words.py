"""A served known agent plays every wording of its experiment, and sessions of any length."""

import pytest

import knownminds as package

pytest.importorskip("uvicorn", reason="serving needs the extra")


@pytest.fixture(scope="module")
def address():
    with package.serve("two_step", seed=3) as served:
        yield served.base_url


def test_all_wordings_and_any_number_of_trials_are_read(address, tmp_path):
    runs = package.run(
        "two_step", "vllm:known-agent", base_url=address, seed=3, trials=6, paraphrases=3,
        max_tokens=20, out=tmp_path,
    )  # fmt: skip
    assert len(runs.runs) == 3
    for run in runs.runs.values():
        assert (run.readable, run.n_trials) == (6, 6)


def test_a_prompt_of_another_seed_is_refused_and_the_page_says_why(address, tmp_path, knownminds):
    code, out, _ = knownminds(
        "run", "two_step", "--llm", "vllm:known-agent", "--base-url", address, "--seed", 4,
        "--trials", 6, "--max-tokens", 20, "--out", tmp_path,
    )  # fmt: skip
    assert code == 3
    assert "is not one of two_step with these settings" in " ".join(out.split())
    assert "Moderation" not in out
