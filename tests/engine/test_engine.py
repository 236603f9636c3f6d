import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from knownminds.environments import make, session_stream
from knownminds.validation.design import best_design as best_designs
from knownminds.validation.design.best_design import best_design
from knownminds.validation.engine import engine as running
from knownminds.validation.engine.engine import ShareDone, read, run
from knownminds.validation.engine.study import Batch, Cell, Study
from knownminds.validation.recovery import parameter_recovery
from knownminds.validation.recovery.parameter_recovery import recover

# The works below live in this file, which worker processes cannot import: send them by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

PLACE = "instrumental_learning"


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


def slow(study, batch, threads):
    time.sleep(0.3)
    return draw(study, batch, threads)


def planted(study, batch, threads):
    """Fail in 5% of the units."""
    if (np.arange(batch.first, batch.last) % 20 == 3).any():
        raise FloatingPointError("planted")
    return draw(study, batch, threads)


def one_in_each_fails(study, batch, threads):
    if batch.first % 5 == 0:
        raise FloatingPointError("planted")
    return draw(study, batch, threads)


def fail_alike(study, batch, threads):
    raise ValueError("the likelihood is not finite")


def fail_each_in_its_own_way(study, batch, threads):
    raise ValueError(f"unit {batch.first} is odd")


def fail_at_the_end(study, batch, threads):
    if batch.last == study.units(batch.cell):
        raise ValueError("the last one is odd")
    return draw(study, batch, threads)


def bug(study, batch, threads):
    if batch.first >= 20:
        raise TypeError("a bug")
    return draw(study, batch, threads)


def file_bug(study, batch, threads):
    raise FileNotFoundError(2, "No such file or directory", "priors.csv")


def one_row_short(study, batch, threads):
    return draw(study, batch, threads).iloc[1:]


def where(study, batch, threads):
    """Say in which thread and process it runs, and how many threads it may use."""
    time.sleep(0.02)
    rows = draw(study, batch, threads)
    return rows.assign(
        thread=threading.get_ident(),
        process=os.getpid(),
        threads=-1 if threads is None else threads,
    )


def never(study, batch, threads):
    raise AssertionError("this batch is finished")


def numbers(rows):
    """All rows without what is never the same twice."""
    return rows.frame().drop(columns="seconds")


def all_rows(rows):
    return rows.frame()


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
        (4, {"backend": "threads"}),
        (4, {}),
    ]:
        same(run(study(batch), draw, numbers, **how), one)
    other = run(a_study(6, 10, seed=6, unit=unit), draw, numbers, workers=1)
    assert not np.isin(other["value"], one["value"]).any()


def test_rows_say_what_they_are_about():
    cells = a_study(3, batch=2).cells + a_study(3, lapse=0.1, batch=4).cells
    rows = run(Study("t", cells, 2), draw, all_rows, workers=1)
    assert list(rows)[:3] == ["cell", "replicate", "subject"]
    assert rows["cell"].tolist() == [0] * 6 + [1] * 6
    assert rows["replicate"].tolist() == [0, 0, 0, 1, 1, 1] * 2
    assert rows["subject"].tolist() == [0, 1, 2] * 4
    assert (rows["seconds"] > 0).all()
    rows = run(Study("t", cells, 2, unit="replicate"), draw, all_rows, workers=1)
    assert rows[["cell", "replicate"]].to_numpy().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert "subject" not in rows


def test_a_longer_study_begins_with_the_same_rows():
    short = run(a_study(10, 2), draw, numbers, workers=1)
    more_replicates = run(a_study(10, 3), draw, numbers, workers=1)
    same(more_replicates.iloc[:20], short)
    more_subjects = run(a_study(12, 2), draw, numbers, workers=1)
    same(more_subjects[more_subjects["subject"] < 10].reset_index(drop=True), short)


