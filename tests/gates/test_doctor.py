import json

import pytest

from knownminds.llm_adapters import ADAPTERS
from knownminds.validation.cli import main
from knownminds.validation.gates import doctor as doctors
from knownminds.validation.gates.doctor import KEYS, doctor

LINES = (
    "numpy>=2.0",
    'openai>=1.60; extra == "openai"',
    'torch>=2.6; extra == "transformers"',
    'pytest>=8; extra == "test"',
    "knownminds[openai]",
)


@pytest.fixture(scope="module")
def found():
    return doctor(measure=False)


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


def main_done(words):
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code or 0
