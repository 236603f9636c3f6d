import numpy as np
import pytest

from knownminds.agents import RandomResponder
from knownminds.llm_adapters.providers.token_sampler import TOKENISATIONS
from knownminds.validation.chance.asked_beliefs import known_beliefs
from knownminds.validation.chance.chance_items import contexts_of
from knownminds.validation.chance.questions import RevealQuestion
from knownminds.validation.chance.revealed import reveal

DIE = {"n_dice": 1, "n_faces": 12}
UNIFORM = "synthetic:random_responder"
BENT = "synthetic:belief_sampler_stated"
TRUTH = {"temperature": 1.6, "bias_first": 0.7, "bias_repeat": -0.5, "known": 0.4, "leak": 0.1}
SMALL = ("choice", "preference")


@pytest.fixture(scope="module")
def bent():
    return reveal(BENT, scenarios=SMALL, truth=TRUTH, leak=0.2, seed=3)


@pytest.mark.parametrize("space", [0.0, 1.0])
@pytest.mark.parametrize("tokens", TOKENISATIONS)
def test_a_uniform_sampler_comes_out_uniform_and_by_the_naive_reading_it_does_not(tokens, space):
    question = RevealQuestion(("dice",), only=DIE, tokens=tokens, space=space, leak=0.3)
    grid = question.environments("continuation")
    agents = {environment: RandomResponder(actions=12) for environment in grid}
    items = contexts_of(grid, plain=True)[:3]
    told = known_beliefs(agents, items, question, "exact")
    np.testing.assert_allclose(told.beliefs.normalised, 1 / 12, rtol=1e-12)
    np.testing.assert_allclose(told.beliefs.retained, 0.7, rtol=1e-12)
    np.testing.assert_array_equal(told.known, 1 / 12)
    # Where a token begins several outcomes, 1 has what 10, 11 and 12 have as well; a space makes
    # pairs of " 1" and the next sign.
    wrong = tokens == "digits" or (tokens == "pairs" and space == 1.0)
    expected = np.full(12, 1 / 12)
    if wrong:
        expected = np.where(np.arange(12) == 0, 4 / 15, 1 / 15)
    np.testing.assert_allclose(told.naive, np.tile(expected, 3), rtol=1e-9)


def test_known_biases_and_temperature_are_read_back_through_tokens(bent):
    (beliefs,) = bent.beliefs.values()
    assert len(beliefs) == 51
    assert not beliefs.flagged.any()
    (row,) = bent.samplers.to_dict("records")
    assert row["temperature"] == pytest.approx(1.6, abs=1e-4)
    assert row["bias_first"] == pytest.approx(0.7, abs=1e-4)
    assert row["bias_repeat"] == pytest.approx(-0.5, abs=1e-4)
    assert row["bias_left"] == pytest.approx(0.0, abs=1e-4)


def test_stated_answers_stand_beside_the_revealed_ones_of_their_context(bent):
    (beliefs,) = bent.beliefs.values()
    stated = bent.stated
    assert len(stated) == 51  # every context has a question
    # The right letter with 0.4, else one of five alike, with the letters' own biases at 0.
    np.testing.assert_allclose(stated["error"], 0.6 * 0.8)
    place = {name: k for k, name in enumerate(beliefs.contexts)}
    for row in stated.to_dict("records"):
        own = beliefs.rows(place[row["context"]])
        k = beliefs.outcome[own].index(row["outcome"])
        assert row["revealed"] == pytest.approx(beliefs.normalised[own][k])
        assert row["truth"] == pytest.approx(beliefs.truth[own][k])
        # A third, half, twice and three times the truth are on offer, to 3 decimals.
        mean = 0.4 + 0.6 * (1 / 3 + 1 / 2 + 1 + 2 + 3) / 5
        assert row["stated"] == pytest.approx(mean * row["truth"], abs=0.002)
    wide = bent.by_context()
    assert len(wide) == 51
    assert wide["stated_error"].notna().all()
    agreement = bent.agreement().set_index("scenario")
    assert agreement.loc["all", "questions"] == 51
    assert agreement.loc["preference", "probabilities"] > 0.5


@pytest.mark.parametrize(("source", "draws"), [("sampled", 400), ("top-k", 4)])
def test_counts_and_top_k_tables_hold_what_the_mind_believes(source, draws):
    # Of 4 replies with two alternatives to each token some outcomes are not listed.
    found = reveal(UNIFORM, scenarios=["choice"], source=source, draws=draws, leak=0.1, top=2,
                   tokens="pairs", stated=False, seed=5)  # fmt: skip
    (beliefs,), (known,) = found.beliefs.values(), found.known.values()
    assert set(beliefs.sources) == {source}
    inside = (beliefs.low <= 0.9 * known + 1e-9) & (beliefs.high >= 0.9 * known - 1e-9)
    own = found.distances[found.distances["measure"] == "chebyshev"]
    own = own[own["flag"] == ""]
    assert len(own) > 5
    # The mind knows the truth here: its distance is 0.
    held = own["low"] <= 1e-6
    if source == "top-k":  # bounds hold for certain
        assert inside.all()
        assert held.all()
        assert (beliefs.high - beliefs.low).max() > 1e-4
    else:  # 95% intervals of 68 counts: 5% of them miss, with a standard error of 2.6%
        assert 0.87 < inside.mean() < 1.0
        assert held.mean() > 0.8
        assert (own["noise"] > 0).all()
    assert (own["high"] > own["low"] + 1e-9).mean() > 0.5


def test_estimates_from_tables_that_leave_much_open_have_ends_that_hold_the_truth():
    found = reveal("synthetic:belief_sampler", scenarios=["coins"], only={"n_coins": 2}, draws=1,
                   truth={"bias_first": 1.0}, source="top-k", top=2, stated=False, threshold=0.0,
                   )  # fmt: skip
    (row,) = found.samplers.to_dict("records")
    assert row["bias_first_least"] < 0.9 < 1.1 < row["bias_first_most"]
    told = next(line for line in str(found).splitlines() if "nearest belief sampler" in line)
    assert f"(tables allow {row['bias_first_least']:.3f} to {row['bias_first_most']:.3f})" in told


# Providers ------------------------------------------------------------------------------------


# The command ----------------------------------------------------------------------------------
