"""Workers end when the process they work for is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# The file alone, for the package takes seconds to import.


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


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_study_that_is_killed_at_work_leaves_no_worker(tmp_path):
    """Once its workers work: they look for their parent from their first piece of work on."""
    words = ("recover", "instrumental_learning", "--model", "rescorla_wagner", "--replicates")
    words += ("4000", "--workers", "2", "--out", tmp_path / "study")
    assert not left_by(words, lambda: len([*tmp_path.rglob("*.parquet")]) > 2, 2)