def test_one_worker_uses_one_thread_and_none_may_use_all():
    study = a_study(6, batch=2)
    one = run(study, where, all_rows, workers=1)
    assert set(one["threads"]) == {1}
    assert set(one["process"]) == {os.getpid()}
    two = run(study, where, all_rows, workers=2, backend="threads")
    assert set(two["threads"]) == {1}
    assert set(two["process"]) == {os.getpid()}
    assert threading.get_ident() not in set(two["thread"])
    apart = run(study, where, all_rows, workers=2, backend="processes")
    assert os.getpid() not in set(apart["process"])
    # The first batch, which is timed, may use all cores.
    assert run(study, where, all_rows)["threads"].iloc[0] == -1


def test_group_models_stay_in_one_thread_unless_workers_are_asked_for():
    study = a_study(2, 4, batch=2, method="hierarchical")
    rows = run(study, where, all_rows, backend="threads")
    assert set(rows["thread"]) == {threading.get_ident()}
    alone = run(a_study(2, 4, batch=2), where, all_rows, backend="threads")
    assert (set(alone["thread"]) != {threading.get_ident()}) == ((os.cpu_count() or 1) > 1)


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ({"workers": 0}, "at least 1; got 0"),
        ({"backend": "thread"}, "no backend named 'thread'. Nearest: threads"),
        ({"backend": "dask"}, "named by both.*scheduler None"),
        ({"scheduler": "tcp://127.0.0.1:8786"}, "named by both.*backend None"),
        (
            {"backend": "processes", "scheduler": "tcp://127.0.0.1:8786"},
            "named by both.*backend 'processes'",
        ),
        ({"share": "1/2", "out": None}, "kept in a folder; name one with --out"),
        ({"share": "0/2"}, "reads 2/3.*got '0/2'"),
        ({"share": "3/2"}, "got '3/2'"),
        ({"share": "1"}, "got '1'"),
        ({"share": "1/"}, "got '1/'"),
        ({"share": "a/b"}, "got 'a/b'"),
        ({"share": "-1/2"}, "got '-1/2'"),
    ],
)
def test_how_it_is_run_is_checked_before_anything_is_written(tmp_path, how, named):
    with pytest.raises(ValueError, match=named):
        run(a_study(), draw, numbers, **{"out": tmp_path / "s"} | how)
    assert list(tmp_path.iterdir()) == []


# Folders and resuming


def test_without_a_folder_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run(a_study(), draw, numbers, workers=1)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="a bug"):
        run(a_study(), bug, numbers, workers=1)
    assert list(tmp_path.iterdir()) == []


def test_finished_batches_are_not_computed_again(tmp_path):
    first = run(a_study(20), draw, numbers, out=tmp_path, workers=1)
    before = parts_of(tmp_path)
    assert len(before) == 4
    same(run(a_study(20), never, numbers, out=tmp_path), first)
    same(read(tmp_path, "t", numbers), first)
    assert parts_of(tmp_path) == before


def test_a_part_cut_short_is_computed_again_and_only_this_one(tmp_path):
    first = run(a_study(20), draw, numbers, out=tmp_path, workers=1)
    cut, *others = parts_of(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in others}
    cut.write_bytes(cut.read_bytes()[:-50])
    same(run(a_study(20), draw, numbers, out=tmp_path, workers=1), first)
    assert {file: file.stat().st_mtime_ns for file in others} == before


def test_a_part_with_wrong_rows_is_an_error_and_not_a_result(tmp_path):
    first = run(a_study(20), draw, numbers, out=tmp_path, workers=1)
    wrong = next(iter(parts_of(tmp_path)))
    pd.read_parquet(wrong).iloc[1:].to_parquet(wrong, index=False)
    (tmp_path / "parts.sha256").unlink()  # as in a folder of an earlier version
    for again in (
        lambda: run(a_study(20), draw, numbers, out=tmp_path, workers=1),
        lambda: read(tmp_path, "t", numbers),
    ):
        with pytest.raises(ValueError, match=r"damaged.*4 rows instead of 5.*Delete it") as told:
            again()
        assert str(wrong) in str(told.value)
    wrong.unlink()  # the remedy that the message names
    same(run(a_study(20), draw, numbers, out=tmp_path, workers=1), first)


