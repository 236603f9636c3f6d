"""Workers end with the process they work for."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import time
from joblib import Parallel, delayed
from knownminds.validation.engine.workers import processes

with processes(2):
    Parallel()(delayed(time.sleep)(60) for _ in range(2))
"""


def of_session(leader):
    """Return the processes of the session that a process has begun."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (place / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended
            continue
        if int(session) == leader and state != "Z":
            found.append(int(place.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_process_that_is_killed_leaves_no_worker_and_no_tracker():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], start_new_session=True)
    try:
        until = time.monotonic() + 60
        while len(of_session(parent.pid)) < 4:  # with two workers and what tracks them
            assert parent.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        parent.kill()
        parent.wait(10)
        until = time.monotonic() + 10
        while of_session(parent.pid) and time.monotonic() < until:
            time.sleep(0.05)
        assert of_session(parent.pid) == []
    finally:
        parent.kill()
        for one in of_session(parent.pid):
            os.kill(one, signal.SIGKILL)
