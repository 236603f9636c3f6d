import hashlib
import json
import shlex
import shutil
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from knownminds.validation.engine.study import (
    Batch,
    Cell,
    Rows,
    Study,
    difference,
    finished_parts,
    note_digest,
    versions,
)

PLACE = "instrumental_learning"
MODEL = "rescorla_wagner"


def cell(**fields):
    return Cell(**{"environment": PLACE, "settings": {"n_visits": 2}, "model": MODEL} | fields)


def write(study, folder, failed=()):
    """Write the parts of a study: one number per unit, its row in the study's order."""
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    row = 0
    for batch in study.batches():
        frame = pd.DataFrame({"cell": batch.cell, "unit": range(batch.first, batch.last)})
        frame["value"] = np.arange(row, row + len(batch), dtype=float)
        row += len(batch)
        if batch in failed:
            frame = frame.drop(columns="value")
        file = folder / "parts" / study.part_name(batch)
        frame.to_parquet(file, index=False, write_page_checksum=True)
    (folder / "study.json").write_text(json.dumps(study.identity()))
    return Rows(study, folder, versions())


# Seeds by content


def test_seeds_ignore_the_method_and_heed_the_design():
    key = cell().data_key
    for same in (
        cell(method="hierarchical"),
        cell(options={"fixed": {"kappa": 0.0}}),
        cell(sessions=3),
        cell(subjects=50),
        cell(batch=7),
    ):
        assert same.data_key == key
    others = [
        cell(settings={"n_visits": 3}),
        cell(model="rescorla_wagner_dual"),
        cell(truth={"alpha": 0.2}),
        cell(truth={"alpha": 0.3}),
        cell(lapse=0.1),
        cell(law={"group": "hyperprior"}),
    ]
    assert len({key, *(other.data_key for other in others)}) == 1 + len(others)


def test_the_order_of_settings_is_no_other_design():
    a = cell(settings={"n_visits": 2, "history": "chat"}, truth={"alpha": 0.1, "beta": 2.0})
    b = cell(settings={"history": "chat", "n_visits": 2}, truth={"beta": 2.0, "alpha": 0.1})
    assert (a.data_key, a.content_key) == (b.data_key, b.content_key)


def test_everything_but_the_batch_size_tells_contents_apart():
    key = cell().content_key
    assert cell(batch=7).content_key == key
    others = [
        cell(method="mle"),
        cell(options={"intervals": "laplace"}),
        cell(sessions=2),
        cell(subjects=2),
        cell(lapse=0.1),
    ]
    assert len({key, *(other.content_key for other in others)}) == 1 + len(others)


def test_a_data_key_stays_what_it_is():
    # Folders made today are read tomorrow: the address of all their draws.
    text = f'["{PLACE}", {{"n_visits": 2}}, "{MODEL}", {{}}, 0.0]'
    assert cell().data_key == int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)


def test_parts_are_named_by_all_that_determines_their_numbers():
    study = Study("t", (cell(subjects=20, batch=5),), 2, seed=3)
    batch = Batch(0, 5, 10)
    name = study.part_name(batch)
    others = [
        Study("u", study.cells, 2, 3).part_name(batch),
        Study("t", study.cells, 2, 4).part_name(batch),
        Study("t", study.cells, 2, 3, "replicate").part_name(batch),
        Study("t", (cell(subjects=20, lapse=0.1),), 2, 3).part_name(batch),
        study.part_name(Batch(0, 0, 5)),
        study.part_name(Batch(0, 5, 11)),
    ]
    assert len({name, *others}) == 1 + len(others)
    assert Study("t", (cell(subjects=20, batch=5),), 9, seed=3).part_name(batch) == name


# Units and batches


@pytest.mark.parametrize("unit", ["subject", "replicate"])
@pytest.mark.parametrize("batch", [1, 4, 512])
def test_batches_go_once_through_every_unit(unit, batch):
    cells = (cell(subjects=3, batch=batch), cell(subjects=5, batch=batch, lapse=0.1))
    study = Study("t", cells, 4, unit=unit)
    batches = list(study.batches())
    assert len(batches) == study.n_batches
    for c in range(2):
        units = [u for b in batches if b.cell == c for u in range(b.first, b.last)]
        assert units == list(range(study.units(c)))
    assert study.units(1) == (20 if unit == "subject" else 4)
    assert all(1 <= len(b) <= batch for b in batches)


