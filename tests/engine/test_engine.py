import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from knownminds.environments import make, session_stream
from knownminds.validation.engine import engine
from knownminds.validation.engine.cells import Cell
from knownminds.validation.engine.question import Running, ShareDone
from knownminds.validation.engine.study import Rows, Study

# The works below live in this file, which worker processes cannot import: send them by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

PLACE = "instrumental_learning"


def run(study, work, say, **running):
    return engine.run(study, work, say, Running(**running))


def a_study(subjects=60, replicates=1, seed=5, unit="subject", batch=5, **fields):
    cell = Cell(PLACE, {"n_visits": 2}, "rescorla_wagner", subjects=subjects, batch=batch, **fields)
    return Study("t", (cell,), replicates, seed, unit)


def draw(study, batch, threads):
    """One number per unit from its own address; the first of its subjects' in a replicate."""
    key = study.cells[batch.cell].data_key
    each = 1 if study.unit == "subject" else study.cells[batch.cell].subjects
    replicate, subject = (numbers[::each] for numbers in study.subjects_of(batch))
    values = [
        session_stream(study.seed, key, int(j), int(i)).random()
        for j, i in zip(replicate, subject, strict=True)
    ]
    return pd.DataFrame({"status": "ok", "message": "", "value": values})


def planted(study, batch, threads):
    """Fail in 5% of the units, each for a reason of its own."""
    if (np.arange(batch.first, batch.last) % 20 == 3).any():
        raise FloatingPointError(f"planted from {batch.first}")
    return draw(study, batch, threads)


def fail_alike(study, batch, threads):
    raise ValueError("the likelihood is not finite")


def bug(study, batch, threads):
    if batch.first >= 20:
        raise TypeError("a bug")
    return draw(study, batch, threads)


def where(study, batch, threads):
    """Say in which thread and process it runs, and how many threads it may use."""
    time.sleep(0.02)
    rows = draw(study, batch, threads)
    return rows.assign(
        thread=threading.get_ident(),
        process=os.getpid(),
        threads=-1 if threads is None else threads,
    )


def numbers(rows):
    """All rows without what is never the same twice."""
    return rows.frame.drop(columns="seconds")


def all_rows(rows):
    return rows.frame


def parts_of(folder):
    return {file: file.stat().st_mtime_ns for file in sorted((folder / "parts").iterdir())}


def same(a, b):
    pd.testing.assert_frame_equal(a, b, check_exact=True)


# The numbers depend on nothing but the study


@pytest.mark.parametrize("unit", ["subject", "replicate"])
def test_results_depend_neither_on_workers_nor_backend_nor_batches(unit):
    def study(batch):
        return a_study(6, 10, unit=unit, batch=batch)

    one = run(study(7), draw, numbers, workers=1)
    assert one["value"].nunique() == len(one) == (60 if unit == "subject" else 10)
    for batch, how in [
        (512, {"workers": 1}),
        (2, {"workers": 1}),
        (3, {"workers": 2, "backend": "threads"}),
        (4, {"workers": 2, "backend": "processes"}),
    ]:
        same(run(study(batch), draw, numbers, **how), one)
    other = run(a_study(6, 10, seed=6, unit=unit), draw, numbers, workers=1)
    assert not np.isin(other["value"], one["value"]).any()


# Folders and resuming


def test_a_damaged_part_is_named_and_computed_again_once_it_is_deleted(tmp_path):
    first = run(a_study(20), draw, numbers, out=tmp_path, workers=1)
    part, *others = parts_of(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in others}
    content = part.read_bytes()
    value = next(v for v in first["value"] if np.float64(v).tobytes() in content)
    at = content.index(np.float64(value).tobytes())
    for damaged in (content[:-50], content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]):
        part.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"damaged.*{part.name}.*Delete it"):
            run(a_study(20), draw, numbers, out=tmp_path, workers=1)
    part.unlink()
    assert Rows.read(tmp_path).missing == 5
    same(run(a_study(20), draw, numbers, out=tmp_path, workers=1), first)
    assert {file: file.stat().st_mtime_ns for file in others} == before


