"""The exit code of every command, held against the table of the documentation."""

import importlib.metadata
import re

import pytest
from fault_server import FaultServer, by_hash
from walked import ROOT

PAGE = ROOT / "docs" / "reference" / "command-line.md"
LEARNER = ("run", "instrumental_learning", "--trials", 8, "--sessions", 2, "--llm")
SYNTHETIC = (*LEARNER, "synthetic:rescorla_wagner_dual")
SERVED = (*LEARNER, "openai:m")
PLAN = """
benchmark = "cogbench"
[experiments]
instrumental_learning = { sessions = 1, settings = { n_visits = 2 } }
[models."openai:m"]
[known.rational]
instrumental_learning = { model = "rescorla_wagner_dual", beta = 5.0 }
"""
BENCHMARK = ("benchmark", "cogbench", "--plan", "plan.toml")
PLUGINS = {
    "interrupted.py": "raise KeyboardInterrupt\n",
    "seedless.py": '''
from knownminds.environments import InstrumentalLearning, session_stream

class Seedless(InstrumentalLearning):
    """An experiment whose sessions are all alike."""

    name = "seedless"

    def draw(self, rng):
        return super().draw(session_stream(1))
''',
}

# By row of the table: words, and what becomes of the calls of a model that is served.
CASES = {
    ("every command", 0): [("list",)],
    ("every command", 2): [("show", "nothing"), (*SYNTHETIC, "--cap", "calls=few")],
    ("every command", 130): [("list", "--plugin", "interrupted.py")],
    ("`run`", 1): [(*SYNTHETIC, "--cap", "calls=3")],
    ("`run`", 2): [(*SERVED, "401"), (*SERVED, "404")],
    ("`run`", 3): [(*SYNTHETIC, "--contaminate", "malformed=1"), (*SERVED, "400")],
    ("`benchmark`", 1): [(*BENCHMARK, "--cap", "calls=3", "ok")],
    ("`benchmark`", 3): [(*BENCHMARK, "garbage")],
    ("`benchmark`", 4): [(*BENCHMARK, "--fail-under", 0.9, "garbage")],
    ("`show --check`", 2): [("show", "seedless", "--check", "--plugin", "seedless.py")],
    ("`doctor`", 1): [("doctor",)],
}


def rows():
    found = re.findall(r"^\| (.+?) \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.M)
    return [(who, int(code)) for who, code in found]


def test_the_table_has_every_code_that_is_tried_here():
    assert rows() == [*CASES]


@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row[0].strip('`')} {row[1]}")
def test_a_command_ends_with_the_code_that_the_table_says(knownminds, tmp_path, monkeypatch, row):
    monkeypatch.chdir(tmp_path)
    for name, text in {**PLUGINS, "plan.toml": PLAN}.items():
        (tmp_path / name).write_text(text)
    if row[0] == "`doctor`":
        monkeypatch.setattr(importlib.metadata, "requires", lambda name: ["no-such-package>=1"])
    for k, words in enumerate(CASES[row]):
        if "openai:m" in words or words[0] == "benchmark":
            *words, fate = words
            some = words[0] == "run" or "--fail-under" in words
            good = 3 if some else 0  # answers at first that can be read
            script = ["ok"] * good + [fate] * 20
            with FaultServer(by_hash, script=script) as server:
                code, out, err = knownminds(*words, "--base-url", server.address["openai"],
                                            "--out", k)  # fmt: skip
        else:
            code, out, err = knownminds(*words)
        assert code == row[1], (words, err)
        assert "--check" not in words or "Another seed draws another design." in out
