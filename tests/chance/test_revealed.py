import asyncio
import re

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import RandomResponder
from knownminds.llm_adapters import Capabilities, NotCapable, Reply, TokenLogProbability, Usage
from knownminds.llm_adapters.providers.token_sampler import TOKENISATIONS
from knownminds.validation.chance.asked_beliefs import known_beliefs
from knownminds.validation.chance.chance_items import contexts_of
from knownminds.validation.chance.questions import RevealQuestion
from knownminds.validation.chance.revealed import reveal
from knownminds.validation.pages import figures
from knownminds.validation.report import page_of

DIE = {"n_dice": 1, "n_faces": 12}
UNIFORM = "synthetic:random_responder"
BENT = "synthetic:belief_sampler_stated"
TRUTH = {"temperature": 1.6, "bias_first": 0.7, "bias_repeat": -0.5, "known": 0.4, "leak": 0.1}
SMALL = ("choice", "preference")


@pytest.fixture(scope="module")
def bent():
    return reveal(BENT, scenarios=SMALL, truth=TRUTH, leak=0.2, seed=3)


@pytest.fixture
def unrendered(monkeypatch):
    """Figures are drawn, but not turned into SVG, which takes most of the time."""
    monkeypatch.setattr(figures, "svg", lambda figure: "<svg/>")


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


@pytest.mark.parametrize("tokens", TOKENISATIONS)
def test_known_biases_come_back_from_top_k_tables_whatever_ends_a_reply(tokens):
    """Replies that end in a full stop left two fifths of the mass open: bias_first .549 of 1."""
    truth = {"temperature": 1.2, "bias_first": 1.0, "bias_repeat": -0.5}
    found = reveal("synthetic:belief_sampler", scenarios=["coins", *SMALL], truth=truth, draws=50,
                   only={"n_coins": 2, "n_options": 4}, source="top-k", stated=False, tokens=tokens,
                   )  # fmt: skip
    (row,) = found.samplers.to_dict("records")
    names = ("temperature", "bias_first", "bias_middle", "bias_repeat", "bias_heads")
    wanted = [truth.get(name, 0.0) for name in names]
    # Tables have no sampling error.
    assert [row[name] for name in names] == pytest.approx(wanted, abs=1e-4)
    for name, value in zip(names, wanted, strict=True):
        assert row[f"{name}_least"] - 1e-6 <= value <= row[f"{name}_most"] + 1e-6


def test_estimates_from_tables_that_leave_much_open_have_ends_that_hold_the_truth():
    found = reveal("synthetic:belief_sampler", scenarios=["coins"], only={"n_coins": 2}, draws=1,
                   truth={"bias_first": 1.0}, source="top-k", top=2, stated=False, threshold=0.0,
                   )  # fmt: skip
    (row,) = found.samplers.to_dict("records")
    assert row["bias_first_least"] < 0.9 < 1.1 < row["bias_first_most"]
    told = next(line for line in str(found).splitlines() if "nearest belief sampler" in line)
    assert f"(tables allow {row['bias_first_least']:.3f} to {row['bias_first_most']:.3f})" in told


def test_models_are_compared_context_by_context(bent, tmp_path, unrendered):
    bent.save(tmp_path)
    unbent = {"temperature": 1.6, "leak": 0.1}
    both = reveal("synthetic:belief_sampler", scenarios=SMALL, truth=unbent, earlier=[tmp_path])
    first, second = both.models
    compared = both.comparison().set_index(["scenario", "measure"])
    wide = both.by_context().set_index(["scenario", "context"])
    one, other = (wide[wide["model"] == name]["manhattan"] for name in (first, second))
    difference = other - one.loc[other.index]
    row = compared.loc[("all", "manhattan")]
    assert row["contexts"] == 51
    assert row["difference"] == pytest.approx(difference.mean())
    error = difference.std(ddof=1) / np.sqrt(51)
    assert row["high"] - row["low"] == pytest.approx(2 * 2.0086 * error, rel=1e-3)  # t, 50 df
    assert row["high"] < 0  # without biases it is nearer to the truth
    # It states nothing, so there is nothing to compare.
    assert ("all", "stated_error") not in compared.index
    page = page_of(both)
    assert any("is nearer to the truth" in sentence for sentence in page.sentences)
    assert any(title.endswith("context by context") for title, _, _ in page.tables)


