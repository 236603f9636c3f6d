"""What reports of model recoveries say is true of the scores in their rows."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from claims import Report, check, selection, verdicts
from claims import model_recovery as claims

from knownminds.environments import make
from knownminds.validation.engine.study import Rows, Study
from knownminds.validation.recovery import model_recovery
from knownminds.validation.recovery.model_recovery import confuse
from knownminds.validation.recovery.model_recovery_page import model_recovery_page

PLACE = "instrumental_learning"
TWO, THREE = (
    ["random_responder", "perseverator"],
    [
        "random_responder",
        "perseverator",
        "win_stay_lose_shift",
    ],
)
BOTH = Report("both", (), claims.REPORT.sentences + verdicts.REPORT.sentences)


def prove(found, folder):
    read, identity = Study.read(folder)
    rows = Rows(read, folder, identity["versions"]).frame()
    content, page = json.loads(found.to_json()), model_recovery_page(found)
    about = {"content": content, "rows": rows}
    facts, said = SimpleNamespace(**about), iter(page.findings)
    for one in found.confusions:
        for model, verdict in zip(one.models, one.verdicts, strict=True):
            finding = next(said)
            assert (finding.word, finding.why) == (verdict.word, " ".join(verdict.reasons))
            assert f"{model}: {verdict}" in str(found)
            own = SimpleNamespace(**about, criterion=one.criterion, model=model)
            check(claims.REPORT, [f"Verdict: {verdict.word}."], own)
            for reason in verdict.reasons:
                shared = any(c.read(reason) is not None for c in verdicts.REPORT.sentences)
                check(BOTH, [reason], claims.judged(own) if shared else own)
        printed = [s for s in str(one).splitlines() if "data sets" in s and "  " not in s]
        printed = [s for s in printed if ": " not in s]
        check(claims.REPORT, printed, SimpleNamespace(**about, criterion=one.criterion))
    printed = str(found).splitlines()
    lines = [
        page.title,
        *page.sentences,
        *page.notes,
        printed[0],
        *printed[-1 - len(found.notes) :],
    ]
    lines += [text for name, text in page.asked if name in ("data sets", "true values")]
    lines += [caption for caption, _ in page.figures]
    check(claims.REPORT, [f"Note: {s}" if " subjects: " in s else s for s in lines], facts)
    return {v.word for c in found.confusions for v in c.verdicts}


@pytest.mark.parametrize(
    "given",
    [
        {"models": THREE, "replicates": 60},
        {"models": TWO, "replicates": 5, "subjects": 3},
        {"models": THREE, "replicates": 20, "trials": 4},  # nothing to tell them by: undecided
        {"models": TWO, "replicates": 400, "trials": 96, "truth": {"kappa": 0.0}, "lapse": 0.1},
        {"models": TWO, "replicates": 300, "trials": 96, "truth": {"kappa": 2.0}},
        {"models": TWO, "replicates": 20, "criteria": ["cv", "loo"], "sessions": 2, "trials": 8},
    ],
)
def test_a_model_recovery_tells_what_is_in_its_scores(tmp_path, given):
    prove(
        confuse(PLACE, **{"trials": 24, "seed": 2, "workers": 1, "out": tmp_path} | given), tmp_path
    )


@pytest.mark.parametrize("every", [5, 1])
def test_so_does_one_with_failed_fits_or_nothing_else(monkeypatch, tmp_path, every):
    own = model_recovery.maximum_likelihood

    def failing(model, data, **given):
        fit = own(model, data, **given)
        lost = np.arange(len(data)) % every == 0
        fail = list(fit.message)
        for k in np.flatnonzero(lost):
            fail[k] = f"planted {k % 3}"
        status = tuple("failed" if bad else s for s, bad in zip(fit.status, lost, strict=True))
        return SimpleNamespace(status=status, message=fail, aic=fit.aic, bic=fit.bic)

    monkeypatch.setattr(model_recovery, "maximum_likelihood", failing)
    given = {"replicates": 25, "trials": 24, "workers": 1, "out": tmp_path}
    prove(confuse(PLACE, THREE, **given), tmp_path)


@pytest.mark.parametrize(
    ("rivals", "all_trials"),
    [
        (["horizon_blind", "random_responder"], False),
        (["horizon_blind", "perseverator"], False),
        (["horizon_blind", "random_responder"], True),
    ],
)
def test_which_trials_were_fitted_is_told(rivals, all_trials):
    place = make("horizon", n_games=4)
    found = confuse(place, rivals, replicates=2, all_trials=all_trials, seed=1, workers=1)
    content = json.loads(found.to_json())
    check(selection.REPORT, found.notes[:1], SimpleNamespace(content=content))
