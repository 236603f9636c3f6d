import json
import shutil

import pandas as pd
import pytest

from knownminds.environments import session_stream
from knownminds.validation.engine.engine import ShareDone, read, run
from knownminds.validation.engine.merging import merge
from knownminds.validation.engine.study import Cell, Study

PLACE = "instrumental_learning"
CELLS = (Cell(PLACE, {"n_visits": 2}, "rescorla_wagner", subjects=30, batch=5),)
STUDY = Study("t", CELLS, 2, 5)  # 12 batches


def draw(study, batch, threads):
    """One number per unit from its own address."""
    replicate, subject = study.subjects_of(batch)
    key = study.cells[batch.cell].data_key
    values = [
        session_stream(study.seed, key, int(j), int(i)).random()
        for j, i in zip(replicate, subject, strict=True)
    ]
    return pd.DataFrame({"status": "ok", "message": "", "value": values})


def never(study, batch, threads):
    raise AssertionError("this batch is finished")


def numbers(rows):
    return rows.frame().drop(columns="seconds")


def compute(folder, share=None, study=STUDY):
    if share is None:
        run(study, draw, numbers, out=folder, workers=1)
    else:
        with pytest.raises(ShareDone):
            run(study, draw, numbers, out=folder, share=share, workers=1)
    return folder


@pytest.fixture
def halves(tmp_path):
    return compute(tmp_path / "a", "1/2"), compute(tmp_path / "b", "2/2")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return compute(tmp_path_factory.mktemp("whole"))


def parts(folder):
    return {file.name: file.read_bytes() for file in (folder / "parts").iterdir()}


def everything(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def refused(tmp_path, folders, named, target="merged"):
    """Merge in vain: one sentence, and not a byte changed anywhere."""
    before = everything(tmp_path)
    with pytest.raises(ValueError, match=named) as told:
        merge(folders, tmp_path / target)
    assert everything(tmp_path) == before
    assert target != "merged" or not (tmp_path / target).exists()
    return str(told.value)


def rewrite(folder, **change):
    file = folder / "study.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))


def test_shares_joined_are_the_unbroken_study(tmp_path, halves, whole):
    merged = merge(halves, tmp_path / "merged")
    assert merged == tmp_path / "merged"
    pd.testing.assert_frame_equal(
        read(merged, "t", numbers), read(whole, "t", numbers), check_exact=True
    )
    assert json.loads((merged / "study.json").read_text()) == STUDY.identity()
    assert parts(merged) == parts(halves[0]) | parts(halves[1])
    # The merged folder is a study like any other: the same command finds it finished.
    again = run(STUDY, never, numbers, out=merged, workers=1)
    pd.testing.assert_frame_equal(again, read(whole, "t", numbers), check_exact=True)


def test_folders_that_disagree_in_a_number_are_refused(tmp_path, halves, whole):
    other = tmp_path / "other"
    shutil.copytree(whole, other)
    (other / "parts.sha256").unlink()  # which would tell that it was edited
    file = next((other / "parts").iterdir())
    table = pd.read_parquet(file)
    for column, value, disagree in [("seconds", 99.0, False), ("value", 0.5, True)]:
        table.loc[2, column] = value
        table.to_parquet(file, index=False)
        if not disagree:  # computing time is no result
            merge([whole, other], tmp_path / column)
            continue
        told = refused(tmp_path, [whole, other], "different numbers in")
        assert all(name in told for name in (file.name, str(whole), str(other)))


def test_other_studies_are_refused_with_both_sides_named(tmp_path, halves):
    a, b = halves
    others = {
        "seed is 6, there 5": Study("t", CELLS, 2, 6),
        "replicates is 3, there 2": Study("t", CELLS, 3, 5),
        "number of cells is 2, there 1": Study("t", CELLS * 2, 2, 5),
        "command is 'u', there 't'": Study("u", CELLS, 2, 5),
    }
    for i, (difference, study) in enumerate(others.items()):
        folder = compute(tmp_path / f"other{i}", "1/2", study)
        told = refused(tmp_path, [a, folder], "of one study")
        assert difference in told
        assert str(a) in told
        assert str(folder) in told
    made = json.loads((b / "study.json").read_text())["versions"]
    for changed in ({"versions": made | {"numpy": "1.0"}}, {"source": "0"}):
        rewrite(b, versions=made)
        rewrite(b, **changed)
        assert str(b) in refused(tmp_path, [a, b], "of one study")


def test_a_target_that_holds_something_is_refused(tmp_path, halves):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("all of it")
    (tmp_path / "file").write_text("")
    for target in ("full", "file", "a"):
        refused(tmp_path, halves, "new or empty folder; .* is neither", target)
    (tmp_path / "new").mkdir()
    assert len(parts(merge(halves, tmp_path / "new"))) == 12
