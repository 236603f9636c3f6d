import json
import os
import signal
import subprocess
import sys
import time

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from knownminds.validation.study import Batch, Cell, Study, collect, run

# The works below live in this file, which worker processes cannot import: send them by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


CELL = Cell("instrumental_learning", {"n_visits": 2}, "rescorla_wagner")


def draw(study, batch, threads):
    """One number per subject from its own address."""
    from knownminds.environments import session_stream

    rows = []
    for i in range(batch.first, batch.last):
        rng = session_stream(study.seed, study.cells[batch.cell].data_key, batch.replicate, i)
        rows.append({"subject": i, "status": "ok", "message": "", "value": rng.random()})
    return pd.DataFrame(rows)


def refuse(study, batch, threads):
    raise ValueError("the likelihood is not finite")


def refuse_a_few(study, batch, threads):
    rows = draw(study, batch, threads)
    if (rows["subject"] % 20 == 3).any():
        raise FloatingPointError("planted")
    return rows


def slow(study, batch, threads):
    time.sleep(0.15)
    return draw(study, batch, threads)


def numbers(rows):
    return rows.drop(columns="seconds")


def test_results_do_not_depend_on_workers_or_batches():
    one = run(Study("t", (CELL,), 30, 2, 5), draw, workers=1)
    two = run(Study("t", (CELL,), 30, 2, 5, batch=4), draw, workers=2)
    pd.testing.assert_frame_equal(numbers(one), numbers(two))
    assert one["value"].nunique() == 60
    other = run(Study("t", (CELL,), 30, 2, 6), draw, workers=1)
    assert not np.isin(other["value"], one["value"]).any()


def test_seeds_ignore_the_method_and_heed_the_design():
    key = CELL.data_key
    assert Cell(CELL.environment, CELL.settings, CELL.model, method="hierarchical").data_key == key
    assert Cell(CELL.environment, CELL.settings, CELL.model, sessions=3).data_key == key
    assert Cell(CELL.environment, {"n_visits": 3}, CELL.model).data_key != key
    assert Cell(CELL.environment, CELL.settings, "rescorla_wagner_dual").data_key != key
    assert Cell(CELL.environment, CELL.settings, CELL.model, {"alpha": 0.2}).data_key != key
    assert Cell(CELL.environment, CELL.settings, CELL.model, lapse=0.1).data_key != key


def test_a_hierarchical_replicate_is_one_batch():
    cell = Cell(CELL.environment, CELL.settings, CELL.model, method="hierarchical")
    assert list(Study("t", (cell,), 10, 2, batch=3).batches()) == [
        Batch(0, 0, 0, 10),
        Batch(0, 1, 0, 10),
    ]


def test_finished_batches_are_not_computed_again_and_broken_ones_are(tmp_path):
    study = Study("t", (CELL,), 20, batch=5)
    first = run(study, draw, folder=tmp_path, workers=1)
    parts = sorted((tmp_path / "parts").glob("*.parquet"))
    assert len(parts) == 4
    parts[0].write_bytes(parts[0].read_bytes()[:50])
    before = {part: part.stat().st_mtime_ns for part in parts[1:]}
    again = run(study, draw, folder=tmp_path, workers=1)
    pd.testing.assert_frame_equal(numbers(first), numbers(again))
    assert {part: part.stat().st_mtime_ns for part in parts[1:]} == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, "seed is 0, here 1"),
        ({"subjects": 21}, "subjects is 20, here 21"),
        ({"command": "u"}, "command is 't', here 'u'"),
        ({"cells": (Cell("instrumental_learning", {"n_visits": 3}, "rescorla_wagner"),)}, "n_vis"),
    ],
)
def test_a_folder_of_another_design_is_refused(tmp_path, change, named):
    run(Study("t", (CELL,), 20), draw, folder=tmp_path, workers=1)
    held = sorted(f.name for f in tmp_path.rglob("*"))
    other = {"command": "t", "cells": (CELL,), "subjects": 20} | change
    with pytest.raises(ValueError, match=named):
        run(Study(**other), draw, folder=tmp_path, workers=1)
    assert sorted(f.name for f in tmp_path.rglob("*")) == held