def test_subjects_are_counted_within_their_replicate():
    one = Study("t", (cell(subjects=3),), 4)
    replicate, subject = one.subjects_of(Batch(0, 2, 7))
    assert replicate.tolist() == [0, 1, 1, 1, 2]
    assert subject.tolist() == [2, 0, 1, 2, 0]
    whole = Study("t", (cell(subjects=3),), 4, unit="replicate")
    replicate, subject = whole.subjects_of(Batch(0, 1, 3))
    assert replicate.tolist() == [1, 1, 1, 2, 2, 2]
    assert subject.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"replicates": 0}, "replicates is at least 1; got 0"),
        ({"cells": (cell(), cell(subjects=0))}, "subjects is at least 1; got 0"),
        ({"cells": (cell(sessions=0),)}, "sessions is at least 1; got 0"),
        ({"cells": (cell(batch=0),)}, "batch is at least 1; got 0"),
        ({"seed": -1}, "from 0 on; got -1"),
    ],
)
def test_counts_are_checked(change, named):
    with pytest.raises(ValueError, match=named):
        Study(**{"command": "t", "cells": (cell(),)} | change)


# Rows


def test_rows_come_in_the_order_of_the_study(tmp_path):
    study = Study("t", (cell(subjects=7, batch=3), cell(subjects=5, batch=2, lapse=0.1)), 2)
    rows = write(study, tmp_path)
    frame = rows.frame()
    assert frame["value"].tolist() == list(range(24))
    assert frame["cell"].tolist() == [0] * 14 + [1] * 10
    assert rows.frame(cell=1)["value"].tolist() == list(range(14, 24))
    tables = list(rows.tables(["value"], cell=0))
    assert [len(t) for t in tables] == [3, 3, 3, 3, 2]
    assert all(list(t) == ["value"] for t in tables)


@pytest.mark.parametrize("batch", [1, 3, 5, 100])
@pytest.mark.parametrize(("most", "step"), [(1, 53), (7, 8), (26, 3), (27, 2), (52, 2), (53, 1)])
def test_rows_are_thinned_evenly_whatever_the_parts(tmp_path, batch, most, step):
    rows = write(Study("t", (cell(subjects=53, batch=batch),)), tmp_path)
    frame = rows.frame(most=most)
    assert frame["value"].tolist() == list(range(0, 53, step))
    assert len(frame) <= most
    assert frame.index.tolist() == list(range(len(frame)))


def test_columns_that_a_failed_part_lacks_are_missing_not_an_error(tmp_path):
    study = Study("t", (cell(subjects=6, batch=2),))
    rows = write(study, tmp_path, failed=[Batch(0, 2, 4)])
    tables = list(rows.tables(["unit", "value"]))
    assert [list(t) for t in tables] == [["unit", "value"], ["unit"], ["unit", "value"]]
    values = rows.frame(["unit", "value"])["value"]
    assert np.array_equal(values, [0, 1, np.nan, np.nan, 4, 5], equal_nan=True)


def test_an_unfinished_study_is_not_read_as_finished(tmp_path):
    study = Study("t", (cell(subjects=6, batch=2),))
    rows = write(study, tmp_path)
    missing = study.part_name(Batch(0, 2, 4))
    (tmp_path / "parts" / missing).unlink()
    with pytest.raises(ValueError, match=f"not finished: part {missing} is missing.*same command"):
        rows.frame()


def damage(file, how):
    content = file.read_bytes()
    if how == "cut short":
        file.write_bytes(content[:100])
    elif how == "footer only":
        file.write_bytes(b"PAR1" + bytes(60) + b"PAR1")
    elif how == "one bit flipped":
        column = pq.read_metadata(file).row_group(0).column(2)
        at = column.dictionary_page_offset + column.total_compressed_size // 2
        file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    elif how == "too few rows":
        pd.read_parquet(file).iloc[1:].to_parquet(file, index=False)
    elif how == "no table":
        file.write_bytes(b"")


@pytest.mark.parametrize(
    ("how", "seen"),
    [
        ("cut short", True),
        ("no table", True),
        ("footer only", False),
        ("one bit flipped", False),
        ("too few rows", False),
    ],
)
def test_a_damaged_part_is_named_with_the_remedy(tmp_path, how, seen):
    study = Study("t", (cell(subjects=600, batch=200),))
    rows = write(study, tmp_path)
    assert len(finished_parts(tmp_path / "parts")) == 3
    file = tmp_path / "parts" / study.part_name(Batch(0, 200, 400))
    damage(file, how)
    assert (file.name not in finished_parts(tmp_path / "parts")) == seen
    with pytest.raises(ValueError, match=r"damaged.*Delete it and run the same command") as told:
        rows.frame()
    assert file.name in str(told.value)


def test_what_is_being_written_is_no_finished_part(tmp_path):
    rows = write(Study("t", (cell(subjects=6, batch=2),)), tmp_path)
    file = next((tmp_path / "parts").iterdir())
    shutil.copy(file, tmp_path / "parts" / ".0123.77")
    (tmp_path / "parts" / "notes.txt").write_text("PAR1 and PAR1")
    assert len(finished_parts(tmp_path / "parts")) == 3
    assert len(rows.frame()) == 6
    assert finished_parts(tmp_path / "nowhere") == set()


