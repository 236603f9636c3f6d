import os
import subprocess
import sys

import pytest

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES
from knownminds.validation.completion import completes, names

CODE = "import sys; sys.argv[0] = 'knownminds'; from knownminds.validation.cli import main; main()"


@pytest.mark.parametrize(
    ("kind", "registry"),
    [("environments", ENVIRONMENTS), ("models", AGENTS), ("measures", MEASURES)],
)
def test_the_names_that_are_read_are_those_that_are_registered(kind, registry):
    assert names(kind) == list(registry)
    some = list(registry)[3]
    assert some in completes(kind)(some[:4])
    assert completes(kind)("no_such") == []


def test_the_shell_is_offered_what_begins_so():
    asked = {"_KNOWNMINDS_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    asked["COMP_WORDS"] = "knownminds recover hor"
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asked})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["horizon"]
