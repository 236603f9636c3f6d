"""Power of a comparison of models: recomputed from its rows, from priors and from a pilot."""

import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.model_power import REPORT

from knownminds.agents import AGENTS
from knownminds.inference import maximum_likelihood
from knownminds.inference.fits.model_data import ModelData
from knownminds.validation.cli import main
from knownminds.validation.engine.population import draw_subjects, live
from knownminds.validation.engine.study import Batch, Study
from knownminds.validation.power import model_power as module
from knownminds.validation.power.model_power import model_power, read_model_power
from knownminds.validation.recovery.model_recovery import confuse
from knownminds.validation.report import page_of, read_result

PLACE, MODELS = "instrumental_learning", ["rescorla_wagner_dual", "random_responder"]
ASKED = {"model": MODELS[0], "replicates": 30, "seed": 3, "workers": 1}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "study"
    given = {"subjects": [1, 3], "trials": [8, 24], "out": out}
    return out, model_power(PLACE, MODELS[1:], **given, **ASKED)


def rows_of(folder):
    study, _ = Study.read(folder)
    tables = []
    for c in range(len(study.cells)):
        parts = [study.part_name(b) for b in study.batches() if b.cell == c]
        tables.append(pd.concat([pd.read_parquet(folder / "parts" / p) for p in parts]))
    return tables


def told_by(found):
    page = page_of(found)
    captions = [caption for caption, _ in page.figures]
    return [str(found).splitlines()[0], page.title, *page.sentences, *page.notes, *captions]


def test_the_best_model_is_that_of_the_summed_scores(found):
    folder, result = found
    facts = SimpleNamespace(content=result.to_dict(), rows=rows_of(folder))
    check(REPORT, told_by(result), facts)
    assert read_model_power(folder).to_dict() == result.to_dict()
    assert "How often is the true one" in page_of(read_result(folder)).title
    # the scores of a data set, from its trials
    study, _ = Study.read(folder)
    cell = next(c for c, one in enumerate(study.cells) if one.subjects == 3)
    batch = Batch(cell, 2, 3)
    trials = live(study, batch, draw_subjects(study, batch)).trials()
    for name in MODELS:
        fit = maximum_likelihood(AGENTS[name], ModelData.read(AGENTS[name], trials, 2))
        told = facts.rows[cell][f"score_{name}"].iloc[2]
        assert told == pytest.approx(fit.bic.sum(), abs=1e-4)


def test_one_subject_is_found_as_often_as_by_model_recovery(found):
    _, result = found
    whole = confuse(PLACE, MODELS, trials=24, replicates=300, criteria=["bic"], seed=8, workers=1)
    for name, share in zip(MODELS, np.diag(whole["bic"].confusion.value), strict=True):
        (own,) = (one for one in result.found if one.cell.model == name and one.size == (1, 1, 24))
        # two shares of 300 and 30 data sets: 3.5 errors of their difference
        error = (share * (1 - share) * (1 / 300 + 1 / 30) + 1e-4) ** 0.5
        assert abs(own.won.value - share) < 3.5 * error


def test_failed_data_sets_are_misses(monkeypatch):
    own = module.choose_batch

    def broken(study, batch, threads):
        rows = own(study, batch, threads)
        rows.loc[0, ["status", "message", "best"]] = ["failed", "no fit", -1]
        rows.loc[1, "best"] = -1
        return rows

    monkeypatch.setattr(module, "choose_batch", broken)
    found = model_power(PLACE, MODELS[1:], trials=24, backend="threads", **ASKED)
    assert [(one.failed, one.undecided) for one in found.found] == [(1, 1), (1, 1)]
    assert all(one.won.value <= 28 / 30 for one in found.found)
    assert any("4 of 60 data sets failed or were undecided" in text for text in told_by(found))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--against", "random_responder", "--effect", "optimism_bias=1"], "got --effect"),
        (["--against", "random_responder", "--find", "sessions"], "got --find"),
        (["--against", "random_responder", "--criterion", "loo"], "aic"),
        (["--against", "rescorla_wagner_dual"], "twice"),
        (["--criterion", "aic", "--effect", "optimism_bias=1"], "add --against"),
        ([], "--against MODEL; got neither"),
    ],
)
def test_what_is_no_comparison_is_refused(given, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["power", PLACE, "--model", MODELS[0], *given])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.replace("\n", " ")


def test_the_command_of_the_page_asks_the_same(tmp_path):
    words = ["power", PLACE, "--model", MODELS[0], "--against", MODELS[1], "--trials", "8"]
    words += ["--replicates", "4", "--seed", "2", "--workers", "1", "--out", str(tmp_path / "a")]
    with pytest.raises(SystemExit):
        main(words)
    first = read_model_power(tmp_path / "a")
    again = page_of(first).command.split()[1:]
    shutil.rmtree(tmp_path / "a" / "tables", ignore_errors=True)
    with pytest.raises(SystemExit) as ended:
        main([*again, "--workers", "1", "--out", str(tmp_path / "a")])
    assert not ended.value.code
    assert read_model_power(tmp_path / "a").to_dict() == first.to_dict()
