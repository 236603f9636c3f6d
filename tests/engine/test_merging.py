import json
import shutil

import pandas as pd
import pytest

from knownminds.environments import session_stream
from knownminds.validation.engine.engine import ShareDone, read, run
from knownminds.validation.engine.merging import merge
from knownminds.validation.engine.study import Cell, Study
from knownminds.validation.recovery import parameter_recovery
from knownminds.validation.recovery.parameter_recovery import read_recovery, recover

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


def test_the_order_of_the_folders_does_not_matter(tmp_path, halves):
    a = merge(halves, tmp_path / "one")
    b = merge(halves[::-1], tmp_path / "two")
    assert parts(a) == parts(b)


def test_a_recovery_study_in_shares_reads_as_the_unbroken_one(tmp_path, monkeypatch):
    monkeypatch.setattr(parameter_recovery, "BATCH", 50)
    asked = {"subjects": 200, "seed": 4, "intervals": "laplace", "workers": 1}
    for share in ("1/2", "2/2"):
        with pytest.raises(ShareDone):
            recover(PLACE, "rescorla_wagner", out=tmp_path / share[0], share=share, **asked)
    merged = read_recovery(merge([tmp_path / "1", tmp_path / "2"], tmp_path / "merged"))
    unbroken = recover(PLACE, "rescorla_wagner", **asked)
    a, b = (json.loads(result.to_json()) for result in (merged, unbroken))
    assert a | {"seconds": 0} == b | {"seconds": 0}


def test_folders_may_overlap_where_they_agree(tmp_path, halves, whole):
    merged = merge([*halves, whole, halves[0]], tmp_path / "merged")
    assert parts(merged).keys() == parts(whole).keys()
    assert len(parts(whole)) == 12


def test_an_unfinished_merge_is_no_result_and_can_be_completed(tmp_path, halves, whole):
    quarter = compute(tmp_path / "c", "1/4")
    merged = merge([halves[0], quarter], tmp_path / "merged")
    assert len(parts(merged)) == 6
    with pytest.raises(ValueError, match=r"not finished.*Run the same command again"):
        read(merged, "t", numbers)
    compute(merged)
    pd.testing.assert_frame_equal(read(merged, "t", numbers), read(whole, "t", numbers))


def test_what_is_half_written_in_a_folder_is_left_there(tmp_path, halves):
    (halves[0] / "parts" / ".0123.77").write_bytes(b"PAR1 half")
    (halves[0] / "parts" / "notes.txt").write_text("mine")
    cut = next((halves[1] / "parts").iterdir())
    cut.write_bytes(cut.read_bytes()[:-20])
    merged = merge(halves, tmp_path / "merged")
    assert len(parts(merged)) == 11
    assert cut.name not in parts(merged)
    assert all(name.endswith(".parquet") for name in parts(merged))


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
        for name in (file.name, str(whole), str(other)):
            assert name in told
        assert told.endswith(
            "One of them is damaged or was changed; delete that part and compute it anew."
        )


def test_the_smallest_difference_is_one(tmp_path, halves, whole):
    other = tmp_path / "other"
    shutil.copytree(whole, other)
    (other / "parts.sha256").unlink()  # which would tell that it was edited
    file = next((other / "parts").iterdir())
    table = pd.read_parquet(file)
    table.loc[2, "value"] = table.loc[2, "value"] * (1 + 1e-15)
    table.to_parquet(file, index=False)
    refused(tmp_path, [whole, other], "different numbers")


def test_other_studies_are_refused_with_both_sides_named(tmp_path, halves):
    a, b = halves
    other = [
        (Study("t", CELLS, 2, 6), "a study of another design (seed is 6, there 5)"),
        (Study("t", CELLS, 3, 5), "a study of another design (replicates is 3, there 2)"),
        (
            Study(
                "t", (Cell(PLACE, {"n_visits": 3}, "rescorla_wagner", subjects=30, batch=5),), 2, 5
            ),
            "a study of another design (n_visits is 3, there 2)",
        ),
        (Study("t", CELLS * 2, 2, 5), "a study of another design (number of cells is 2, there 1)"),
        (
            Study("t", CELLS, 2, 5, question={"most": 9}),
            "another study (most is 9, there None)",
        ),
        (Study("u", CELLS, 2, 5), "a study of another design (command is 'u', there 't')"),
    ]
    for i, (study, difference) in enumerate(other):
        folder = compute(tmp_path / f"other{i}", "1/2", study)
        told = refused(tmp_path, [a, folder], "Merged folders are of one study")
        assert told == (
            f"Merged folders are of one study. Unlike {a}, the folder {folder} holds {difference}. "
            "Repeat one of them with the command, code and versions of the other."
        )
    made = json.loads((b / "study.json").read_text())["versions"]
    for change, difference in [
        ({"versions": made | {"numpy": "1.0"}}, f"made with numpy 1.0 instead of {made['numpy']}"),
        ({"source": "0"}, "made with another state of the code, knownminds' or your own"),
    ]:
        rewrite(b, versions=made)
        rewrite(b, **change)
        told = refused(tmp_path, [a, b], "of one study")
        assert f"Unlike {a}, the folder {b} holds a study {difference}. Repeat" in told


def test_the_third_folder_is_looked_at_as_well(tmp_path, halves):
    folder = compute(tmp_path / "c", "1/2", Study("t", CELLS, 2, 6))
    assert str(folder) in refused(tmp_path, [*halves, folder], "seed is 6, there 5")


@pytest.mark.parametrize("alone", [True, False])
def test_a_damaged_part_is_refused_even_where_only_one_folder_holds_it(
    tmp_path, alone, halves, whole
):
    file = next((halves[1] / "parts").iterdir())
    content = file.read_bytes()
    file.write_bytes(content[:40] + bytes(60) + content[100:])
    folders = halves if alone else [whole, halves[1]]
    told = refused(tmp_path, folders, "A part of the study is damaged")
    assert str(file) in told


def test_a_part_with_too_few_rows_is_refused(tmp_path, halves):
    (halves[1] / "parts.sha256").unlink()  # which would tell that it was edited
    file = next((halves[1] / "parts").iterdir())
    pd.read_parquet(file).iloc[1:].to_parquet(file, index=False)
    refused(tmp_path, halves, "damaged.*4 rows instead of 5")


def test_one_folder_is_nothing_to_merge(tmp_path, halves):
    refused(tmp_path, halves[:1], "joins at least 2 folders; got 1")
    refused(tmp_path, [], "joins at least 2 folders; got 0")


def test_folders_that_are_no_studies_are_refused(tmp_path, halves):
    (tmp_path / "empty").mkdir()
    refused(tmp_path, [halves[0], tmp_path / "empty"], r"holds a study\.json; there is none in")
    refused(tmp_path, [tmp_path / "nowhere", halves[0]], "there is none in")
    (halves[1] / "study.json").write_text("{")
    refused(tmp_path, halves, "damaged or was not written by a study")


def test_a_target_that_holds_something_is_refused(tmp_path, halves):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("all of it")
    (tmp_path / "file").write_text("")
    for target in ("full", "file", "a"):
        refused(tmp_path, halves, "new or empty folder; .* is neither", target)
    (tmp_path / "new").mkdir()
    assert len(parts(merge(halves, tmp_path / "new"))) == 12


def test_a_target_that_cannot_be_written_is_named(tmp_path, halves):
    (tmp_path / "file").write_text("")
    refused(tmp_path, halves, "Results cannot be written to .*--out", "file/below")
