"""Every sentence of `channel` holds, where words come through and where they do not."""

import json
import re
from types import SimpleNamespace

import pandas as pd
import pytest
from channel.test_channel import PLACE, SETS, Dull, Shy, rows_of, speak_as
from claims import check
from claims.channel import REPORT

from knownminds.validation.channel.channel_page import channel_page
from knownminds.validation.channel.channel_study import channel, read_channel
from knownminds.validation.engine.verdicts import (
    CLEAR,
    LEAST_FITS,
    MOST_FAILURES,
    RATES_LEVEL,
)
from knownminds.validation.pages import figures

NOT_SENTENCES = re.compile(r"parameter |alpha|beta|kappa|(trials|outcomes|bounds): ")


def prove(found, folder, **asked):
    """Check all that is said against the rows of the study."""
    study = {
        "model": "rescorla_wagner_dual", "environment": PLACE, "method": "map", "sessions": 1,
        "marked": False,  # what is said in this experiment is the answer alone
    }  # fmt: skip
    facts = SimpleNamespace(
        content=json.loads(found.to_json()),
        rows={entry.label: rows_of(folder, c) for c, entry in enumerate(found.entries)},
        study=study | asked,
        level=RATES_LEVEL,
        least=LEAST_FITS,
        most_failures=MOST_FAILURES,
        errors=CLEAR,
    )
    page = channel_page(found)
    told = [page.title, dict(page.asked)["subjects"], *page.sentences, *page.notes]
    told += [caption for caption, _ in page.figures]
    for finding in page.findings:
        told += [f"{finding.name} = {finding.word}"]
        told += [f"{finding.name}: {each}" for each in re.split(r"(?<=\.) (?=[A-Z])", finding.why)]
    told += [line for line in str(found).splitlines() if not NOT_SENTENCES.match(line)]
    check(REPORT, told, facts)
    return told


@pytest.fixture(autouse=True)
def unrendered(monkeypatch):
    """Figures are drawn, but not turned into SVG, which takes most of the time."""
    monkeypatch.setattr(figures, "svg", lambda figure: "<svg/>")


def test_minds_that_come_through_with_and_without_contaminants(tmp_path):
    found = channel(PLACE, contaminants=SETS, subjects=12, trials=48, out=tmp_path, workers=1)
    told = prove(found, tmp_path, subjects=12)
    assert any("Bounds at 90% hold the truth" in sentence for sentence in told)
    assert any("the estimates are identical" in sentence for sentence in told)


@pytest.mark.parametrize(
    ("kind", "sets", "sentence"),
    [
        (Dull, ["none"], "none, trials = not confirmed"),
        (Shy, ["none"], "Rates are not those of the dials"),
    ],
)
def test_speakers_that_say_something_else(kind, sets, sentence, tmp_path, monkeypatch):
    speak_as(kind, monkeypatch)
    found = channel(PLACE, contaminants=sets, subjects=3, trials=48, out=tmp_path, workers=1)
    told = prove(found, tmp_path, subjects=3)
    assert any(sentence in each for each in told)
    assert any("Usable fits" in s or "No answer is missing" in s for s in told)


@pytest.mark.parametrize("lived", [True, False])
def test_a_study_whose_fits_all_failed(lived, tmp_path):
    """After they had been lived, when every answer may have been read, or before."""
    channel(PLACE, contaminants=["none", "malformed=0.2"], subjects=3, trials=24, out=tmp_path,
            workers=1)  # fmt: skip
    (tmp_path / "parts.sha256").unlink()  # which would tell that they were edited
    for file in (tmp_path / "parts").glob("*.parquet"):
        rows = pd.read_parquet(file)
        kept = rows if lived else rows[["cell", "replicate", "subject", "seconds"]]
        kept.assign(status="failed", message="planted").to_parquet(file, index=False)
    told = prove(read_channel(tmp_path), tmp_path, subjects=3)
    assert "none: 3 of 3 without an estimate: planted." in told
    # Where every answer was read, it is the estimates that lack.
    reason = "No subject has all answers and both estimates" if lived else "No trial was lived"
    assert any(sentence.startswith(f"none, trials: {reason}") for sentence in told)