def test_a_folder_made_by_other_code_or_versions_is_refused(tmp_path):
    study = Study("t", (CELL,), 5)
    run(study, draw, folder=tmp_path, workers=1)
    file = tmp_path / "study.json"
    identity = json.loads(file.read_text())
    file.write_text(json.dumps(identity | {"source": "0"}))
    with pytest.raises(ValueError, match="another state of knownminds' code"):
        run(study, draw, folder=tmp_path, workers=1)
    changed = identity["versions"] | {"numpy": "1.0"}
    file.write_text(json.dumps(identity | {"versions": changed}))
    with pytest.raises(ValueError, match=r"numpy 1\.0 instead of"):
        run(study, draw, folder=tmp_path, workers=1)
    file.write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        run(study, draw, folder=tmp_path, workers=1)


def test_a_folder_with_strangers_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(ValueError, match=r"holds 'thesis\.txt'"):
        run(Study("t", (CELL,), 5), draw, folder=tmp_path, workers=1)
    assert [f.name for f in tmp_path.iterdir()] == ["thesis.txt"]


def test_planted_failures_are_rows_with_reasons_and_touch_no_other_row():
    clean = run(Study("t", (CELL,), 100, batch=10), draw, workers=1)
    rows = run(Study("t", (CELL,), 100, batch=10), refuse_a_few, workers=1)
    failed = rows["status"] == "failed"
    assert failed.sum() == 5
    assert set(rows.loc[failed, "message"]) == {"planted"}
    pd.testing.assert_frame_equal(
        numbers(rows[~failed]), numbers(clean[~failed]), check_dtype=False
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_a_deterministic_failure_stops_the_study_with_its_message(tmp_path, workers):
    study = Study("t", (CELL,), 100, batch=10)
    with pytest.raises(ValueError, match=r"failed alike.*likelihood is not finite"):
        run(study, refuse, folder=tmp_path, workers=workers)
    assert list((tmp_path / "parts").iterdir()) == []


def test_an_unfinished_study_is_not_read_as_finished(tmp_path):
    study = Study("t", (CELL,), 20, batch=5)
    run(study, draw, folder=tmp_path, workers=1)
    next((tmp_path / "parts").glob("*.parquet")).unlink()
    with pytest.raises(ValueError, match="not finished"):
        collect(study, tmp_path)


def test_without_a_folder_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run(Study("t", (CELL,), 5), draw, workers=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("counts", [{"subjects": 0}, {"replicates": 0}, {"seed": -1}])
def test_counts_are_checked(counts):
    with pytest.raises(ValueError, match=r"at least 1|from 0 on"):
        Study("t", (CELL,), **{"subjects": 5} | counts)


def test_progress_counts_what_is_done_already(tmp_path):
    study = Study("t", (CELL,), 20, batch=5)
    run(study, draw, folder=tmp_path, workers=1)
    seen = []
    run(study, draw, folder=tmp_path, workers=1, progress=lambda *at: seen.append(at))
    assert seen == [(4, 4)]


def test_kill_9_loses_only_the_batches_in_flight(tmp_path):
    folder = tmp_path / "study"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_study as t;"
        "t.run(t.Study('t', (t.CELL,), 60, batch=3), t.slow, folder=sys.argv[2], workers=2)"
    )
    here = os.path.dirname(__file__)  # noqa: PTH120
    environment = os.environ | {"PYTHONPATH": here}
    process = subprocess.Popen(
        [sys.executable, "-c", code, here, str(folder)], start_new_session=True, env=environment
    )
    parts = folder / "parts"
    deadline = time.monotonic() + 60
    while len(list(parts.glob("*.parquet"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)  # the whole group: parent and its workers
    process.wait()
    study = Study("t", (CELL,), 60, batch=3)
    done = {f: f.stat().st_mtime_ns for f in parts.glob("*.parquet")}
    assert 4 <= len(done) < 20
    resumed = run(study, draw, folder=folder, workers=1)
    assert {f: f.stat().st_mtime_ns for f in done} == done
    pd.testing.assert_frame_equal(numbers(resumed), numbers(run(study, draw, workers=1)))
