"""Each sentence on a study that is not finished is true of what lies on the disk."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from claims import check
from claims.unfinished import REPORT

from knownminds.environments import session_stream
from knownminds.validation.engine.engine import ShareDone, run
from knownminds.validation.engine.merging import merge
from knownminds.validation.engine.study import Cell, Study
from knownminds.validation.power.power_study import power
from knownminds.validation.report import page_of
from knownminds.validation.unfinished_page import read_unfinished

PLACE = "instrumental_learning"
CELL = Cell(PLACE, {"n_visits": 2}, "rescorla_wagner", subjects=6, batch=5)
STUDY = Study("t", (CELL, replace(CELL, subjects=1)), 2, 5)


def draw(study, batch, threads):
    """One number per unit from its own address."""
    return pd.DataFrame(
        {
            "status": "ok",
            "message": "",
            "value": [session_stream(5, i).random() for i in range(batch.first, batch.last)],
        }
    )


def compute(folder, study=STUDY, parts=None):
    """A study of which only some parts are there."""
    run(study, draw, lambda rows: rows.frame(), out=folder, workers=1)
    for file in sorted((folder / "parts").glob("*.parquet"))[parts:]:
        file.unlink()
    return folder


def prove(folder):
    found = read_unfinished(folder)
    page = page_of(found)
    finding = page.findings[0]
    judged = found.result is not None
    told = [f"{finding.name} {finding.word}.", *re.split(r"(?<=\.) ", finding.why)]
    told.append(str(found))
    if not judged:
        told += [page.title, *page.sentences]
        assert len(page.findings) == 1
    else:
        assert len(page.findings) > 1 or len(page.tables) > 1
    check(REPORT, told, SimpleNamespace(folder=folder, judged=judged))
    rows = [row for title, _, rows in page.tables[:1] if title.startswith("What") for row in rows]
    for _, there, of, missing in rows:
        assert int(there) + int(missing) == int(of)
    return told


@pytest.mark.parametrize(
    ("unit", "parts"), [("subject", 0), ("subject", 3), ("replicate", 0), ("replicate", 1)]
)
def test_what_is_said_of_what_is_there_is_so(tmp_path, parts, unit):
    prove(compute(tmp_path / "s", replace(STUDY, unit=unit), parts))


@pytest.mark.parametrize("finished", [0, 1, 2])
def test_what_is_said_of_a_search_is_so(tmp_path, finished):
    start = Study("t", (replace(CELL, law={"part_of_search": "start"}),), 2, 5)
    folder = compute(tmp_path / "s", start, 0)
    for k in range(3):
        compute(folder / f"step-{k:02}", parts=None if k < finished else 1)
    told = prove(folder)
    assert any("of the search" in text for text in told)


def test_what_is_said_above_a_judgement_is_so(tmp_path):
    folder = tmp_path / "p"
    power(PLACE, {"optimism_bias": 0.8}, sessions=(4, 8), trials=24, replicates=4, workers=1,
          out=folder)  # fmt: skip
    parts = sorted((folder / "parts").glob("*.parquet"))
    parts[-1].unlink()
    assert any("All below" in text for text in prove(folder))
    parts[0].unlink()
    assert len(parts) == 2
    assert any("Nothing is judged yet" in text for text in prove(folder))


def test_a_merge_of_some_shares_says_what_is_missing(tmp_path):
    for share in ("1/3", "2/3"):
        with pytest.raises(ShareDone):
            run(STUDY, draw, lambda rows: 0, out=tmp_path / share[0], share=share, workers=1)
    folder = merge([tmp_path / "1", tmp_path / "2"], tmp_path / "merged")
    prove(folder)
