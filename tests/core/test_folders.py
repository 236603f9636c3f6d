"""Folders of results: function and command leave the same, and another question's is refused."""

import json

import pytest

import knownminds as package
from knownminds.validation.pages import result_page

LEARNING, TWO = "instrumental_learning", "two_step"
# What is asked: arguments of the function, and words of the command.
FEW = ({"subjects": 6, "trials": 24, "workers": 1}, "--subjects 6 --trials 24 --workers 1")
ASKED = {
    "recover": ((LEARNING,), *FEW),
    "confuse": ((LEARNING, ["perseverator", "random_responder"]),
                {"replicates": 10, "trials": 24, "workers": 1},
                "--model perseverator --model random_responder --replicates 10 --trials 24 "
                "--workers 1"),
    "calibrate": ((LEARNING, "perseverator"),
                  {"replicates": 10, "trials": 24, "workers": 1},
                  "--model perseverator --replicates 10 --trials 24 --workers 1"),
    "power": ((LEARNING, {"optimism_bias": 0.4}),
              {"sessions": 4, "replicates": 10, "trials": 24, "workers": 1},
              "--effect optimism_bias=0.4 --sessions 4 --replicates 10 --trials 24 --workers 1"),
    "audit": (("temporal_discounting",), {"replicates": 4, "workers": 1},
              "--replicates 4 --workers 1"),
    "fit": (("trials.csv", "rescorla_wagner"), {}, "--model rescorla_wagner"),
    "score": (("trials.csv",), {}, ""),
    "budget": ((TWO,), {"llm": ["mine:m"], "price": ["mine:m=1,2"]},
               "--llm mine:m --price mine:m=1,2"),
    "look": (("dice",), {"trials": 2}, "--trials 2"),
    "run": ((TWO, "synthetic:two_step_reduced"), {"trials": 4},
            "--llm synthetic:two_step_reduced --trials 4"),
    "reveal": ((), {"scenarios": ["coins"], "llm": ["synthetic:belief_sampler"], "stated": False},
               "--llm synthetic:belief_sampler --no-stated"),
}  # fmt: skip
NAMED = {"reveal": "coins"}
SLOW = ("audit", "calibrate", "reveal")
OWN = {".lock", "ledger.sqlite-wal", "ledger.sqlite-shm", ".ledger.lock"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with trials, in which no figure is drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(result_page, "picture", lambda figure, kind: b"<svg/>")
    package.simulate(LEARNING, subjects=6, trials=24, out="trials.csv")


def files_in(folder, *but):
    return sorted(
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and file.name not in (*OWN, *but)
    )


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=[pytest.mark.long] * (verb in SLOW)) for verb in ASKED]
)
def test_function_and_command_leave_the_same_folder(verb, tmp_path, knownminds):
    about, more, typed = ASKED[verb]
    getattr(package, verb)(*about, **more, out=tmp_path / "function")
    words = [NAMED.get(verb) or about[0], *typed.split(), "--out", tmp_path / "command"]
    code, _, err = knownminds(verb, *words)
    assert code == 0, err
    left = files_in(tmp_path / "command", f"{verb}.toml")  # which has what was typed
    assert "report.html" in left
    assert files_in(tmp_path / "function") == left
    code, _, err = knownminds(verb, *words)  # the same question goes on, or is answered again
    assert code == 0, err
    assert files_in(tmp_path / "command", f"{verb}.toml") == left


OTHERS = {
    "another fit": "fit trials.csv --model rescorla_wagner --seed 1",
    "a score": "score trials.csv",
    "a look": "look dice",
    "a budget": f"budget {TWO} --llm mine:m --price mine:m=1,2",
    "a study": f"recover {LEARNING} --subjects 6",
    "a run": f"run {TWO} --llm synthetic:two_step_reduced",
    "beliefs": "reveal coins --llm synthetic:belief_sampler",
    "a benchmark": "benchmark cogbench --small",
}


@pytest.mark.parametrize("asked", OTHERS.values(), ids=OTHERS)
def test_the_folder_of_another_question_is_refused_and_stays_as_it_is(asked, tmp_path, knownminds):
    folder = tmp_path / "fit"
    package.fit("trials.csv", "rescorla_wagner", out=folder)
    there = {name: (folder / name).read_bytes() for name in files_in(folder)}
    code, out, err = knownminds(*asked.split(), "--out", folder, "--json")
    assert (code, json.loads(out)["exit_code"]) == (2, 2)
    assert "folder" in err
    assert "knownminds fit" in err
    assert "--out" in err
    assert {name: (folder / name).read_bytes() for name in files_in(folder)} == there


def test_beliefs_in_the_folder_of_others_are_refused_before_a_model_is_asked(tmp_path):
    asked = {"llm": ["synthetic:belief_sampler"], "stated": False, "out": tmp_path / "beliefs"}
    package.reveal(scenarios=["coins"], **asked)
    with pytest.raises(ValueError, match="holds the answer to another question"):
        package.reveal(scenarios=["dice"], **asked)


def test_a_file_is_no_folder(tmp_path, knownminds):
    code, _, err = knownminds("score", "trials.csv", "--out", "trials.csv")
    assert code == 2
    assert "trials.csv is a file" in err
