import numpy as np
import pytest
from fault_server import FaultServer, by_hash

from knownminds.agents import RandomResponder
from knownminds.llm_adapters.providers.token_sampler import TOKENISATIONS
from knownminds.validation.chance.asked_contexts import environments_of
from knownminds.validation.chance.chance_items import contexts_of
from knownminds.validation.chance.interview import known_beliefs
from knownminds.validation.chance.questions import RevealQuestion
from knownminds.validation.chance.reveal import read_result, reveal

DIE = {"n_dice": 1, "n_faces": 12}
BENT = "synthetic:belief_sampler_stated"
TRUTH = {"temperature": 1.6, "bias_first": 0.7, "bias_repeat": -0.5, "known": 0.4, "leak": 0.1}
SMALL = ("choice", "preference")


@pytest.fixture(scope="module")
def bent():
    return reveal(BENT, scenarios=SMALL, truth=TRUTH, leak=0.2, seed=3)


@pytest.mark.parametrize("space", [0.0, 1.0])
@pytest.mark.parametrize("tokens", TOKENISATIONS)
def test_a_uniform_sampler_comes_out_uniform_and_by_the_naive_reading_it_does_not(tokens, space):
    question = RevealQuestion(scenarios=("dice",), only=DIE, tokens=tokens, space=space, leak=0.3)
    grid = environments_of(question, "continuation")
    agents = {environment: RandomResponder(actions=12) for environment in grid}
    items = contexts_of(grid, plain=True)[:3]
    told = known_beliefs(agents, items, question, "exact")
    np.testing.assert_allclose(told.beliefs.normalised, 1 / 12, rtol=1e-12)
    np.testing.assert_allclose([belief.retained for belief in told.beliefs], 0.7, rtol=1e-12)
    np.testing.assert_array_equal(told.known, 1 / 12)
    # Where a token begins several outcomes, 1 has what 10, 11 and 12 have as well; a space makes
    # pairs of " 1" and the next sign.
    wrong = tokens == "digits" or (tokens == "pairs" and space == 1.0)
    expected = np.full(12, 1 / 12)
    if wrong:
        expected = np.where(np.arange(12) == 0, 4 / 15, 1 / 15)
    np.testing.assert_allclose(told.naive, np.tile(expected, 3), rtol=1e-9)


@pytest.mark.long
def test_known_biases_and_temperature_are_read_back_through_tokens(bent):
    (beliefs,) = bent.revealed.beliefs.values()
    assert len(beliefs) == 51
    assert not beliefs.flagged.any()
    (row,) = bent.part("samplers").rows.to_dict("records")
    assert row["temperature"] == pytest.approx(1.6, abs=1e-4)
    assert row["bias_first"] == pytest.approx(0.7, abs=1e-4)
    assert row["bias_repeat"] == pytest.approx(-0.5, abs=1e-4)
    assert row["bias_left"] == pytest.approx(0.0, abs=1e-4)


@pytest.mark.long
def test_what_was_kept_gives_the_same_parts_and_stands_beside_another_model(bent, tmp_path):
    bent.save(tmp_path / "bent")
    again = read_result(tmp_path / "bent")
    assert again.to_dict()["parts"] == bent.to_dict()["parts"]
    both = reveal(
        "synthetic:belief_sampler", earlier=[tmp_path / "bent"], scenarios=SMALL, stated=False
    )
    contexts = both.part("contexts").rows.set_index(["participant", "context"])
    first, second = (contexts.loc[who, "manhattan"] for who in both.revealed.participants)
    assert (first > 0.1).any()
    assert np.abs(second).max() < 1e-9  # an agent without biases believes the truth


@pytest.mark.long
def test_a_cap_holds_over_all_experiments_of_a_model(tmp_path, knownminds):
    with FaultServer(by_hash) as server:
        words = ("reveal", "choice", "--llm", "openai:m", "--base-url", server.address["openai"])
        words = (*words, "--source", "sampled", "--draws", "1", "--no-stated", "--out")
        code, _, told = knownminds(*words, str(tmp_path / "whole"))
        assert code == 0, told
        whole = len(server.calls)
        folders = [p for p in (tmp_path / "whole").glob("answers-*/*") if p.is_dir()]
        assert len(folders) > 1
        most = whole - 1
        code, _, told = knownminds(*words, str(tmp_path / "capped"), "--cap", f"calls={most}")
        assert (code, len(server.calls)) == (2, whole + most), told
        assert "cap" in told
        # With a larger one the same command goes on, and asks nothing again.
        code, _, told = knownminds(*words, str(tmp_path / "capped"), "--cap", f"calls={whole}")
        assert (code, len(server.calls)) == (0, 2 * whole), told
