"""What reports of recoveries and of surfaces say is true of their rows."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from claims import Report, check, recovery, selection, surface, verdicts

from knownminds.agents import AGENTS
from knownminds.environments import make
from knownminds.inference import maximum_a_posteriori
from knownminds.validation.engine.engine import run
from knownminds.validation.recovery import parameter_recovery
from knownminds.validation.recovery.parameter_recovery import fit_batch, recover, summarise
from knownminds.validation.recovery.recovery_page import recovery_page
from knownminds.validation.recovery.recovery_surface import recovery_surface
from knownminds.validation.recovery.recovery_surface import summarise as summarise_surface
from knownminds.validation.recovery.recovery_surface_page import surface_page

PLACE, FEW = "instrumental_learning", {"workers": 1, "intervals": "laplace", "seed": 3}
BOTH = Report("both", (), recovery.REPORT.sentences + surface.REPORT.sentences)


def facts_of(found, designs=1):
    return SimpleNamespace(
        content=json.loads(found.to_json()),
        rows=found.rows,
        model=AGENTS[found.cell.model],
        place=found.cell.make(),
        designs=designs,
    )


def prove_reasons(facts, found):
    for s in found.parameters:
        check(verdicts.REPORT, s.verdict.reasons, recovery.judged(facts, s.name))
        for k, region in enumerate(s.regions):
            check(verdicts.REPORT, region.verdict.reasons, recovery.judged_region(facts, s.name, k))
            told = f"In third {k + 1} of the prior {s.name} is {region.verdict.word}."
            check(recovery.REPORT, [told], facts)


def lines_of(found, page):
    """Return the paragraphs of a page, and the printed lines that are no rows of a table.

    Notes of failures, which can be any text, are marked.
    """
    printed = [line for line in str(found).splitlines() if "  " not in line]
    captions = [caption for caption, _ in page.figures]
    lines = [page.title, *page.sentences, *page.notes, *captions, *printed]
    return [f"Note: {s}" if s in getattr(found, "notes", ()) else s for s in lines]


def prove(found):
    facts, page = facts_of(found), recovery_page(found)
    prove_reasons(facts, found)
    for finding, s in zip(page.findings, found.parameters, strict=True):
        assert finding.why == " ".join(s.verdict.reasons)
        check(recovery.REPORT, [f"Verdict on {finding.name}: {finding.word}."], facts)
    asked = [text for name, text in page.asked if name == "subjects" and "each" in text]
    check(recovery.REPORT, [*asked, *lines_of(found, page)], facts)
    return {s.verdict.word for s in found.parameters}


@pytest.fixture(scope="module")
def plain():
    return recover(PLACE, "rescorla_wagner", subjects=60, trials=24, **FEW)


def test_a_recovery_tells_what_is_in_its_rows(plain):
    assert any(word.startswith("between") for word in prove(plain))


@pytest.mark.parametrize(
    "given",
    [
        {"subjects": 1},
        {"subjects": 12, "trials": 4},  # a single visit to each casino tells nothing
        {"subjects": 8, "replicates": 3, "trials": 12},
        {"subjects": 40, "truth": {"alpha": 0.3}, "trials": 12},
        {"subjects": 40, "method": "mle", "trials": 12},
        {"subjects": 400, "trials": 384},
    ],
)
def test_so_does_one_of_any_shape(given):
    prove(recover(PLACE, "rescorla_wagner", **FEW | given))


def broken(share, column=None):
    """Return a fit of which some subjects fail, or whose interval ends are missing."""

    def fit(study, batch, threads):
        number = np.arange(batch.first, batch.last)
        rows, lost = fit_batch(study, batch, threads), number % 10 < share * 10
        if column is not None:
            gone = [c for c in rows if c.startswith(column)]
            rows.loc[lost, gone] = np.nan
        else:
            rows.loc[lost, "status"] = "failed"
            rows.loc[lost, "message"] = [f"planted {n % 3}" for n in number[lost]]
        return rows

    return fit


@pytest.mark.parametrize("fit", [broken(0.1), broken(0.3), broken(1), broken(0.2, "low_")])
def test_so_does_one_with_failed_fits_or_none_but_failed_ones(plain, fit):
    prove(run(plain.study, fit, summarise, workers=1))


def test_runaways_are_not_called_estimates_that_do_not_vary(plain):
    """Their correlation is no number either; the sentence was false of them."""

    def runaway(study, batch, threads):
        rows = fit_batch(study, batch, threads)
        rows.loc[rows.index[0], "beta"] = 1e200
        return rows

    found = run(plain.study, runaway, summarise, workers=1)
    assert "not judged" in prove(found)
    assert "Some estimates are too large for r to be computed." in found["beta"].verdict.reasons


def test_a_group_that_did_not_converge_is_told(monkeypatch):
    """Point estimates stand in for the sampled group."""

    def sampled(data, fixed, fit_lapse, *address, **running):
        point = maximum_a_posteriori(data.model, data, fixed=fixed, workers=1)
        reasons = ("R-hat of alpha is 1.2, above 1.01",)
        return SimpleNamespace(
            verdict="not converged",
            reasons=reasons,
            estimate=point.estimate,
            interval=point.interval,
            z_draws=point.z[None],
        )

    monkeypatch.setattr(parameter_recovery, "sample_group", sampled)
    for replicates in (1, 2):
        given = {"subjects": 15, "trials": 24, "replicates": replicates, "seed": 3, "workers": 1}
        found = recover(PLACE, "rescorla_wagner", method="hierarchical", **given)
        prove(found)
        assert "recoverable" not in {s.verdict.word for s in found.parameters}


def prove_surface(found):
    designs = [facts_of(one, len(found.recoveries)) for one in found.recoveries]
    facts = SimpleNamespace(content=json.loads(found.to_json()), designs=designs)
    for one, design in zip(found.recoveries, designs, strict=True):
        prove_reasons(design, one)
        words = [f"Verdict on {s.name}: {s.verdict.word}." for s in one.parameters]
        check(recovery.REPORT, words, design)
    page = surface_page(found)
    told = [f"{finding.name}: {finding.word}." for finding in page.findings]
    assert told == found.answers()
    told += [finding.why for finding in page.findings]
    check(BOTH, told + lines_of(found, page), facts)
    for name in found.parameters:
        for key, own in (("smallest", surface.certain), ("perhaps", surface.possible)):
            size = facts.content[key][name]
            assert own(facts, name) == (None if size is None else tuple(size.values()))
    return told


@pytest.fixture(scope="module")
def grid():
    return recovery_surface(PLACE, "rescorla_wagner", subjects=[12, 60], trials=[4, 48, 384], **FEW)


def test_a_surface_tells_what_its_designs_hold(grid):
    prove_surface(grid)


def test_all_answers_of_a_surface_are_proved(grid):
    """The perseverator is known from few trials; half of the fits of the smallest design fail."""

    def fit(study, batch, threads):
        if batch.cell == 0 and batch.first % 2:
            raise ValueError("planted")
        return fit_batch(study, batch, threads)

    given = {"subjects": [12, 150], "trials": [24, 96]}
    sure = recovery_surface(PLACE, "perseverator", **given, **FEW)
    told = prove_surface(sure)
    told += prove_surface(run(sure.study, fit, summarise_surface, workers=1))
    told += prove_surface(grid)
    # Of 12 subjects' r two errors reach .67 to either side on Fisher's scale, from .8 to .94.
    told += prove_surface(
        recovery_surface(PLACE, "perseverator", **FEW, subjects=[12], trials=[24, 48])
    )
    # A single visit to each casino tells nothing of what is learned there.
    told += prove_surface(recovery_surface(PLACE, "rescorla_wagner", trials=[4, 8], **FEW))
    for words in ("not to be interpreted", "perhaps to be", ": to be interpreted", "is open."):
        assert any(words in sentence for sentence in told), words


@pytest.mark.parametrize("all_trials", [False, True])
def test_which_trials_were_fitted_is_told(all_trials):
    place = make("horizon", n_games=10)
    found = recover(place, "horizon_blind", subjects=12, all_trials=all_trials, **FEW)
    check(selection.REPORT, found.notes[:1], facts_of(found))
    assert found.notes[0] in recovery_page(found).notes
