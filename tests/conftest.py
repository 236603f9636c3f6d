"""What tests of the command line share, and figures that are drawn once."""

import pytest


def pytest_runtest_setup(item):
    import drawn_once

    drawn_once.choose(item.path.stem)


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