def test_a_part_that_was_edited_by_hand_is_noticed(tmp_path):
    study = Study("recover", (cell(subjects=6, batch=2),))
    rows = write(study, tmp_path)
    parts = tmp_path / "parts"
    for part in sorted(parts.iterdir()):
        note_digest(tmp_path, part.name, part.read_bytes())
    assert len(rows.frame()) == 6
    file = parts / study.part_name(Batch(0, 2, 4))
    table = pd.read_parquet(file)
    table[table.columns[-1]] = 0.5  # a whole and well-formed file, with better numbers
    table.to_parquet(file, index=False, write_page_checksum=True)
    with pytest.raises(ValueError, match=r"not those that the study has written.*Delete it"):
        Rows(study, tmp_path, {}).frame()


# Identity


def test_a_study_is_read_back_as_it_was(tmp_path):
    cells = (cell(subjects=3, truth={"alpha": 1 / 3}, law={"group": "hyperprior"}), cell(batch=9))
    study = Study("recover", cells, 2, 7, "replicate", {"trials": 8, "set": {"alpha": 1 / 3}})
    write(study, tmp_path)
    again, identity = Study.read(tmp_path)
    assert again == study
    assert [c.data_key for c in again.cells] == [c.data_key for c in cells]
    assert [again.part_name(b) for b in again.batches()] == [
        study.part_name(b) for b in study.batches()
    ]
    assert identity["versions"] == versions()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "{}",
        '{"command": "t"}',
        b"\xff\xfe\x00",
    ],
)
def test_a_damaged_study_file_is_one_clear_sentence(tmp_path, text):
    file = tmp_path / "study.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=r"study\.json is damaged or was not written by a study"):
        Study.read(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cells", []),
        ("cells", [3]),
        ("cells", [{"environment": PLACE}]),
        ("cells", [{"surprise": 1}]),
        ("replicates", "many"),
        ("replicates", 0),
        ("versions", 3),
    ],
)
def test_a_study_file_with_nonsense_in_it_is_one_clear_sentence(tmp_path, key, value):
    write(Study("t", (cell(),)), tmp_path)
    file = tmp_path / "study.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(ValueError, match="damaged or was not written by a study"):
        Study.read(tmp_path)


def test_a_folder_without_a_study_is_said_to_have_none(tmp_path):
    with pytest.raises(ValueError, match=r"holds a study\.json; there is none in"):
        Study.read(tmp_path)
    with pytest.raises(ValueError, match="there is none in"):
        Study.read(tmp_path / "nowhere")


def test_differences_are_named_to_the_point():
    a, b = (
        Study("t", (cell(settings={"n_visits": n, "history": "chat"}),), seed=n).identity()
        for n in (2, 3)
    )
    assert difference("seed", a["seed"], b["seed"]) == (
        "a study of another design (seed is 2, here 3)"
    )
    assert difference("cells", a["cells"], b["cells"]) == (
        "a study of another design (n_visits is 2, here 3)"
    )
    assert difference("cells", a["cells"], b["cells"] * 2, "there") == (
        "a study of another design (number of cells is 1, there 2)"
    )
    assert difference("question", {"most": 9}, {"most": None}) == (
        "another study (most is 9, here None)"
    )
    assert difference("versions", {"numpy": "1.0", "old": "2"}, {"numpy": "2.0"}) == (
        "a study made with numpy 1.0 instead of 2.0, old 2 instead of None"
    )
    assert difference("versions", None, {"numpy": "2.0"}).startswith("a study of another design")


# The command line that computes it again


def test_the_command_line_holds_every_answer_of_the_question():
    third = 1 / 3
    study = Study(
        "recover",
        (cell(),),
        question={
            "subject_matter": PLACE,
            "model": MODEL,
            "trials": 8,
            "seed": 0,
            "set": {"alpha": third, "history": "chat", "beta": 3.0},
            "metric": ["optimism bias", "regret"],
            "lapse": None,
            "fit_lapse": True,
            "laplace": False,
            "fix": {},
        },
    )
    words = shlex.split(study.command_line())
    assert words[:3] == ["knownminds", "recover", PLACE]
    pairs = dict(pairwise(words))
    assert (pairs["--model"], pairs["--trials"], pairs["--seed"]) == (MODEL, "8", "0")
    told = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    assert told == [f"alpha={third!r}", "history=chat", "beta=3"]
    # All digits: a truth that is rounded is another design with other draws.
    assert float(told[0].partition("=")[2]) == third
    assert [words[i + 1] for i, word in enumerate(words) if word == "--metric"] == [
        "optimism bias",
        "regret",
    ]
    assert "--fit-lapse" in words
    assert not {"--lapse", "--laplace", "--fix"} & set(words)
