"""Workers end when the process they work for is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import os, subprocess, sys
child = [sys.executable, "-c", sys.argv[1], str(os.getpid())]
worker = subprocess.Popen(child, stdout=subprocess.PIPE)
worker.stdout.readline()
print(worker.pid, flush=True)
worker.wait()
"""
# The file alone, for the package takes seconds to import.
WORKER = """
import runpy, sys, time
in_worker = runpy.run_path({file!r})["in_worker"]
print(in_worker(int(sys.argv[1]), lambda: "ready"), flush=True)
time.sleep(60)
"""


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_a_worker_ends_within_seconds_of_a_kill_of_its_parent():
    from importlib.util import find_spec

    file = find_spec("knownminds.validation.engine.workers").origin
    command = [sys.executable, "-c", PARENT, WORKER.format(file=file)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    time.sleep(0.1)
    assert alive(worker)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait(10)
    parent.stdout.close()
    until = time.monotonic() + 10
    while alive(worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(worker)


def of_session(leader):
    """Processes of the session that a process has begun, by number and name."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (place / "stat").read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        state, _, _, session = rest.split()[:4]
        if int(session) == leader and state != "Z":
            found[int(place.name)] = name.partition("(")[2]
    return found


def left_by(words, begun, children):
    """Start a command, kill it once `begun` with its children there; return who lives on."""
    main = "from knownminds.validation.cli import main; main()"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    parent = subprocess.Popen([sys.executable, "-c", main, *words], start_new_session=True, **quiet)
    try:
        until = time.monotonic() + 120
        while not (begun() and len(of_session(parent.pid)) > children):
            assert parent.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        parent.kill()
        parent.wait(10)
        until = time.monotonic() + 10
        while of_session(parent.pid) and time.monotonic() < until:
            time.sleep(0.05)
        return of_session(parent.pid)
    finally:
        parent.kill()
        parent.wait(10)
        for one in of_session(parent.pid):
            os.kill(one, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_run_that_is_killed_leaves_no_process(tmp_path):
    from fault_server import FaultServer

    pytest.importorskip("openai")
    with FaultServer(delay=0.05) as server:
        words = ("run", "marker_location", "--llm", "openai:m", "--trials", "33", "--images")
        words += ("--set", "modality=image", "--base-url", server.address["openai"])
        left = left_by((*words, "--out", tmp_path / "run"), lambda: server.calls, 0)
    assert not left


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_study_that_is_killed_leaves_no_worker(tmp_path):
    words = ("recover", "instrumental_learning", "--model", "rescorla_wagner", "--replicates")
    words += ("4000", "--workers", "2", "--out", tmp_path / "study")
    assert not left_by(words, lambda: (tmp_path / "study" / "study.json").exists(), 2)