def test_parts_carry_checksums(tmp_path):
    run(a_study(20, batch=20), draw, numbers, out=tmp_path, workers=1)
    (part,) = parts_of(tmp_path)
    value = np.float64(read(tmp_path, "t", numbers)["value"][7]).tobytes()
    content = part.read_bytes()
    at = content.index(value)
    part.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(ValueError, match="damaged"):
        read(tmp_path, "t", numbers)


def test_kill_9_loses_only_the_batches_in_flight(tmp_path):
    folder = tmp_path / "study"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from engine import test_engine as t;"
        "t.run(t.a_study(batch=3), t.slow, t.numbers, out=sys.argv[2], workers=2,"
        " backend='processes')"
    )
    here = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", code, here, str(folder)],
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": here},
    )
    parts = folder / "parts"
    deadline = time.monotonic() + 240  # a machine with much else to do
    while len(list(parts.glob("*.parquet"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)  # the whole group: parent and its workers
    process.wait()
    done = {file: file.stat().st_mtime_ns for file in parts.glob("*.parquet")}
    assert 4 <= len(done) < 20
    with pytest.raises(ValueError, match="not finished"):
        read(folder, "t", numbers)
    resumed = run(a_study(batch=3), draw, numbers, out=folder, workers=1)
    assert {file: file.stat().st_mtime_ns for file in done} == done
    assert len(list(parts.glob("*.parquet"))) == 20
    same(resumed, run(a_study(batch=3), draw, numbers, workers=1))


def test_interrupted_writing_leaves_no_part_and_no_claim(tmp_path, monkeypatch):
    whole = run(a_study(20), draw, numbers, workers=1)
    honest = pd.DataFrame.to_parquet

    def write_half(self, file, **settings):
        honest(self, file, **settings)
        file.write_bytes(file.read_bytes()[:100])
        raise KeyboardInterrupt

    def write_without_end(self, target):
        raise KeyboardInterrupt

    for owner, method, half in [
        (Path, "replace", write_without_end),
        (pd.DataFrame, "to_parquet", write_half),
    ]:
        folder = tmp_path / method
        with monkeypatch.context() as patched:
            patched.setattr(owner, method, half)
            with pytest.raises(KeyboardInterrupt):
                run(a_study(20), draw, numbers, out=folder, workers=1)
        # What was begun is hidden, and bars nothing.
        assert not list(folder.rglob("*.parquet"))
        assert (folder / "study.json").exists() == (method == "to_parquet")
        same(run(a_study(20), draw, numbers, out=folder, workers=1), whole)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, r"another design \(seed is 5, here 1\)"),
        ({"subjects": 21}, r"another design \(subjects is 20, here 21\)"),
        ({"replicates": 2}, r"another design \(replicates is 1, here 2\)"),
        ({"unit": "replicate"}, r"another design \(unit is 'subject', here 'replicate'\)"),
        ({"truth": {"alpha": 0.5}}, r"another design \(alpha is None, here 0\.5\)"),
        ({"batch": 10}, r"another design \(batch is 5, here 10\)"),
    ],
)
def test_a_folder_of_another_design_is_refused(tmp_path, change, named):
    run(a_study(20), draw, numbers, out=tmp_path, workers=1)
    before = parts_of(tmp_path)
    with pytest.raises(ValueError, match=rf"The folder .* holds a study of {named}\. Name"):
        run(a_study(**{"subjects": 20} | change), draw, numbers, out=tmp_path, workers=1)
    assert parts_of(tmp_path) == before


