"""`import knownminds`: a version, the verbs, and nothing that is heavy until it is used."""

import importlib
import subprocess
import sys
import warnings
from importlib.metadata import version

import pytest

import knownminds
from knownminds.validation.moved import FLOOR, MOVED


def run(*words, cwd):
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize("verb", list(knownminds.VERBS))
def test_each_verb_is_a_function_of_its_name(verb):
    function = getattr(knownminds, verb)
    assert callable(function)
    assert function.__name__ == verb


def test_it_has_the_installed_version_and_says_what_is_missing():
    assert knownminds.__version__ == version("knownminds")
    assert {"__version__", "recover", "fit"} <= set(dir(knownminds))
    with pytest.raises(AttributeError, match="no attribute 'recovr'"):
        _ = knownminds.recovr


def test_importing_it_loads_none_of_the_floors(tmp_path):
    told = run(
        "-c",
        "import sys, knownminds; print([m for m in sys.modules if m.startswith('knownminds.')])",
        cwd=tmp_path,
    )
    assert told.stdout.strip() == "[]"


def test_as_a_module_it_is_the_command(tmp_path):
    told = run("-m", "knownminds", "show", "perseverator", cwd=tmp_path)
    assert told.stdout.startswith("perseverator: ")


@pytest.mark.parametrize("module", list(MOVED))
def test_a_module_that_moved_is_found_and_says_where(module):
    sys.modules.pop(f"{FLOOR}.{module}", None)
    with pytest.warns(DeprecationWarning, match=f"{FLOOR}.{module} is now "):
        found = importlib.import_module(f"{FLOOR}.{module}")
    assert found is importlib.import_module(f"{FLOOR}.{MOVED[module]}")
    sys.modules.pop(f"{FLOOR}.{module}")


def test_names_that_became_rooms_still_give_their_functions():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for room, verb in (
            ("power", "power"),
            ("channel", "channel"),
            ("calibration", "calibrate"),
        ):
            found = getattr(importlib.import_module(f"{FLOOR}.{room}"), verb)
            assert found is getattr(knownminds, verb)
    with pytest.raises(AttributeError):
        _ = importlib.import_module(f"{FLOOR}.power").__nothing__
