"""Workers end when the process they work for is killed."""

import os
import signal
import subprocess
import sys
import time

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
