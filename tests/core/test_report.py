"""Reports of kept results: unfinished or damaged folders, failures, files beside the page."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from knownminds import confuse, power, recover
from knownminds.validation.engine import engine as running
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import read_study, write_part
from knownminds.validation.pages.result_page import latex, page_text
from knownminds.validation.report import read_result, report

PLACE, SMALL = "instrumental_learning", {"trials": [24, 48], "workers": 1}
STUDIES = {
    "recover": lambda out: recover(
        PLACE, "rescorla_wagner", subjects=30, intervals="laplace", out=out, **SMALL
    ),
    "confuse": lambda out: confuse(
        PLACE, ["perseverator", "random_responder"], replicates=20, out=out, **SMALL
    ),
    "power": lambda out: power(
        PLACE, {"optimism_bias": 0.4}, sessions=4, replicates=40, out=out, **SMALL
    ),
}
each = pytest.mark.parametrize("kind", STUDIES)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Folders of finished studies, made when they are first asked for."""
    folder = tmp_path_factory.mktemp("kept")

    def of(kind):
        if not (folder / kind).exists():
            STUDIES[kind](folder / kind)
        return folder / kind

    return of


def copied(folder, to, cells):
    """A copy of a study in which only the parts of some cells are there."""
    study, _ = read_study(folder)
    parts = {study.part_name(batch) for batch in study.batches() if batch.cell in cells}
    copy = shutil.copytree(folder, to / "s")
    for file in copy.rglob("*.parquet"):
        if file.name not in parts:
            file.unlink()
    return copy


@each
def test_an_unfinished_study_is_fewer_rows_and_counts_what_is_missing(stored, kind, tmp_path):
    whole = read_result(stored(kind))
    none = read_result(copied(stored(kind), tmp_path / "none", ()))
    assert (none.attempted, none.finished) == (0, False)
    assert "Not finished" in page_text(none)
    assert none.command == whole.command
    study, _ = read_study(stored(kind))
    last = range(len(study.cells) // 2, len(study.cells))
    some = read_result(copied(stored(kind), tmp_path / "some", last))
    assert 0 < some.missing < none.missing
    assert report(tmp_path / "some" / "s").read_text().count("Not finished") == 1
    # The design that is there is scored as in the end.
    for title in {"Estimates", "Data sets by model", "Designs"} & set(some.tables):
        level = some[title].index.names.index("trials")
        assert some[title].equals(whole[title].loc[some[title].index])
        assert set(some[title].index.get_level_values(level)) == {48}


@each
def test_a_study_in_which_everything_failed_still_has_a_page(stored, kind, tmp_path):
    folder = shutil.copytree(stored(kind), tmp_path / "s")
    for part in (folder / "parts").iterdir():
        rows = pd.read_parquet(part)
        rows = rows[[c for c in ("cell", "replicate", "subject", "seconds") if c in rows]]
        rows = rows.assign(status="failed", message="planted")
        write_part(rows, part)
    result = read_result(folder)
    assert result.failed == result.attempted
    page = page_text(result)
    assert "planted" in page
    assert 'class="good"' not in page


def test_a_report_computes_nothing(stored, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a report computes nothing")

    folder = stored("power")
    monkeypatch.setattr(running, "_finish", never)
    assert report(folder).stat().st_size > 10_000


def test_a_folder_with_two_results_or_none_is_refused(stored, tmp_path):
    folder = shutil.copytree(stored("power"), tmp_path / "b")
    (folder / "benchmark.json").write_text("{}")
    with pytest.raises(ValueError, match=r"study\.json and benchmark\.json"):
        report(folder)
    (tmp_path / "empty").mkdir()
    for other in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="none"):
            report(other)


@pytest.mark.parametrize("content", ["{", "[1]", '{"a": 1}'])
@pytest.mark.parametrize("name", ["study.json", "benchmark.json"])
def test_a_damaged_or_foreign_file_is_refused(name, content, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=name):
        report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_an_unknown_kind_of_study_is_named_with_the_nearest(stored, tmp_path):
    folder = shutil.copytree(stored("power"), tmp_path / "s")
    file = folder / "study.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"command": "powr"}))
    with pytest.raises(ValueError, match=r"'powr'.*power"):
        report(folder)


def test_markup_in_texts_is_escaped():
    table = pd.DataFrame({"x": ["<script>alert(1)</script>"]})
    page = page_text(Result("<script>alert(2)</script>", tables={"t": table}))
    assert "<script>alert" not in page


def test_a_folder_has_the_tables_of_its_last_result_alone(tmp_path):
    table = pd.DataFrame({"x": [1.0]})
    Result("first", tables={"one": table, "two": table}).save(tmp_path)
    Result("second", tables={"three": table}).save(tmp_path)
    assert {file.name for file in (tmp_path / "tables").glob("*.csv")} == {"1-three.csv"}


def test_no_number_that_is_none_reaches_a_page(stored):
    page = report(stored("power")).read_text(encoding="utf-8")
    words = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(svg|script|style).*?</\1>", "", page)).split()
    assert not {"nan", "inf", "NaN", "None"} & set(words)


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
    designs = result["Designs"]
    (file,) = (folder / "tables").glob("1-*.csv")
    for drawn in (pd.read_csv(csv), pd.read_csv(file)):
        for name, title in (("power", "power"), ("width_95", "95% width")):
            assert drawn[name].tolist() == pytest.approx([s.value for s in designs[title]])
            errors = [score.error for score in designs[title]]
            assert drawn[f"{name}_error"].tolist() == pytest.approx(errors)
    printed = file.with_suffix(".tex").read_text()
    assert printed.count(r" \\") == len(designs) + 1
    assert printed.count("{") == printed.count("}")
    assert latex("a_b & 50%", ["x"], [["$"]]).count("\\") > 5
    content = json.loads((folder / "result.json").read_text())
    assert content == result.to_dict()
