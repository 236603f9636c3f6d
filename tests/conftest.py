"""What tests of the command line share."""

import pytest


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