# Providers ------------------------------------------------------------------------------------


class Answers:
    """An adapter that answers every question with its first outcome, or an E."""

    provider, model, base_url = "stub", "answers", ""

    def __init__(self, log_probabilities):
        self.capabilities = Capabilities(answer_log_probabilities=log_probabilities)
        self.asked = 0

    async def complete(self, prompt, *, settings):
        await asyncio.sleep(0)
        self.asked += 1
        text = "E" if "probable" in prompt.messages[-1].content else "A"
        told = None
        if settings.top_log_probabilities:
            others = (("B", np.log(0.25)), ("nothing", np.log(0.05)))
            told = (TokenLogProbability(text, np.log(0.5), ((text, np.log(0.5)), *others)),)
        return Reply(text, usage=Usage(10, 1), model_served="answers", log_probabilities=told)

    async def close(self):
        pass


def test_answers_of_a_provider_are_counted_and_joined_with_its_statements(tmp_path):
    adapter = Answers(log_probabilities=False)
    how = {"scenarios": ["choice"], "source": "sampled", "draws": 4, "out": tmp_path}
    found = reveal(adapter, only={"n_options": 2}, **how)
    (beliefs,) = found.beliefs.values()
    assert adapter.asked == 3 * 4 * 2  # contexts, sessions, and both kinds of question
    assert beliefs.count.reshape(3, 2).tolist() == [[4, 0]] * 3
    assert set(beliefs.sources) == {"sampled"}
    assert np.isnan(next(iter(found.naive.values()))).all()
    # Each session has its own question: the E is right where the right one stands last.
    assert found.stated["questions"].sum() <= 12
    assert found.stated["questions"].sum() > 3
    assert found.stated["error"].between(0, 1).all()
    again = reveal(adapter, only={"n_options": 2}, **how)
    assert adapter.asked == 24  # nothing is asked twice
    pd.testing.assert_frame_equal(again.stated, found.stated)


def test_tables_of_a_provider_are_read_with_bounds(tmp_path):
    found = reveal(
        Answers(log_probabilities=True),
        scenarios=["choice"],
        only={"n_options": 4},
        stated=False,
        out=tmp_path,
    )
    (beliefs,) = found.beliefs.values()
    assert set(beliefs.sources) == {"top-k"}
    own = beliefs.rows(0)
    np.testing.assert_allclose(beliefs.low[own], [0.5, 0.25, 0, 0])
    # 0.2 is not listed and may lie on any outcome.
    np.testing.assert_allclose(beliefs.high[own], [0.7, 0.45, 0.2, 0.2])
    assert next(iter(found.options["models"].values()))["source"] == "top-k"


@pytest.mark.parametrize(
    ("able", "options", "sentence"),
    [
        (False, {}, "Beliefs are read from log-probabilities of tokens; answers tells none. Say"),
        (False, {"source": "top-k"}, "answers tells no log-probabilities of its tokens. Use"),
        (True, {"source": "exact"}, "answers does not tell it. Use --source top-k"),
        (False, {"source": "exact"}, "answers does not tell it. Use --source sampled"),
    ],
)
def test_a_model_without_log_probabilities_is_refused_before_it_is_asked(able, options, sentence):
    adapter = Answers(log_probabilities=able)
    with pytest.raises(NotCapable, match=re.escape(sentence)):
        reveal(adapter, scenarios=["choice"], **options)
    assert adapter.asked == 0


# The command ----------------------------------------------------------------------------------