def test_a_folder_made_by_other_code_or_versions_is_refused(tmp_path):
    run(a_study(5), draw, numbers, out=tmp_path, workers=1)
    file = tmp_path / "study.json"
    identity = json.loads(file.read_text())
    for change, named in [
        (
            {"source": "0"},
            "holds a study made with another state of the code, knownminds' or your own",
        ),
        (
            {"versions": identity["versions"] | {"numpy": "1.0"}},
            r"holds a study made with numpy 1\.0 instead of",
        ),
        ({"question": {"most": 9}}, r"holds another study \(most is 9, here None\)"),
        ({"command": "u"}, r"another design \(command is 'u', here 't'\)"),
    ]:
        file.write_text(json.dumps(identity | change))
        with pytest.raises(ValueError, match=named):
            run(a_study(5), draw, numbers, out=tmp_path, workers=1)
    file.write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        run(a_study(5), draw, numbers, out=tmp_path, workers=1)


def test_a_folder_with_strangers_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(ValueError, match=r"folder of its own; .* holds 'thesis\.txt'"):
        run(a_study(5), draw, numbers, out=tmp_path, workers=1)
    assert [f.name for f in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_of_another_command_is_not_read(tmp_path):
    run(a_study(5), draw, numbers, out=tmp_path, workers=1)
    with pytest.raises(ValueError, match=r"A study of recover is asked for; .* holds one of t\."):
        read(tmp_path, "recover", numbers)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "below"):
        with pytest.raises(ValueError, match=r"Results cannot be written to .*--out"):
            run(a_study(5), draw, numbers, out=place, workers=1)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "study.json").write_text(json.dumps(a_study(5).identity()))
    (tmp_path / "s" / "parts").write_text("")
    with pytest.raises(ValueError, match=r"Results cannot be written to .*parts"):
        run(a_study(5), draw, numbers, out=tmp_path / "s", workers=1)


def test_a_full_disk_is_said_to_be_full(tmp_path, monkeypatch):
    def full(self, *args, **settings):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(ValueError, match=r"cannot be written to .*: No space left on device"):
        run(a_study(5), draw, numbers, out=tmp_path, workers=1)


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_what_is_done_already(tmp_path, workers):
    seen = []
    how = {"out": tmp_path, "workers": workers, "backend": "threads"}
    run(a_study(20), draw, numbers, progress=lambda *at: seen.append(at), **how)
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    seen.clear()
    run(a_study(20), draw, numbers, progress=lambda *at: seen.append(at), **how)
    assert seen == [(4, 4)]


# Failures


@pytest.mark.parametrize("unit", ["subject", "replicate"])
@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 2, "backend": "threads"}])
def test_planted_failures_show_up_in_the_counts_and_nowhere_else(unit, how):
    study = a_study(100, unit=unit, batch=10) if unit == "subject" else a_study(2, 100, unit=unit)
    clean = run(study, draw, numbers, workers=1)
    rows = run(study, planted, numbers, **how)
    failed = rows["status"] == "failed"
    assert np.flatnonzero(failed).tolist() == [3, 23, 43, 63, 83]
    assert set(rows.loc[failed, "message"]) == {"planted"}
    assert rows.loc[failed, "value"].isna().all()
    same(rows[~failed], clean[~failed])
    address = [c for c in rows if c in ("cell", "replicate", "subject")]
    same(rows[address], clean[address])


def test_a_batch_that_is_fitted_together_fails_together():
    study = a_study(4, 20, batch=4, method="hierarchical")
    clean = run(study, draw, numbers, workers=1)
    rows = run(study, planted, numbers, workers=1)
    failed = rows["status"] == "failed"
    assert set(rows.loc[failed, "replicate"]) == {0, 5, 10, 15}
    assert failed.sum() == 16
    same(rows[~failed], clean[~failed])


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


def test_a_study_of_one_batch_that_fails_is_stopped():
    with pytest.raises(ValueError, match="failed alike"):
        run(a_study(5, batch=5), fail_alike, numbers, workers=1)


def test_different_failures_do_not_stop_the_study():
    rows = run(a_study(20), fail_each_in_its_own_way, numbers, workers=1)
    assert (rows["status"] == "failed").all()
    assert rows["message"].tolist() == [f"unit {i} is odd" for i in range(20)]


def test_a_failure_in_every_batch_does_not_stop_a_study_that_works():
    rows = run(a_study(30), one_in_each_fails, numbers, workers=1)
    assert np.flatnonzero(rows["status"] == "failed").tolist() == [0, 5, 10, 15, 20, 25]


