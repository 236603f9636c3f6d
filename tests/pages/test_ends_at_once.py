"""Several processes that end together in one folder: results are there whole, or not at all."""

import json
import multiprocessing

import pandas as pd
import pytest

from knownminds.environments.record.folders import replaced
from knownminds.validation.engine.result import Result
from knownminds.validation.pages.result_page import write_page

TITLES = ("First", "Second", "Third")
ENDS = multiprocessing.get_context("fork")


def result(number):
    table = pd.DataFrame({"number": [number] * 50})
    return Result(f"Result {number}", tables=dict.fromkeys(TITLES, table))


def end_often(folder, number, rounds, begin, failures):
    """Write a result again and again, each time together with the other processes."""
    for _ in range(rounds):
        begin.wait()
        try:
            write_page(result(number), folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
            failures.put(repr(error))


def seen(folder):
    """What a reader finds now: each file is whole, and so is each folder."""
    tables = folder / "tables"
    try:
        here = tables.stat().st_ino
        there = json.loads((folder / "result.json").read_text())["title"]
        page = (folder / "report.html").read_text()
        names = sorted(file.name for file in tables.iterdir())
        if tables.stat().st_ino != here:  # what was listed has been replaced, and is gone
            return 0
    except FileNotFoundError:  # it is being replaced
        return 0
    assert there.startswith("Result")
    assert page.rstrip().endswith("</html>")
    assert len(names) == 3 * len(TITLES)
    return 1


@pytest.mark.parametrize(
    ("processes", "rounds"), [(3, 4), pytest.param(4, 25, marks=pytest.mark.long)]
)
def test_processes_that_end_together_leave_one_whole_result(tmp_path, processes, rounds):
    """The long one has 100 ends."""
    begin, failures = ENDS.Barrier(processes), ENDS.SimpleQueue()
    arguments = [(tmp_path, k, rounds, begin, failures) for k in range(processes)]
    ends = [ENDS.Process(target=end_often, args=one) for one in arguments]
    for end in ends:
        end.start()
    looks = 0
    while any(end.is_alive() for end in ends):
        looks += seen(tmp_path)
    assert [end.exitcode for end in ends] == [0] * processes
    assert failures.empty(), failures.get()
    assert looks > 0
    assert seen(tmp_path) == 1
    left = {file.name for file in tmp_path.iterdir()}
    assert left - {".lock"} == {"report.html", "result.json", "tables"}
    numbers = {pd.read_csv(file)["number"].unique().item() for file in tmp_path.rglob("*.csv")}
    assert json.loads((tmp_path / "result.json").read_text())["title"] == f"Result {numbers.pop()}"
    assert not numbers  # all tables are of one process


def write_half(folder):
    with replaced(folder, ["tables", "result.json"]) as new:
        (new / "result.json").write_text("half")
        raise KeyboardInterrupt


def test_what_breaks_off_replaces_nothing(tmp_path):
    write_page(result(1), tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(KeyboardInterrupt):
        write_half(tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
