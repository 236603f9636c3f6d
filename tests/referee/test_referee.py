"""The referee: five planted models that only fit well are caught, a sound one is not."""

import json
from textwrap import dedent

import pytest

from knownminds.agents import AGENTS, positive
from knownminds.agents.bandits.rescorla_wagner import RescorlaWagner
from knownminds.environments import make
from knownminds.inference import check_agent
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.members import load_file, register
from knownminds.validation.engine.question import Running
from knownminds.validation.referee.predictions import predict_batch, predicted, prediction_study

HEAD = """
import numpy as np
from knownminds.agents import Model, Probabilities, positive, unit
from knownminds.agents.bandits.rescorla_wagner import RescorlaWagner
"""
PLANTS = {
    "always_lapses": """
        class AlwaysLapses(Model):
            \"\"\"A learner whose lapse is always true.\"\"\"
            alpha = unit("learning rate", mean=-0.5, sd=1.0)
            beta = positive("inverse temperature", mean=1.0, sd=0.7)
            def begin(self):
                self.values = np.zeros(2)
            def respond(self, trial):
                p = 1 / (1 + np.exp(-self.beta * (self.values[1] - self.values[0])))
                lapse = 1.0
                p = (1 - lapse) * p + lapse / 2
                return Probabilities([1 - p, p])
            def update(self, trial):
                self.values[trial.action] += self.alpha * (trial.reward - self.values[trial.action])
        """,
    "duplicated": """
        class Duplicated(RescorlaWagner):
            \"\"\"A learner with two parameters of which only the product counts.\"\"\"
            gamma = positive("sensitivity", mean=0.0, sd=0.5)
            def respond(self, trial):
                return self.gamma * self.beta * self.values + self.kappa * self.last
        """,
    "foreseeing": """
        class Foreseeing(Model):
            \"\"\"A player that looks at the reward before it chooses.\"\"\"
            beta = positive("inverse temperature", mean=1.0, sd=0.7)
            def respond(self, trial):
                return self.beta * np.array([0.0, trial.reward])
        """,
    "certain": """
        class Certain(Model):
            \"\"\"A player whose probability is high of whatever is chosen.\"\"\"
            p = unit("probability", mean=2.0, sd=0.5)
            def respond(self, trial):
                return Probabilities([self.p, self.p])
        """,
    "copied": """
        class Copied(RescorlaWagner):
            \"\"\"A known learner by a temperature in place of its inverse.\"\"\"
            tau = positive("temperature", mean=-1.0, sd=0.7)
            beta = property(lambda self: 1 / self.tau)
        """,
}
SMALL = ("--environment", "instrumental_learning", "--against", "rescorla_wagner", "--trials", 48,
         "--subjects", 24, "--replicates", 24, "--most", 12, "--workers", 1)  # fmt: skip


@pytest.fixture
def plant(tmp_path):
    def write(name):
        file = tmp_path / f"{name}.py"
        file.write_text(HEAD + dedent(PLANTS[name]))
        return file

    yield write
    for name in PLANTS:
        AGENTS.pop(name, None)


def verdicts_of(knownminds, *words):
    code, out, err = knownminds("referee", *words, "--json")
    assert code == 0, err
    return {name: one["verdict"] for name, one in json.loads(out)["verdicts"].items()}


@pytest.mark.parametrize(("name", "truth"), [("foreseeing", "peeks"), ("certain", "not told")])
def test_a_model_that_breaks_the_contract_is_asked_nothing_else(knownminds, plant, name, truth):
    expected = {"truth": truth, "contract": "broken"}
    assert verdicts_of(knownminds, plant(name), *SMALL) == expected


def test_a_probability_that_depends_on_nothing_counts_in_the_likelihood(plant):
    load_file(plant("always_lapses"))
    assert check_agent(AGENTS["always_lapses"], make("instrumental_learning")).ok


@pytest.mark.long
@pytest.mark.parametrize("name", ["always_lapses", "duplicated"])
def test_null_directions_are_found(knownminds, plant, name):
    words = verdicts_of(knownminds, plant(name), *SMALL)
    assert words["contract"] == "kept"
    assert words["null directions"] == "not identified"


@pytest.mark.long
def test_a_copy_of_a_rival_is_never_told_from_it_and_its_folder_says_so(
    knownminds, plant, tmp_path
):
    out = tmp_path / "answer"
    words = verdicts_of(knownminds, plant("copied"), *SMALL, "--out", out)
    assert words["contract"] == "kept"
    assert words["null directions"] == "none"
    assert words["rivals"] == "not identified"
    assert words["smallest"] == "not reached"
    assert words["predictions"] == "predicts the same"
    first = json.loads((out / "result.json").read_text())
    code, _, err = knownminds("report", out)
    assert code == 0, err
    assert json.loads((out / "result.json").read_text())["parts"] == first["parts"]
    code, _, err = knownminds("referee", tmp_path / "copied.py", *SMALL, "--seed", 5, "--out", out)
    assert code == 2
    assert "another referee's answer" in err


def test_a_sound_model_stands_and_predicts_something_of_its_own(knownminds):
    words = verdicts_of(knownminds, "rescorla_wagner", *SMALL[:2], "--against", "perseverator",
                        "--trials", 192, "--subjects", 40, "--replicates", 40, "--most", 40,
                        "--workers", 1)  # fmt: skip
    assert words["contract"] == "kept"
    assert words["null directions"] == "none"
    assert words["calibration"] == "calibrated"
    assert words["predictions"] == "differs"
    assert words["smallest"] == "confirmed"


@pytest.mark.long
def test_predictions_of_a_model_against_itself_differ_in_5_percent():
    class Twin(RescorlaWagner):
        """The learner itself, with its very prior."""

        name = "twin"

    class Double(RescorlaWagner):
        """Another name of it."""

        name = "double"
        tau = positive("temperature", mean=-1.0, sd=0.7)
        beta = property(lambda self: 1 / self.tau)

    for model in (Twin, Double):
        register(model)
    environment = make("instrumental_learning", n_visits=12)
    alarms = 0
    for seed in range(40):
        study = prediction_study(environment, "twin", ["double"], 20, seed)
        result = predicted(run(study, predict_batch, lambda rows: rows, Running(workers=1)))
        alarms += result.verdicts["double"].word == "differs"
    for name in ("twin", "double"):
        AGENTS.pop(name)
    # Of 40 tests at 5%, more than 7 reject with a chance of .0007 (binomial).
    assert alarms <= 7


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("x = 1\n", SMALL, "a class derived from Model; "),
        ("not python\n", SMALL, "plain.py"),
        (HEAD + dedent(PLANTS["copied"] + PLANTS["certain"]), SMALL, "copied, certain"),
        (HEAD + dedent(PLANTS["copied"]), (*SMALL[:3], "two_step_hybrid"), "two_step_hybrid"),
        (HEAD + dedent(PLANTS["copied"]), (*SMALL[:3], "no_such_model"), "no_such_model"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_sentence(
    knownminds, tmp_path, text, words, sentence
):
    file = tmp_path / "plain.py"
    file.write_text(text)
    code, out, err = knownminds("referee", file, *words, "--out", tmp_path / "out")
    for name in PLANTS:
        AGENTS.pop(name, None)
    assert (code, out) == (2, "")
    assert sentence in " ".join(err.split())
    assert not (tmp_path / "out").exists()
