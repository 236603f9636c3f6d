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
    code, out, err = knownminds(
        "run", "two_step", "--llm", "vllm:known-agent", "--base-url", address, "--seed", 4,
        "--trials", 6, "--max-tokens", 20, "--out", tmp_path,
    )  # fmt: skip
    assert code == 3
    assert "is not one of two_step with these settings" in " ".join(err.split())
    assert "The agent has seed 3; the prompt may have another." in " ".join(out.split())
    assert "Once the model takes the questions, the same command goes on" in " ".join(err.split())
    assert out.split("share\n")[1].split()[:2] == ["error", "2"]  # what occurred comes first
    assert "Moderation" not in out


def test_what_is_served_is_an_experiment_in_its_wordings():
    for templates, wordings in ((None, "3 wordings"), ("paraphrase_2", "1 wording")):
        place = package.environments.make("two_step", templates=templates)
        with package.serve(place) as served:
            assert repr(served.agent) == f"two_step_reduced in two_step, {wordings}"
