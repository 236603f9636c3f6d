import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from knownminds.llm_adapters import ADAPTERS
from knownminds.validation.cli import main
from knownminds.validation.gates import doctor as doctors
from knownminds.validation.gates.doctor import KEYS, OWN_KEYS, Installed, doctor, measure_speed

LINES = (
    "numpy>=2.0",
    'openai>=1.60; extra == "openai"',
    'torch>=2.6; extra == "transformers"',
    'pytest>=8; extra == "test"',
    "knownminds[openai]",
)
ALL_THERE = tuple(Installed(name, name, "9", ">=1", "ok") for name in ADAPTERS)


@pytest.fixture(scope="module")
def found():
    return doctor(measure=False)


def told_of(name, found):
    return next(one for one in found.adapters if one.name == name)


def test_what_every_install_needs_is_there(found):
    needed = {one.name: one for one in found.packages if not one.extra}
    assert {"numpy", "numba", "pymc", "typer"} <= set(needed)
    assert {one.state for one in needed.values()} == {"ok"}
    assert all(one.version for one in needed.values())
    assert found.sound
    assert "All that is needed is there." in str(found)


def test_what_is_missing_or_old_has_the_line_that_installs_it():
    versions = {"numpy": "1.26.4", "openai": "3.0"}
    found = doctors._packages(LINES, lambda name: versions.get(name, ""))
    assert [(one.name, one.extra, one.state, one.remedy) for one in found] == [
        ("numpy", "", "not as needed", "pip install --upgrade knownminds"),
        ("openai", "openai", "ok", ""),
        ("torch", "transformers", "missing", 'pip install "knownminds[transformers]"'),
    ]


def test_an_old_package_makes_the_whole_unsound(found):
    old = Installed("numpy", "", "1.26.4", ">=2.0", "not as needed")
    ill = replace(found, packages=(old,))
    assert not ill.sound
    assert "not as needed: pip install --upgrade knownminds" in str(ill)
    assert "Something needed is not ok." in str(ill)
    extra = Installed("torch", "transformers", "", ">=2.6", "missing")
    assert replace(found, packages=(extra,)).sound  # an extra is nobody's need


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_those_that_the_adapters_read(name):
    source = Path(
        importlib.util.find_spec(f"knownminds.llm_adapters.providers.{name}").origin
    ).read_text()
    assert f'key_variable: str | None = "{KEYS[name]}"' in source


@pytest.mark.parametrize("name", KEYS)
def test_an_adapter_runs_where_its_package_and_its_key_are(name):
    assert doctors._adapter(name, ALL_THERE, {KEYS[name]: "a key"}).runs == "yes"
    for environment in ({}, {KEYS[name]: " "}):
        without = doctors._adapter(name, ALL_THERE, environment)
        assert (without.runs, KEYS[name] in without.why) == ("no", True)
    lost = (Installed(name, name, "", ">=1", "missing"),)
    without = doctors._adapter(name, lost, {KEYS[name]: "a key"})
    assert without.runs == "no"
    assert f'pip install "knownminds[{name}]"' in without.why


def test_adapters_without_a_key_of_their_own_say_so():
    assert doctors._adapter("synthetic", (), {}).runs == "yes"
    assert doctors._adapter("transformers", ALL_THERE, {}).runs == "yes"
    for name in OWN_KEYS:
        assert doctors._adapter(name, ALL_THERE, {}).runs == "perhaps"


def test_a_key_is_never_shown(monkeypatch, capsys):
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "sk-secret")
    found = doctor(measure=False)
    assert [one.name for one in found.adapters] == list(ADAPTERS)
    main_done(["doctor", "--no-speed"])
    shown = str(found) + found.to_json() + repr(found) + "".join(capsys.readouterr())
    assert "OPENAI_API_KEY" in shown
    assert "sk-secret" not in shown


def test_the_command_prints_one_object(capsys, found):
    main_done(["doctor", "--no-speed", "--json"])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    told = json.loads(out)
    assert told == found.to_dict()
    assert told["speed"] is None
    assert {one["name"] for one in told["adapters"]} == set(ADAPTERS)
    assert len(found.to_frame()) == len(told["packages"])


def test_a_cache_that_cannot_be_written_is_said_with_its_remedy(monkeypatch, capsys, tmp_path):
    closed = tmp_path / "file"
    closed.write_text("no folder")
    monkeypatch.setattr(doctors, "_cache", lambda: closed / "cache")
    assert main_done(["doctor", "--no-speed"]) == 1
    out = capsys.readouterr().out
    assert "every process compiles anew" in out
    assert "NUMBA_CACHE_DIR" in out


def test_the_kernel_outruns_the_step_loop():
    speed = measure_speed()
    assert min(speed.simulated, speed.fitted, speed.played) > 0
    assert speed.ratio > 1  # by hundreds; fits take many passes over the trials
    assert speed.simulated > speed.fitted


def main_done(words):
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code or 0
