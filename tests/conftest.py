"""What tests of the command line share, registries kept as they were, figures drawn once."""

import asyncio
import gc
import os

import pytest
from hypothesis import HealthCheck, settings

# Several test processes share the cores: threads of linear algebra would wait for each other, up
# to five times as long. Read when NumPy and torch are loaded, here and in processes begun by tests.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# How long an example takes says how busy the machine is; what an example shows stays the same.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def pytest_collection_finish(session):
    """Leave what is loaded by now out of every later search for cycles, and search less often.

    Ten thousand tests and all libraries lie in memory, and to walk through them again and again
    took a tenth of the whole run.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_runtest_setup(item):
    import drawn_once

    drawn_once.choose(item.path.stem)


@pytest.fixture(autouse=True, scope="module")
def registries_as_they_were():
    """What the tests of a file register (pages that bring a model do) ends with the file."""
    from registries import as_they_were

    with as_they_were():
        yield


@pytest.fixture(autouse=True, scope="module")
def event_loops_as_they_were():
    """No test file leaves asyncio changed, whose `run` would then close no loop any more.

    Inspect does so for the rest of the process where it is called inside a loop of its own, as by
    `write_eval_log` of a log that is read while it is written.
    """
    yield
    assert not hasattr(asyncio, "_nest_patched")


@pytest.fixture
def knownminds(capsys):
    """Run the command line in this process; return exit code, output and errors."""
    from knownminds.validation.cli import main

    def run(*words):
        code = 0
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = end.code or 0
        told = capsys.readouterr()
        return code, told.out, told.err

    return run