def test_a_resumed_study_may_end_in_failures(tmp_path):
    study = a_study(4, 6, batch=4, method="hierarchical")
    whole = run(study, fail_at_the_end, numbers, out=tmp_path, workers=1)
    assert (whole["status"] == "failed").sum() == 4
    (tmp_path / "parts" / study.part_name(Batch(0, 20, 24))).unlink()
    same(run(study, fail_at_the_end, numbers, out=tmp_path, workers=1), whole)


@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 2}])
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


def test_a_file_that_the_work_misses_is_not_blamed_on_the_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"priors\.csv"):
        run(a_study(), file_bug, numbers, out=tmp_path, workers=1)


def test_a_work_that_loses_rows_is_a_bug(tmp_path):
    with pytest.raises(AssertionError, match="one row per unit"):
        run(a_study(), one_row_short, numbers, out=tmp_path, workers=1)
    assert list((tmp_path / "parts").iterdir()) == []


# Shares


def test_shares_are_disjoint_and_together_whole(tmp_path):
    names = []
    for share in ("1/3", "2/3", "3/3"):
        folder = tmp_path / share[0]
        with pytest.raises(ShareDone, match=r"^Share"):
            run(a_study(), draw, numbers, out=folder, share=share, workers=1)
        names.append({file.name for file in parts_of(folder)})
    assert [len(n) for n in names] == [4, 4, 4]
    study = a_study()
    assert set.union(*names) == {study.part_name(batch) for batch in study.batches()}


def test_a_share_says_what_is_done_and_what_to_do(tmp_path):
    seen = []
    with pytest.raises(ShareDone) as told:
        run(
            a_study(),
            draw,
            numbers,
            out=tmp_path,
            share="1/2",
            workers=1,
            progress=lambda *at: seen.append(at),
        )
    assert str(told.value) == (
        f"Share 1/2 is done: 6 of 12 batches are in {tmp_path}. "
        "When all shares are: knownminds merge FOLDER FOLDER ... --out NEW."
    )
    assert seen[-1] == (6, 6)
    with pytest.raises(ShareDone):  # resumed like any other
        run(a_study(), never, numbers, out=tmp_path, share="1/2", workers=1)
    with pytest.raises(ValueError, match="not finished"):
        read(tmp_path, "t", numbers)
    # The last share in the same folder completes the study.
    last = run(a_study(), draw, numbers, out=tmp_path, share="2/2", workers=1)
    same(last, run(a_study(), draw, numbers, workers=1))


def test_a_share_of_few_batches_keeps_its_failures(tmp_path):
    study = a_study(4, 6, batch=4, method="hierarchical")
    with pytest.raises(ShareDone):
        run(study, fail_at_the_end, numbers, out=tmp_path, share="6/6", workers=1)
    assert [file.name for file in parts_of(tmp_path)] == [study.part_name(Batch(0, 20, 24))]


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


