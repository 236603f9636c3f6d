"""The recipe for a cluster, word for word: a scheduler, workers of their own, and one option more.

On one machine, and each other one that shall help (with the same knownminds installed):

    dask scheduler --host HOST --port 8786
    dask worker tcp://HOST:8786 --nthreads 1 --nworkers 4

and where the study is started:

    knownminds power instrumental_learning ... --backend dask --scheduler tcp://HOST:8786
"""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from knownminds.validation.cli import main

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

COMMANDS = Path(sys.executable).parent  # where this Python's commands are
STUDY = "power instrumental_learning --effect optimism_bias=0.2 --sessions 16 --replicates 96"


class Machines:
    """The processes of the recipe, on addresses of this machine."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address, self.folder = f"tcp://127.0.0.1:{port}", folder
        self.processes = []
        self.start(f"dask scheduler --host 127.0.0.1 --port {port} --no-dashboard")
        for n in (2, 1):  # two machines, with two workers and with one
            self.start(
                f"dask worker {self.address} --nthreads 1 --nworkers {n} --host 127.0.0.1 "
                "--no-dashboard"
            )

    def start(self, command):
        name, *words = command.split()
        log = (self.folder / f"{len(self.processes)}.log").open("w")
        self.processes.append(
            subprocess.Popen(
                [str(COMMANDS / name), *words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        )
        log.close()

    def stop(self):
        for process in reversed(self.processes):
            os.killpg(process.pid, signal.SIGKILL)  # a worker's children with it
            process.wait()


@pytest.fixture
def machines(tmp_path):
    if not (COMMANDS / "dask").exists():
        pytest.skip("the dask command is not beside this Python")
    (tmp_path / "machines").mkdir()
    made = Machines(tmp_path / "machines")
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def compute(capsys):
    def call(out, *options):
        with pytest.raises(SystemExit) as end:
            main([*STUDY.split(), "--seed", "5", "--out", str(out), "--json", *options])
        assert not end.value.code
        return json.loads(capsys.readouterr().out)

    return call


def rows_of(folder):
    parts = {file.name: pd.read_parquet(file) for file in (folder / "parts").iterdir()}
    return {
        name: part.drop(columns="seconds", errors="ignore") for name, part in sorted(parts.items())
    }


def test_several_workers_give_the_numbers_of_one_process_bit_for_bit(machines, compute, tmp_path):
    cluster = ["--backend", "dask", "--scheduler", machines.address]
    with distributed.Client(machines.address, timeout=30, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=60)
        there = compute(tmp_path / "there", *cluster)
        done = client.run(lambda dask_worker: (os.getpid(), dask_worker.state.executed_count))
    here = compute(tmp_path / "here", "--workers", "1")
    assert len({pid for pid, _ in done.values()}) == 3
    assert sum(count > 0 for _, count in done.values()) > 1, "one worker did it all"
    ours, theirs = rows_of(tmp_path / "here"), rows_of(tmp_path / "there")
    assert list(ours) == list(theirs)
    assert len(ours) > 1
    for name, part in ours.items():
        pd.testing.assert_frame_equal(theirs[name], part, check_exact=True)
    assert there | {"seconds": 0} == here | {"seconds": 0}
    assert there["seconds"] > 0