def test_a_part_that_was_edited_by_hand_is_noticed(tmp_path):
    run(a_study(20), draw, numbers, out=tmp_path, workers=1)
    part = next(iter(parts_of(tmp_path)))
    written = pq.read_table(part)
    rows = written.to_pandas()
    rows.loc[3, "value"] += 1e-9  # a whole and well-formed file, with another number
    rows.to_parquet(part, index=False)
    with pytest.raises(ValueError, match=f"edited.*{part.name}.*Delete it"):
        Rows.read(tmp_path)
    for column in ({"value": rows["value"]}, {"message": ["", "", "no", "", ""]}):
        edited = pa.table(
            {**dict(zip(written.column_names, written.columns, strict=True)), **column}
        )
        pq.write_table(edited.replace_schema_metadata(written.schema.metadata), part)
        with pytest.raises(ValueError, match=f"edited.*{part.name}.*Delete it"):
            Rows.read(tmp_path)
    part.unlink()
    assert len(run(a_study(20), draw, numbers, out=tmp_path, workers=1)) == 20


def test_interrupted_writing_leaves_no_part_and_no_claim(tmp_path, monkeypatch):
    whole = run(a_study(20), draw, numbers, workers=1)
    honest = pq.write_table

    def write_half(table, file, **settings):
        honest(table, file, **settings)
        file.write_bytes(file.read_bytes()[:100])
        raise KeyboardInterrupt

    def write_without_end(self, target):
        raise KeyboardInterrupt

    for owner, method, half in [
        (Path, "replace", write_without_end),
        (pq, "write_table", write_half),
    ]:
        folder = tmp_path / method
        with monkeypatch.context() as patched:
            patched.setattr(owner, method, half)
            with pytest.raises(KeyboardInterrupt):
                run(a_study(20), draw, numbers, out=folder, workers=1)
        # What was begun is hidden, and bars nothing.
        assert not list(folder.rglob("*.parquet"))
        assert (folder / "study.json").exists() == (method == "write_table")
        same(run(a_study(20), draw, numbers, out=folder, workers=1), whole)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, "seed is 5, here 1"),
        ({"subjects": 21}, "subjects is 20, here 21"),
        ({"truth": {"alpha": 0.5}}, r"alpha is None, here 0\.5"),
    ],
)
def test_a_folder_of_another_design_is_refused(tmp_path, change, named):
    run(a_study(20), draw, numbers, out=tmp_path, workers=1)
    before = parts_of(tmp_path)
    with pytest.raises(ValueError, match=named):
        run(a_study(**{"subjects": 20} | change), draw, numbers, out=tmp_path, workers=1)
    assert parts_of(tmp_path) == before


def test_other_versions_of_packages_are_noted_and_another_study_is_refused(tmp_path):
    run(a_study(5), draw, numbers, out=tmp_path, workers=1)
    file = tmp_path / "study.json"
    content = json.loads(file.read_text())
    (used,) = content["versions"]
    older = {**used, "numpy": "1.0"}
    file.write_text(json.dumps(content | {"versions": [older]}))
    rows = run(a_study(5), draw, lambda rows: rows, out=tmp_path, workers=1)
    assert rows.versions == (older, used)
    assert "different versions of numpy;" in rows.result("t").notes[0]
    for change, named in [({"question": {"most": 9}}, "most is 9"), ({"command": "u"}, "'u'")]:
        file.write_text(json.dumps(content | change))
        with pytest.raises(ValueError, match=named):
            run(a_study(5), draw, numbers, out=tmp_path, workers=1)
    file.write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        run(a_study(5), draw, numbers, out=tmp_path, workers=1)


def test_a_full_disk_is_said_to_be_full(tmp_path, monkeypatch):
    def full(*args, **settings):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(ValueError, match=r"cannot be written to .*: No space left on device"):
        run(a_study(5), draw, numbers, out=tmp_path, workers=1)


# Failures


@pytest.mark.parametrize("unit", ["subject", "replicate"])
@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 2, "backend": "threads"}])
def test_planted_failures_show_up_in_the_counts_and_nowhere_else(unit, how):
    study = a_study(100, unit=unit, batch=10) if unit == "subject" else a_study(2, 100, unit=unit)
    clean = run(study, draw, numbers, workers=1)
    rows = run(study, planted, numbers, **how)
    failed = rows["status"] == "failed"
    assert np.flatnonzero(failed).tolist() == [3, 23, 43, 63, 83]
    reasons = [f"planted from {unit}" for unit in (3, 23, 43, 63, 83)]
    assert rows.loc[failed, "message"].tolist() == reasons
    assert rows.loc[failed, "value"].isna().all()
    same(rows[~failed], clean[~failed])
    address = [c for c in rows if c in ("cell", "replicate", "subject")]
    same(rows[address], clean[address])