def test_a_recovery_study_is_the_same_on_a_cluster(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(parameter_recovery, "BATCH", 50)
    asked = {"subjects": 200, "seed": 4, "intervals": "laplace"}
    here = recover(PLACE, "rescorla_wagner", workers=1, **asked)
    there = recover(PLACE, "rescorla_wagner", out=tmp_path / "s", **asked, **on(cluster))
    same(there.rows.drop(columns="seconds"), here.rows.drop(columns="seconds"))
    a, b = (json.loads(result.to_json()) for result in (here, there))
    assert a | {"seconds": 0} == b | {"seconds": 0}
    assert there.seconds > 0


def test_a_search_of_designs_is_the_same_on_a_cluster(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(best_designs, "MOST_PER_BATCH", 8)  # several batches of each design
    asked = {"budget": {"trials": 96}, "model": "rescorla_wagner", "seed": 3}
    asked |= {"designs": 3, "replicates": 16, "fresh": 16}
    here = best_design(PLACE, workers=1, **asked)
    there = best_design(PLACE, out=tmp_path / "s", **asked, **on(cluster))
    a, b = (json.loads(result.to_json()) for result in (here, there))
    assert a | {"seconds": 0} == b | {"seconds": 0}
    assert len(parts_of(tmp_path / "s" / "round-0")) >= 6
    # Begun there and stopped before its last step, it goes on here.
    next(iter(parts_of(tmp_path / "s" / "fresh"))).unlink()
    again = best_design(PLACE, out=tmp_path / "s", workers=1, **asked).to_dict()
    assert again | {"seconds": 0} == here.to_dict() | {"seconds": 0}


def test_failures_on_a_cluster_are_those_of_one_worker(cluster, tmp_path):
    study = a_study(100, batch=10)
    same(run(study, planted, numbers, **on(cluster)), run(study, planted, numbers, workers=1))
    with pytest.raises(ValueError, match=r"failed alike.*not finite"):
        run(study, fail_alike, numbers, out=tmp_path, **on(cluster))
    assert list((tmp_path / "parts").iterdir()) == []
    with pytest.raises(TypeError, match="a bug"):
        run(study, bug, numbers, **on(cluster))


def test_a_cluster_with_other_code_is_refused(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "source_hash", lambda: "of another state")
    with pytest.raises(ValueError, match=r"same code and versions; worker tcp://.* has others"):
        run(a_study(), draw, numbers, out=tmp_path, **on(cluster))
    assert list((tmp_path / "parts").iterdir()) == []


def test_a_cluster_without_the_code_is_refused(cluster, monkeypatch):
    def not_there():  # pickled by its name, which the workers do not find
        return running.source_hash(), running.versions()

    not_there.__module__, not_there.__qualname__ = (
        "knownminds.validation.engine.engine",
        "not_there",
    )
    monkeypatch.setattr(running, "not_there", not_there, raising=False)
    monkeypatch.setattr(running, "_state_of_code", not_there)
    with pytest.raises(ValueError, match="same code and versions"):
        run(a_study(), draw, numbers, **on(cluster))


def test_a_wrong_scheduler_address_is_one_clear_sentence(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(running, "ANSWERS_WITHIN", 1.0)
    with socket.socket() as silent:  # takes calls and says nothing, as a dashboard's port does
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        for address in (f"tcp://127.0.0.1:{port}", "tcp://127.0.0.1:1", "nonsense", "foo://x:1"):
            began = time.monotonic()
            there = {"out": tmp_path / "new", "backend": "dask", "scheduler": address}
            with pytest.raises(ValueError, match=f"^No dask scheduler answers at {address}: .+"):
                run(a_study(), draw, numbers, **there)
            assert time.monotonic() - began < 8
    assert not (tmp_path / "new").exists()


def test_a_finished_study_needs_no_cluster(tmp_path):
    first = run(a_study(20), draw, numbers, out=tmp_path, workers=1)
    gone = {"backend": "dask", "scheduler": "tcp://127.0.0.1:1"}
    same(run(a_study(20), never, numbers, out=tmp_path, **gone), first)


def test_a_cluster_without_workers_is_refused():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=":0") as empty,
        pytest.raises(ValueError, match="has no workers; start some"),
    ):
        run(a_study(), draw, numbers, **on(empty))


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r'pip install "knownminds\[dask\]"'):
        run(a_study(), draw, numbers, backend="dask", scheduler="tcp://127.0.0.1:8786")


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ("instrumental_learning", 255881249543404733),
        ("two_step", 41248839559236885),
        ("collider", 343562642916221866),
    ],
)
def test_the_streams_of_a_study_are_those_of_earlier_versions(place, key):
    """Else every number that a study printed from a seed would be another one."""
    settings = dict(make(place).settings)
    assert Cell(place, settings, "rescorla_wagner").data_key == key
    if "thought_words" in settings:  # that came later
        limited = Cell(place, {**settings, "thought_words": 100}, "rescorla_wagner")
        assert limited.data_key != key
