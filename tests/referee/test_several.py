"""A folder of models: copies, impossible and gibberish ones are told from one that stands."""

import json
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from referee.test_referee import HEAD, PLANTS

from knownminds.agents import AGENTS
from knownminds.environments import make
from knownminds.validation.referee.several import _Field

MORE = {
    "sound": """
        class Sound(Model):
            \"\"\"Repeats what it chose last, with a tendency of its own.\"\"\"
            stay = positive("tendency", mean=1.0, sd=0.3)
            def begin(self):
                self.last = np.zeros(2)
            def respond(self, trial):
                return self.stay * self.last
            def update(self, trial):
                self.last[0] = 1.0 - trial.action
                self.last[1] = 1.0 * trial.action
        """,
    "said_again": """
        class SaidAgain(Model):
            \"\"\"The same, told by the share of repetitions.\"\"\"
            odds = positive("odds", mean=3.0, sd=0.3)
            def begin(self):
                self.last = np.zeros(2)
            def respond(self, trial):
                return np.log(1.0 + self.odds) * self.last
            def update(self, trial):
                self.last[0] = 1.0 - trial.action
                self.last[1] = 1.0 * trial.action
        """,
    "all_knowing": """
        class AllKnowing(Model):
            \"\"\"A player that knows the truth, which nobody is told.\"\"\"
            beta = positive("inverse temperature", mean=0.0, sd=0.7)
            def respond(self, trial):
                return self.beta * np.array([trial.true_mean_0, trial.true_mean_1])
        """,
}
# It prints, asks for input, and would have the judge say that every model keeps the contract.
CHANGES = """
import knownminds.validation.referee.alone as judge
judge.check_agent = judge.model_of = None
print("hello")
open("left_behind.txt", "w").close()
input()
"""
ASK = ("--environment", "instrumental_learning", "--trials", 48, "--subjects", 16,
       "--replicates", 24, "--against", "rescorla_wagner", "--against", "random_responder",
       "--workers", 1, "--seed", 1)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    for name, text in {"always_lapses": PLANTS["always_lapses"], **MORE}.items():
        (models / f"{name}.py").write_text(HEAD + dedent(text))
    (models / "gibberish.py").write_text("flurb = = 3\n")
    (models / "nothing.py").write_text("x = 3\n")
    (models / "exits.py").write_text("import sys\nsys.exit(0)\n")
    (models / "killed.py").write_text("import os\nos._exit(0)\n")
    (models / "changes.py").write_text(CHANGES)
    (models / "two.py").write_text(HEAD + dedent(PLANTS["copied"] + PLANTS["duplicated"]))
    yield models
    for name in (*PLANTS, *MORE):
        AGENTS.pop(name, None)


@pytest.mark.long
def test_each_file_of_a_folder_has_its_verdict(folder, knownminds):
    code, out, err = knownminds("referee", folder, *ASK, "--json")
    assert code == 0, err
    said = json.loads(out)["verdicts"]
    words = {name.removesuffix(".py"): one["verdict"] for name, one in said.items()}
    broken = {"exits", "killed", "changes", "all_knowing", "gibberish", "nothing", "two"}
    assert {name for name, word in words.items() if word == "broken"} == broken
    assert words["always_lapses"] == "copy"  # of who responds at random
    assert "random_responder" in said["always_lapses.py"]["reasons"][0]
    # Of two that say the same the second is the copy; the first is not held against it.
    assert sorted([words["sound"], words["said_again"]]) == ["copy", "stands"]
    assert not Path("left_behind.txt").exists()


def test_a_file_that_does_not_end_is_a_row_that_says_so(tmp_path, knownminds):
    (tmp_path / "endless.py").write_text("while True:\n    pass\n")
    code, out, err = knownminds("referee", tmp_path, *ASK, "--limit", 1, "--json")
    assert code == 0, err
    said = json.loads(out)
    assert said["verdicts"]["endless.py"]["verdict"] == "did not end"
    assert said["verdicts"]["endless.py"]["reasons"] == ["in 1 s"]
    assert said["failed"] == 1


@pytest.mark.parametrize("words", [("--limit", 0), ("--most", 3), ("--simulator", "a.py")])
def test_what_is_asked_of_one_model_is_not_asked_of_a_folder(words, tmp_path, knownminds):
    (tmp_path / "nothing.py").write_text("x = 3\n")
    code, _, err = knownminds("referee", tmp_path, *ASK, *words)
    assert code == 2
    assert words[0] in err


@pytest.mark.parametrize(
    "place",
    [
        make("probabilistic_reasoning", n_problems=20),
        pytest.param(make("instrumental_learning"), marks=pytest.mark.long),
    ],
)
def test_no_two_shipped_models_are_taken_for_copies(place):
    names = [name for name, model in AGENTS.items() if model.plays(place)]
    field = _Field(place, {name: AGENTS[name] for name in names}, 1, 1)
    assert not any(field.copies(name) for name in names)
    assert np.isfinite(field.bic(names[1], names[0], 4)).all()


def test_a_folder_without_models_is_refused(tmp_path, knownminds):
    code, _, err = knownminds("referee", tmp_path, *ASK)
    assert code == 2
    assert "has none" in err
