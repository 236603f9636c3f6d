"""Every sentence of `reveal` holds, for whole grids and for the odd shapes."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from chance.test_revealed import Answers
from claims import check
from claims.reveal import REPORT

from knownminds.inference.chance.belief_biases import belief_biases
from knownminds.inference.chance.distribution_distance import distribution_distances, stated_errors
from knownminds.inference.chance.revealed_belief import RevealedBeliefs
from knownminds.validation.chance.revealed import reveal, summarise
from knownminds.validation.chance.revealed_page import revealed_page
from knownminds.validation.pages import figures

BENT = "synthetic:belief_sampler_stated"
PLAIN = "synthetic:belief_sampler"
TRUTH = {"temperature": 1.6, "bias_first": 0.7, "bias_repeat": -0.5, "known": 0.4}
UNLISTED = (  # titles that say nothing that could be false
    "Means over contexts, with",
    "Flagged contexts",
    "Revealed and stated",
    "Biases:",
    "The nearest belief",
    "Evidence that should not matter: what an outcome is believed to have more once it is named",
    "Laws beyond",
    "What moves",
    "Each wording against",
)


@pytest.fixture(autouse=True)
def unrendered(monkeypatch):
    """Figures are drawn, but not turned into SVG, which takes most of the time."""
    monkeypatch.setattr(figures, "svg", lambda figure: "<svg/>")


@pytest.fixture(scope="module")
def bent():
    return reveal(BENT, scenarios=["choice", "preference"], truth=TRUTH, leak=0.2, seed=3)


def parts(text):
    """Sentences of a paragraph."""
    return re.split(r"(?<=[.]) (?=[A-Z0-9])", text)


def sentences_of(found):
    """All that is said on the page and in print."""
    page = revealed_page(found)
    told = [*page.sentences, *page.notes]
    for finding in page.findings:
        told += [f"{finding.name}: {finding.word}."]
        told += [f"{finding.name}: {part}" for part in parts(finding.why) if part]
    for caption, _ in page.figures:
        drawn = ". Lines" in caption or "Crosses: the naive" in caption or ": contexts" in caption
        told += parts(caption) if drawn else [caption]
    told += [title for title, *_ in page.tables
             if not title.startswith(UNLISTED) or "more in" in title]  # fmt: skip
    rows = [line for line in str(found).splitlines() if not line.startswith("  ")]
    return told + rows


def prove(found, folder, **more):
    """Check all that is said against the files that are kept."""
    found.save(folder)
    facts = SimpleNamespace(
        content=json.loads((folder / "revealed.json").read_text()),
        rows=pd.read_parquet(folder / "beliefs.parquet"),
        stated=pd.read_parquet(folder / "stated.parquet"),
        sent={},
        truth={},
        reworded=None,
        **{},
    )
    vars(facts).update(more)
    if (folder / "reworded.parquet").exists():
        facts.reworded = pd.read_parquet(folder / "reworded.parquet")
    told = sentences_of(found)
    check(REPORT, told, facts)
    return told


def test_a_known_mind_read_exactly(bent, tmp_path):
    told = prove(bent, tmp_path)
    assert any("read back" in sentence for sentence in told)
    assert any("over 51 contexts, 51 of 51 questions answered" in sentence for sentence in told)


@pytest.mark.parametrize(("leak", "threshold"), [(0.3, 0.5), (0.5, 0.5), (0.5, 0.9)])
def test_counts_of_which_some_or_all_contexts_are_flagged(leak, threshold, tmp_path):
    found = reveal(BENT, scenarios=["choice"], truth=TRUTH, source="sampled", draws=20, leak=leak,
                   threshold=threshold, seed=2)  # fmt: skip
    told = prove(found, tmp_path)
    flagged = int(next(iter(found.beliefs.values())).flagged.sum())
    if threshold == 0.9:
        assert flagged == 15
        assert not any("read back" in sentence for sentence in told)
        assert any(
            "None of 15 questions has a stated error" in s or "no distance" in s for s in told
        )
        assert any("no belief sampler was fitted" in sentence for sentence in told)
    elif leak == 0.5:
        assert 0 < flagged < 15
        assert any("left out, since flagged" in sentence for sentence in told)


def test_tables_that_leave_something_open(tmp_path):
    truth = {"bias_first": 1.0}
    found = reveal(PLAIN, scenarios=["coins"], only={"n_coins": 2}, truth=truth, source="top-k",
                   draws=1, top=2, threshold=0.0, stated=False)  # fmt: skip
    told = prove(
        found, tmp_path, truth={"temperature": 1.0, "bias_middle": 0.0, "bias_repeat": 0.0} | truth
    )
    assert any("tables allow" in sentence for sentence in told)


def test_more_flags_than_are_listed(tmp_path):
    found = reveal(PLAIN, scenarios=["preference"], leak=0.6, stated=False)
    assert "Flagged contexts, and 16 more in by_context.csv" in prove(found, tmp_path)


WEIGHER = "synthetic:correlation_weigher"
LINKED = {"scenarios": ["linked_coins"], "stated": False, "seed": 5}


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"truth": {"bias_fact": 1.0}}, "is moved beyond the 95% interval by 1 of 1 kind"),
        ({"truth": {"bias_fact": -1.0}}, "is moved beyond the 95% interval by 1 of 1 kind"),
        ({"truth": {"temperature": 2.0}}, "is not moved beyond the 95% interval by any of 1 kind"),
        ({"source": "sampled", "draws": 30}, "evidence that should not matter"),
    ],
)
def test_evidence_that_should_not_matter(how, sentence, tmp_path):
    told = prove(reveal(WEIGHER, **LINKED, **how), tmp_path)
    assert any(sentence in each for each in told)


def test_kinds_of_evidence_in_several_scenarios(tmp_path):
    truth = {"bias_repeat": 0.8, "temperature": 1.4}
    told = prove(reveal(PLAIN, scenarios=["counts", "coins", "choice", "preference"], truth=truth,
                        only={"n_coins": 3}, stated=False), tmp_path)  # fmt: skip
    assert any("earlier outcomes in counts (+" in sentence for sentence in told)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"source": "sampled", "draws": 40, "leak": 0.2}, "of the variance of the belief"),
        ({}, "0.0% between wordings in all contexts alike, 0.0% what a wording does"),
        ({"truth": {}}, "is off by as much in every context and wording"),
        ({"leak": 0.6}, "fewer than two contexts have a belief in every wording"),
        ({"source": "top-k", "draws": 2}, "is not split for top-k tables"),
    ],
)
def test_several_wordings(how, sentence, tmp_path):
    how = {"truth": TRUTH} | how
    told = prove(
        reveal(BENT, scenarios=["choice"], stated=False, wordings=3, seed=6, **how), tmp_path
    )
    assert any(sentence in each for each in told)


def test_a_model_whose_beliefs_a_wording_moves(tmp_path):
    """Exact beliefs that differ by wording, in one context more than in another."""
    found = reveal(
        BENT, scenarios=["choice", "preference"], truth=TRUTH, stated=False, wordings=3, seed=6
    )
    (name,) = found.models
    joined, rng = found.reworded[name], np.random.default_rng(1)
    lift = np.repeat([1.0, 1.5, 0.8], len(joined) // 3) * rng.uniform(0.8, 1.25, len(joined))
    probability = joined.probability.copy()
    for k in range(len(joined)):
        rows = joined.rows(k)
        probability[rows][0] *= lift[k]
        probability[rows] /= probability[rows].sum()
    moved = replace(joined, probability=probability, low=probability, high=probability)
    told = prove(replace(found, reworded={name: moved}), tmp_path)
    assert any("of the variance of the belief in the likeliest outcome" in each for each in told)
    assert not any("0.0% between wordings" in each for each in told)


def test_an_exact_mind_that_is_no_belief_sampler_has_intervals_over_contexts(tmp_path):
    found = reveal("synthetic:evidence_weigher", scenarios=["counts"], stated=False,
                   truth={"bias_fact": 1.0, "temperature": 1.5, "evidence": 0.4})  # fmt: skip
    told = prove(found, tmp_path)
    assert any("(90% interval over contexts" in each for each in told)


def mixed(one, other, contexts=slice(None)):
    """One result of two models, in some of their contexts."""
    kept = np.zeros(len(next(iter(one.beliefs.values()))), dtype=bool)
    kept[contexts] = True
    beliefs, naive, known = {}, {}, {}
    for name, found in (("one", one), ("two", other)):
        (own,) = found.beliefs.values()
        row = kept[own.context]
        beliefs[name] = own.part(kept)
        naive[name] = next(iter(found.naive.values()))[row]
        known[name] = next(iter(found.known.values()))[row]
    stated = pd.concat([one.stated.assign(model="one"), other.stated.assign(model="two")])
    names = {name for own in beliefs.values() for name in own.contexts}
    return summarise(beliefs, naive, known, stated[stated["context"].isin(names)])


@pytest.mark.parametrize(
    ("changed", "contexts", "sentence"),
    [
        ({}, slice(None), "two is as far from the truth as one, on average"),
        ({"bias_first": 0.0}, slice(None), "two is nearer to the truth than one"),
        ({"bias_first": 2.0}, slice(None), "two is farther from the truth than one"),
        ({"bias_first": 2.0}, slice(1), "too few for an interval"),
        ({"bias_repeat": 0.501}, slice(None), "which may be chance"),
    ],
)
def test_models_side_by_side(bent, changed, contexts, sentence, tmp_path):
    other = reveal(BENT, scenarios=["choice", "preference"], truth=TRUTH | changed, leak=0.1)
    told = prove(mixed(bent, other, contexts), tmp_path)
    assert any(sentence in each for each in told)


def test_a_provider_that_answers_always_the_same(tmp_path):
    for k, able in enumerate((False, True)):
        adapter = Answers(log_probabilities=able)
        found = reveal(
            adapter, scenarios=["choice"], only={"n_options": 2}, draws=8, out=tmp_path / f"{k}",
            source=None if able else "sampled",
        )  # fmt: skip
        sent = {found.models[0]: {"contexts": "messages", "questions": "messages"}}
        told = prove(found, tmp_path / f"again-{k}", sent=sent)
        assert any("were sent as messages" in sentence for sentence in told)
        assert not any(sentence.startswith("Crosses: the naive") for sentence in told)


def test_what_tables_of_the_library_print(bent):
    (own,) = bent.beliefs.values()
    little = np.isin(np.arange(len(own)), [0, 4])
    probability = np.where(little[own.context], own.probability / 4, own.probability)
    dim = replace(own, probability=probability, low=probability, high=probability)
    lacking = probability.copy()
    lacking[own.rows(7).start] = np.nan
    for beliefs in (own, dim, replace(dim, probability=lacking)):
        table = beliefs.to_frame().assign(threshold=beliefs.threshold)
        facts = SimpleNamespace(table=table)
        lines = [
            line
            for what in (beliefs, belief_biases(beliefs), distribution_distances(beliefs))
            for line in str(what).splitlines()
            if not re.match(r"(scenario|dice|coins|choice|preference) ", line)
        ]
        check(REPORT, [*lines, *filter(None, beliefs.flags)], facts)
    letters = RevealedBeliefs.sampled([[3, 1], [0, 0]], [0, 4], ("A", "B"))
    errors = stated_errors(letters, ["A", "B"])
    check(REPORT, [str(errors)], SimpleNamespace(errors=[1 / 4, np.nan]))
