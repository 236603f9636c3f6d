"""What reports of calibrations say is true of their ranks."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from claims import calibration as claims
from claims import check

from knownminds.environments import session_stream
from knownminds.validation.calibration import calibration
from knownminds.validation.calibration.calibration import N_RANKS, calibrate
from knownminds.validation.calibration.calibration_page import calibration_page
from knownminds.validation.calibration.rank_uniformity import judge
from knownminds.validation.engine.study import Rows, Study

PLACE = "instrumental_learning"


def prove(found, folder):
    read, identity = Study.read(folder)
    rows = Rows(read, folder, identity["versions"]).frame()
    content, page = json.loads(found.to_json()), calibration_page(found)
    facts = SimpleNamespace(content=content, rows=rows)
    for finding, (name, quantity) in zip(page.findings, found.quantities.items(), strict=True):
        told = content["parameters"][name]
        assert (finding.word, finding.why) == (told["verdict"], " ".join(told["reasons"]))
        assert f"{name}: {finding.why}" in str(found)
        ranks = rows.loc[rows["status"] != "failed", f"rank {name}"].to_numpy(dtype=int)
        prove_quantity(ranks, quantity, told)
    reasons = {f"{name}: {' '.join(q.reasons)}" for name, q in found.quantities.items()}
    printed = [s for s in str(found).splitlines() if "  " not in s and s not in reasons]
    asked = [text for name, text in page.asked if name in ("replicates", "posterior")]
    lines = [page.title, *page.sentences, *page.notes, *printed, *asked]
    lines += [caption for caption, _ in page.figures]
    lines = [line for line in lines if line != "of each subject alone"]
    words = "posteriors failed"
    marked = [f"Note: {s}" if s in found.notes and words not in s else s for s in lines]
    check(claims.REPORT, marked, facts)


def prove_quantity(ranks, quantity, told):
    facts = SimpleNamespace(ranks=ranks, level=quantity.level, told=told)
    printed = [line for line in str(quantity).splitlines()[1:] if "   " in line]
    check(claims.REPORT, quantity.reasons, facts)
    check(claims.REPORT, [s for s in printed if s.startswith(("gamma", "mean", "spread"))], facts)


@pytest.mark.parametrize("replicates", [1, 20, 60])
def test_a_calibration_tells_what_is_in_its_ranks(tmp_path, replicates):
    given = {"replicates": replicates, "trials": 12, "workers": 1, "out": tmp_path}
    prove(calibrate(PLACE, "perseverator", **given), tmp_path)


@pytest.mark.parametrize("every", [4, 1])
def test_so_does_one_with_failures_or_nothing_else(monkeypatch, tmp_path, every):
    own = calibration.rank_batch

    def failing(study, batch, threads):
        rows = own(study, batch, threads)
        lost = np.arange(batch.first, batch.last) % every == 0
        rows.loc[lost, "status"] = "failed"
        rows.loc[lost, "message"] = [f"planted {i % 3}" for i in np.flatnonzero(lost)]
        rows.loc[lost, [name for name in rows if name.startswith("rank ")]] = np.nan
        return rows

    monkeypatch.setattr(calibration, "rank_batch", failing)
    given = {"replicates": 48, "trials": 12, "workers": 1, "out": tmp_path}
    prove(calibrate(PLACE, "perseverator", **given), tmp_path)


@pytest.mark.parametrize(
    ("shift", "width", "word"),
    [
        (0.0, 1.0, "calibrated"),
        (0.8, 1.0, "biased low"),
        (-0.8, 1.0, "biased high"),
        (0.0, 0.5, "over-confident"),
        (0.0, 2.5, "under-confident"),
        (1.0, 0.5, "biased low, over-confident"),
    ],
)
def test_every_word_of_a_calibration_is_proved(shift, width, word):
    rng = session_stream(5)
    truth = shift + rng.normal(size=100)
    ranks = (width * rng.normal(size=(N_RANKS, 100)) < truth).sum(axis=0)
    found = judge(ranks, N_RANKS, 0.05 / 4)
    assert found.word == word
    told = found.to_dict()
    prove_quantity(ranks, found, {"verdict": told.pop("word"), **told})


def test_ranks_of_a_strange_shape_are_said_to_be_so():
    ranks = np.repeat([11, 37, 62, 88], 100)
    found = judge(ranks, N_RANKS)
    assert found.word == "miscalibrated"
    told = found.to_dict()
    prove_quantity(ranks, found, {"verdict": told.pop("word"), **told})
