"""Run files: typed words replace those of the file, and a wrong file leaves nothing behind."""

import json
import tomllib

import pytest

STUDY = """
environment = "instrumental_learning"
subjects = 4
fit-lapse = true
seed = 3

[set]
kappa = 0.3
beta = 2
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    return file


def test_a_file_is_the_command_with_its_options(knownminds, study):
    study.write_text(STUDY.replace("fit-lapse = true", ""))
    code, _, err = knownminds("simulate", study, "--out", "from_file/trials.csv")
    assert code == 0, err
    typed = ("--subjects", 4, "--seed", 3, "--set", "kappa=0.3", "--set", "beta=2")
    code, _, err = knownminds("simulate", "instrumental_learning", *typed, "--out", "typed.csv")
    assert code == 0, err
    assert (study.parent / "from_file/trials.csv").read_text() == (
        study.parent / "typed.csv"
    ).read_text()


def test_typed_words_replace_options_and_single_parameters(knownminds, study):
    words = ("--subjects", 3, "--set", "beta=7", "--out", "here", "--json", "--workers", 1)
    code, out, err = knownminds("recover", study, *words)
    assert code == 0, err
    asked = json.loads(out)["options"]
    assert asked["subjects"] == [3]
    assert asked["set"] == {"kappa": 0.3, "beta": 7.0}
    resolved = tomllib.loads((study.parent / "here/recover.toml").read_text())
    assert resolved["subjects"] == [3]
    assert resolved["seed"] == 3
    assert resolved["fit_lapse"] is True


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('environment = "two_step"\nsubject = 3\n', "no option of recover named 'subject'"),
        ('environment = "two_step"\nfit_lapse = 3\n', "fit_lapse is true or false; got 3"),
        ("environment = two_step\n", "is no TOML"),
        ("subjects = 3\n", "Missing argument"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_is_written(knownminds, study, text, sentence):
    study.write_text(text)
    code, out, err = knownminds("recover", study, "--out", "here")
    assert (code, out) == (2, "")
    assert sentence in " ".join(err.split())
    assert not (study.parent / "here").exists()


def test_a_missing_file_is_named(knownminds, study):
    code, _, err = knownminds("recover", "studies.toml")
    assert code == 2
    assert "studies.toml is no file" in err


def test_a_file_needs_no_words_behind_it(knownminds, study):
    study.write_text('name = "two_step"\n')
    code, out, _ = knownminds("show", study)
    assert code == 0
    assert "two_step" in out
