"""A folder of models: copies, impossible and gibberish ones are told from one that stands."""

import json
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
ASK = ("--environment", "instrumental_learning", "--trials", 48, "--subjects", 16,
       "--replicates", 24, "--against", "rescorla_wagner", "--against", "random_responder",
       "--workers", 1, "--seed", 1)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    kept = {name: PLANTS[name] for name in ("always_lapses", "certain", "foreseeing")}
    for name, text in {**kept, **MORE}.items():
        (models / f"{name}.py").write_text(HEAD + dedent(text))
    (models / "gibberish.py").write_text("flurb = = 3\n")
    (models / "nothing.py").write_text("x = 3\n")
    (models / "two.py").write_text(HEAD + dedent(PLANTS["copied"] + PLANTS["duplicated"]))
    yield models
    for name in (*PLANTS, *MORE):
        AGENTS.pop(name, None)


def test_each_file_of_a_folder_has_its_verdict(folder, knownminds):
    code, out, err = knownminds("referee", folder, *ASK, "--json")
    assert code == 0, err
    said = json.loads(out)["verdicts"]
    words = {name.removesuffix(".py"): one["verdict"] for name, one in said.items()}
    broken = {"certain", "foreseeing", "all_knowing", "gibberish", "nothing", "two"}
    assert {name for name, word in words.items() if word == "broken"} == broken
    assert words["always_lapses"] == "copy"  # of who responds at random
    assert "random_responder" in said["always_lapses.py"]["reasons"][0]
    # Of two that say the same the second is the copy; the first is not held against it.
    assert sorted([words["sound"], words["said_again"]]) == ["copy", "stands"]


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
