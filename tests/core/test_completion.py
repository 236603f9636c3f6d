import os
import subprocess
import sys

import pytest

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES
from knownminds.validation.completion import completes, names

CODE = "import sys; sys.argv[0] = 'knownminds'; from knownminds.validation.cli import main; main()"


def knownminds(*words, **variables):
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def completed(line):
    """What bash is offered for the last word of a line."""
    words = line.split(" ")
    return knownminds(
        _KNOWNMINDS_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)
    ).split()


@pytest.mark.parametrize(
    ("kind", "registry"),
    [("environments", ENVIRONMENTS), ("models", AGENTS), ("measures", MEASURES)],
)
def test_the_names_that_are_read_are_those_that_are_registered(kind, registry):
    assert names(kind) == list(registry)


def test_a_word_is_completed_to_the_names_that_begin_with_it():
    assert completes("measures")("risk_seeking_l") == [
        "risk_seeking_likely_gains",
        "risk_seeking_likely_losses",
    ]
    assert completes("environments", "models")("two_step") == [
        name for name in (*ENVIRONMENTS, *AGENTS) if name.startswith("two_step")
    ]
    assert completes("models")("no_such") == []


def test_the_shell_is_offered_experiments_models_and_measures():
    assert completed("knownminds recover hor") == ["horizon"]
    assert completed("knownminds fit data.csv --model two_step_h") == ["two_step_hybrid"]
    assert completed("knownminds audit optimism") == ["optimism_bias"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_is_installed_for_a_shell(shell, tmp_path):
    told = knownminds(
        "--install-completion",
        shell,
        HOME=str(tmp_path),
        # Where there is no terminal there is no shell to be found out either.
        _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1",
    )
    assert "completion installed" in told
    scripts = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any("_KNOWNMINDS_COMPLETE" in file.read_text() for file in scripts)
