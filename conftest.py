"""What all tests share: the command line in this process, and registries as they were."""

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


def pytest_addoption(parser):
    parser.addoption("--strict-skips", action="store_true", help="a skipped test is an error")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if (
        report.skipped
        and item.config.getoption("--strict-skips")
        and not hasattr(report, "wasxfail")
    ):
        report.outcome = "failed"
    return report


def pytest_collection_finish(session):
    """Leave what is loaded by now out of every later search for cycles, and search less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True, scope="module")
def registries_as_they_were():
    """What the tests of a file register ends with the file."""
    from registries import as_they_were

    with as_they_were():
        yield


@pytest.fixture(autouse=True, scope="module")
def event_loops_as_they_were():
    """No test file leaves asyncio changed, whose `run` would then close no loop any more.

    Inspect does so for the rest of the process where it is called inside another loop, as by
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
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run
