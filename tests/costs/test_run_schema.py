"""What `run --json` prints is what its schema and the page of formats say."""

import json
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import knownminds as package

RUN = json.loads((files("knownminds.validation.costs") / "run_schema.json").read_text("utf-8"))
RESULT = json.loads(
    (files("knownminds.validation.engine") / "result_schema.json").read_text("utf-8")
)
FORMATS = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
PLACE = ("run", "instrumental_learning", "--llm", "synthetic:rescorla_wagner", "--trials", 8)
ASKED = {
    "whole": ((), 0, None),
    "capped": (("--cap", "calls=3"), 1, None),
    "unread": (("--contaminate", "malformed=1"), 3, None),
    "wordings": (("--paraphrases", 2), 0, "wordings"),
    "controls": (("--control", "paraphrase"), 0, "controls"),
    "dry": (("--dry-run", "--show", 1), 0, "dry"),
    "dry wordings": (("--dry-run", "--paraphrases", 2), 0, "dry"),
}


def errors(content, schema=RUN):
    return [error.message for error in Draft202012Validator(schema).iter_errors(content)]


@pytest.mark.parametrize("name", ASKED)
def test_what_run_prints_is_what_its_schema_says(name, knownminds, tmp_path):
    words, ends, kind = ASKED[name]
    code, out, err = knownminds(*PLACE, *words, "--out", tmp_path / "run", "--json")
    assert code == ends, err
    told = json.loads(out)
    assert errors(told) == []
    if kind is None:
        assert {*RUN["$defs"]["run"]["required"]} == {*told}
        page = json.loads((tmp_path / "run" / "result.json").read_text("utf-8"))
        assert errors(page, RESULT) == []
    elif kind == "controls":
        assert errors(told["judged"], RESULT) == []


def test_the_function_of_a_run_says_the_same(knownminds, tmp_path):
    code, out, err = knownminds(*PLACE, "--out", tmp_path / "a", "--json")
    assert code == 0, err
    run = package.run(PLACE[1], PLACE[3], trials=8, out=tmp_path / "b").to_dict()
    assert run | {"folder": 0} == json.loads(out) | {"folder": 0}


def test_a_run_of_another_shape_is_noticed(knownminds, tmp_path):
    code, out, err = knownminds(*PLACE, "--out", tmp_path, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert errors({k: v for k, v in told.items() if k != "calls"})
    assert errors(told | {"verdicts": {}})
    assert errors(told | {"sessions": -1})


def test_the_page_of_formats_names_both_schemas():
    page = FORMATS.read_text(encoding="utf-8")
    assert "`validation/costs/run_schema.json`" in page
    assert "`validation/engine/result_schema.json`" in page
