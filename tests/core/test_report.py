"""Reports of results that are kept: begun or damaged folders, failures, files beside the page."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from kept_pages import unpacked
from PIL import Image

from knownminds.validation.engine import engine as running
from knownminds.validation.engine.study import Study
from knownminds.validation.pages.tables import latex
from knownminds.validation.report import page_of, read_result, read_what_is_there, render, report

BEGUN = ("recovery", "surface", "calibration", "power", "audit", "confusion", "channel")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("kept"), {}

    def of(kind):
        if kind not in found:
            found[kind] = unpacked(kind, folder)
        return found[kind]

    return of


def html(result):
    return render(page_of(result))


def text_of(page):
    """What a reader reads of a page, without its figures."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<svg.*?</svg>", "", page)))


def change(file, **changed):
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))


# What is begun


def begun(folder, parts, to):
    """A copy of a study in which only some parts are there."""
    copy = shutil.copytree(folder, to / "s", ignore=shutil.ignore_patterns("*.html", "figures"))
    for file in copy.rglob("*.parquet"):
        if file.name not in parts:
            file.unlink()
    return copy


def parts_of(folder, cells):
    study, _ = Study.read(folder)
    return [study.part_name(batch) for batch in study.batches() if batch.cell in cells]


@pytest.mark.parametrize("kind", BEGUN)
def test_what_is_begun_is_no_result_but_has_a_page_that_says_so(stored, kind, tmp_path):
    folder = begun(stored(kind), (), tmp_path)
    with pytest.raises(ValueError, match="not finished"):
        read_result(folder)
    text = text_of(html(read_what_is_there(folder)))
    study, _ = Study.read(folder)
    assert f"0 of {sum(study.units(c) for c in range(len(study.cells)))}" in text
    assert study.command_line() in text.replace("&#39;", "'").replace("&#34;", '"')


def test_scores_of_what_is_there_are_those_of_these_rows_alone(stored, tmp_path):
    folder = stored("surface")
    surface = read_result(folder)
    found = read_what_is_there(begun(folder, parts_of(folder, (0, 3)), tmp_path))
    assert (list(found.done), found.of) == ([30, 0, 0, 30], [30] * 4)
    whole = [surface.recoveries[c] for c in (0, 3)]
    for now, then in zip(found.result.recoveries, whole, strict=True):
        assert now.parameters == then.parameters
    missing = surface.recoveries[1]["alpha"]
    assert f"{missing.bias} {missing.rmse}" not in text_of(html(found))


@pytest.mark.parametrize(
    ("kind", "cells", "entries"),
    [("power", (1,), "designs"), ("audit", (0,), "entries"), ("channel", (0,), "entries")],
)
def test_designs_that_are_there_are_judged_as_in_the_end(stored, kind, cells, entries, tmp_path):
    folder = stored(kind)
    found = read_what_is_there(begun(folder, parts_of(folder, cells), tmp_path)).result
    now, then = getattr(found, entries), getattr(read_result(folder), entries)
    assert [str(one) for one in now] == [str(then[c]) for c in cells]


# What failed, and what is damaged


@pytest.mark.parametrize("kind", BEGUN)
def test_a_study_in_which_everything_failed_still_has_a_page(stored, kind, tmp_path):
    folder = shutil.copytree(stored(kind), tmp_path / "s")
    (folder / "parts.sha256").unlink()  # which would tell that they were edited
    for part in (folder / "parts").iterdir():
        rows = pd.read_parquet(part)
        rows = rows[[c for c in ("cell", "replicate", "subject", "seconds") if c in rows]]
        rows = rows.assign(status="failed", message="planted")
        rows.to_parquet(part, index=False, write_page_checksum=True)
    page = html(read_result(folder))
    assert "planted" in page
    assert 'class="good"' not in page


def test_a_report_computes_nothing(stored, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a report computes nothing")

    monkeypatch.setattr(running, "_finish", never)
    for kind in ("power", "audit"):
        assert report(stored(kind)).stat().st_size > 10_000


def test_a_folder_with_two_results_or_none_is_refused(stored, tmp_path):
    folder = shutil.copytree(stored("budget"), tmp_path / "b")
    shutil.copy(stored("fit") / "fit.json", folder)
    with pytest.raises(ValueError, match=r"fit\.json and budget\.json"):
        report(folder)
    (tmp_path / "empty").mkdir()
    for other in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="none"):
            report(other)


@pytest.mark.parametrize(
    ("kind", "name"), [("recovery", "study.json"), ("budget", "budget.json"), ("fit", "fit.json")]
)
@pytest.mark.parametrize("content", ["{", "[1]", '{"a": 1}'])
def test_a_damaged_or_foreign_file_is_refused(stored, kind, name, content, tmp_path):
    ignored = shutil.ignore_patterns("report.html")
    folder = shutil.copytree(stored(kind), tmp_path / "s", ignore=ignored)
    (folder / name).write_text(content)
    with pytest.raises(ValueError, match=name):
        report(folder)
    assert not (folder / "report.html").exists()


def test_an_unknown_kind_of_study_is_named_with_the_nearest(stored, tmp_path):
    folder = shutil.copytree(stored("recovery"), tmp_path / "s")
    change(folder / "study.json", command="recovr")
    with pytest.raises(ValueError, match=r"'recovr'.*recover"):
        report(folder)


def test_markup_in_names_is_escaped(stored):
    fitted = read_result(stored("fit"))
    page = html(dataclasses.replace(fitted, source="<script>alert(1)</script>.csv"))
    assert "<script>alert" not in page


# Beside the page


def test_every_figure_and_table_is_there_as_files_with_the_numbers_of_the_study(stored):
    folder = stored("power")
    report(folder)
    result = read_result(folder)
    (csv,) = (folder / "figures").glob("*.csv")
    kinds = {file.suffix for file in (folder / "figures").glob(f"{csv.stem}.*")}
    assert kinds == {".svg", ".png", ".pdf", ".csv"}
    assert csv.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    with Image.open(csv.with_suffix(".png")) as picture:
        assert 0.005 < (np.asarray(picture.convert("L")) < 128).mean() < 0.5  # ink on paper
    drawn = pd.read_csv(csv)
    curve = drawn[(drawn["panel"] == "power") & (drawn["mark"] == "line")]
    assert curve["y"].tolist() == pytest.approx([d.rejected.value for d in result.designs])
    bars = drawn[(drawn["panel"] == "power") & (drawn["mark"] == "interval")]
    reach = [4 * design.rejected.error for design in result.designs]  # 2 errors to either side
    assert (bars["y_to"] - bars["y"]).tolist() == pytest.approx(reach)
    (_, head, rows), *_ = page_of(result).tables
    (file,) = (folder / "tables").glob("1-*.csv")
    plain = pd.read_csv(file, dtype=str, keep_default_na=False)
    assert plain.columns.tolist() == list(head)
    # what begins with a minus and is no number is kept from being a formula, see `csv_cells`
    cells = [[c.removeprefix("'") for c in row] for row in plain.to_numpy().tolist()]
    assert cells == [list(row) for row in rows]
    printed = file.with_suffix(".tex").read_text()
    assert printed.count(r"\\") == len(rows) + 1
    assert printed.count("{") == printed.count("}")
    assert latex("a_b & 50%", ["x"], [["$"]]).count("\\") > 5


# Fits of people who say little