@pytest.mark.parametrize(
    ("unit", "how"),
    [
        ("subject", {}),
        ("subject", {"workers": 1}),
        ("replicate", {"workers": 1}),
        ("replicate", {"workers": 2, "backend": "threads"}),
        ("replicate", {"workers": 2}),
    ],
)
def test_the_same_failure_everywhere_stops_the_study_and_leaves_no_parts(tmp_path, unit, how):
    study = a_study(5, 50, unit=unit, batch=5)
    with pytest.raises(ValueError, match=r"failed alike.*: the likelihood is not finite$"):
        run(study, fail_alike, numbers, out=tmp_path, **how)
    assert list((tmp_path / "parts").iterdir()) == []
    # What was wrong can be put right and the same folder used.
    assert len(run(study, draw, numbers, out=tmp_path, workers=1)) == study.units(0)


@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 2, "backend": "threads"}])
def test_a_bug_is_not_swallowed_and_what_was_done_is_kept(tmp_path, how):
    with pytest.raises(TypeError, match="a bug"):
        run(a_study(), bug, numbers, out=tmp_path, **how)
    before = parts_of(tmp_path)
    if how["workers"] == 1:
        assert len(before) == 4
    same(
        run(a_study(), draw, numbers, out=tmp_path, workers=1),
        run(a_study(), draw, numbers, workers=1),
    )
    assert before.items() <= parts_of(tmp_path).items()


# Shares


def test_shares_fill_one_folder_and_the_last_to_end_has_the_result(tmp_path):
    done = 0
    for share in ("1/3", "2/3"):
        with pytest.raises(ShareDone, match=r"^Share"):
            run(a_study(), draw, numbers, out=tmp_path, share=share, workers=1)
        assert len(parts_of(tmp_path)) == done + 4
        done += 4
    rows = run(a_study(), draw, numbers, out=tmp_path, share="3/3", workers=1)
    same(rows, run(a_study(), draw, numbers, workers=1))


# A dask cluster


class Cluster:
    """A scheduler and two workers, each a process started as a person would start it."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        common = ["--host", "127.0.0.1", "--no-dashboard"]
        self.processes = [
            self._start("dask_scheduler", "--port", "0", "--scheduler-file", self.file, *common)
        ]
        while not self.file.exists() or not self.file.read_text().strip():
            time.sleep(0.05)
        self.scheduler_address = json.loads(self.file.read_text())["address"]
        one = ["--nthreads", "1", "--no-nanny", "--local-directory", folder]
        self.processes += [
            self._start("dask_worker", self.scheduler_address, *one, *common) for _ in range(2)
        ]

    @staticmethod
    def _start(module, *words):
        code = f"from distributed.cli.{module} import main; main()"
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, words)], stderr=subprocess.DEVNULL, **quiet
        )

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    distributed = pytest.importorskip("distributed")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        with distributed.Client(made.scheduler_address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield made
    finally:
        made.close()


def on(cluster):
    return {"backend": "dask", "scheduler": cluster.scheduler_address}


@pytest.mark.long
def test_a_dask_cluster_gives_the_same_numbers(cluster, tmp_path):
    one = run(a_study(30), draw, numbers, workers=1)
    same(run(a_study(30), draw, numbers, out=tmp_path, **on(cluster)), one)
    rows = run(a_study(30), where, all_rows, **on(cluster))
    assert len(set(rows["process"])) == 2
    assert os.getpid() not in set(rows["process"])
    assert set(rows["threads"]) == {1}
    # Begun there, it goes on here.
    next(iter(parts_of(tmp_path))).unlink()
    same(run(a_study(30), draw, numbers, out=tmp_path, workers=1), one)


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ("instrumental_learning", 255881249543404733),
        ("two_step", 41248839559236885),
        ("collider", 343562642916221866),
    ],
)
def test_the_streams_of_a_study_stay(place, key):
    """Else every number that a study printed from a seed would be another one."""
    settings = dict(make(place).settings)
    assert Cell(place, settings, "rescorla_wagner").data_key == key
    if "thought_words" in settings:
        limited = Cell(place, {**settings, "thought_words": 100}, "rescorla_wagner")
        assert limited.data_key != key
