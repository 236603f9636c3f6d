import json

import pytest

from knownminds.llm_adapters import ADAPTERS
from knownminds.validation import doctor as doctors
from knownminds.validation.cli import main
from knownminds.validation.doctor import COMPLETE, KEYS, compute
from knownminds.validation.questions import Doctor

LINES = (
    "numpy>=2.0",
    'inspect-ai>=0.3; extra == "inspect"',
    'torch>=2.6; extra == "transformers"',
    'pytest>=8; extra == "test"',
    "knownminds[inspect]",
)


def test_what_every_install_needs_is_there():
    result = compute(Doctor())
    needed = result["Packages"].xs("", level="extra")
    assert {"numpy", "numba", "pymc", "typer"} <= set(needed.index)
    assert set(needed["state"]) == {"ok"}
    assert result.verdicts["what is needed"].word == COMPLETE


def test_what_is_missing_or_old_is_found():
    versions = {"numpy": "1.26.4", "inspect-ai": "3.0"}
    table = doctors._packages(LINES, lambda name: versions.get(name, ""))
    assert table["state"].to_dict() == {
        ("numpy", ""): "not as needed",
        ("inspect-ai", "inspect"): "ok",
        ("torch", "transformers"): "missing",
    }


def test_a_key_is_never_shown_and_the_command_prints_one_object(monkeypatch, capsys):
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "sk-secret")
    for words in (["doctor"], ["doctor", "--json"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert not end.value.code
        shown = "".join(capsys.readouterr())
        assert "OPENAI_API_KEY" in shown
        assert "sk-secret" not in shown
    adapters = json.loads(shown)["tables"]["adapters"]
    assert [row["adapter"] for row in adapters] == list(ADAPTERS)
    assert {row["key_is_set"] for row in adapters if row["key"] != "-"} == {"yes"}
