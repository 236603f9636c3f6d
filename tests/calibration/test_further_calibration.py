"""Calibration against an author's simulator, of further quantities, and until it is clear."""

import json

import numpy as np
import pytest

import knownminds
from knownminds.validation.calibration.calibration import quantity
from knownminds.validation.calibration.rank_uniformity import is_clear, looks
from knownminds.validation.cli import main
from knownminds.validation.report import read_result

SIMULATOR = """
import numpy as np


def simulate(parameters, session, rng):
    values = {{}}
    for seen in session:
        v = values.setdefault(seen["context"], [0.5, 0.5])
        chance = 1 / (1 + np.exp(-parameters["beta"] * (v[1] - v[0])))
        action = int(rng.random() < chance)
        turn = session.take(action)
        v[action] += parameters["alpha"] * (turn.reward - v[action])
        v[1 - action] += {fades} * (0.5 - v[1 - action])
"""


def simulator(folder, fades=0.0, name="theirs"):
    file = folder / f"{name}.py"
    file.write_text(SIMULATOR.format(fades=fades), encoding="utf-8")
    return file


def words(result):
    return {name: verdict.word for name, verdict in result.verdicts.items()}


def calibrated(**more):
    asked = {"fixed": {"kappa": 0.0}, "seed": 2, "workers": 1} | more
    return knownminds.calibrate("instrumental_learning", "rescorla_wagner", **asked)


def test_a_study_of_one_round_is_read_from_its_folder(tmp_path):
    study = calibrated(replicates=20, out=tmp_path / "study")
    assert read_result(tmp_path / "study").to_json() == study.to_json()


@pytest.mark.long
def test_a_simulator_of_another_equation_is_found(tmp_path):
    # Of 40 studies with other seeds 2 rejected the right simulator, and 40 the one whose values
    # fade by a fifth a trial where they were not chosen.
    right = calibrated(simulator=simulator(tmp_path), replicates=200)
    assert set(words(right).values()) == {"calibrated"}
    wrong = calibrated(simulator=simulator(tmp_path, 0.2, "fading"), replicates=200)
    assert words(wrong)["log_likelihood"] != "calibrated"
    assert any("fading.py" in note for note in wrong.notes)


@pytest.mark.long
def test_a_study_goes_on_until_it_is_clear(tmp_path):
    file = simulator(tmp_path, 0.2, "fading")
    soon = calibrated(simulator=file, replicates=50, clear=0.85, out=tmp_path / "soon")
    late = calibrated(replicates=50, clear=0.85, out=tmp_path / "late")
    assert soon.attempted < late.attempted
    assert soon["Noticed"]["narrow"].iloc[0] < 0.85 <= late["Noticed"]["narrow"].iloc[0]
    # No replicate of a later round is one of an earlier round again.
    assert not late.rows.duplicated([c for c in late.rows if c.startswith("rank ")]).any()
    read = read_result(tmp_path / "late")
    assert words(read) == words(late)
    assert read.attempted == late.attempted


def test_looks_share_the_level():
    numbers, shares = zip(*looks(50, 1000), strict=True)
    assert numbers == (50, 100, 200, 400, 800, 1000)
    assert sum(shares) == 1
    # How often a growing study errs in the end is in the standing audit, "calibrate --clear 0.85".
    assert is_clear(["calibrated"], 400, 99, 0.05, 0.85)
    assert not is_clear(["calibrated"], 100, 99, 0.05, 0.85)
    assert is_clear(["calibrated", "over-confident"], 100, 99, 0.05, 0.85)


def test_further_quantities_are_ranked(tmp_path):
    study = calibrated(quantities=["alpha * beta", "log(beta)"], replicates=40)
    rows = study.rows
    assert {"rank alpha * beta", "rank log(beta)"} <= set(rows)
    # A rising function of a parameter has its ranks, but for ties.
    assert (rows["rank log(beta)"] == rows["rank beta"]).all()
    assert (rows["rank alpha * beta"] != rows["rank beta"]).any()
    draws = np.random.default_rng(1).random((3, 4, 2))
    found = quantity("a - 2 * b", ("a", "b"), draws)
    assert np.array_equal(found, draws[..., 0] - 2 * draws[..., 1])


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--quantity", "gamma * 2"], "an expression of alpha_positive"),
        (["--quantity", "3"], "an expression of"),
        (["--quantity", "alpha = 2"], "an expression of"),
        (["--quantity", "@x"], "an expression of"),
        (["--quantity", "beta"], "parameters and the log-likelihood are in any case; got 'beta'"),
        (["--quantity", "2 * beta", "--quantity", "2 * beta "], "ranked once"),
        (["--clear", "1.2"], "between 0 and 1"),
        (["--clear", "0.9", "--most", "10"], "at least the first number"),
        (["--simulator", "empty.py"], "simulate(parameters, session, rng)"),
        (["--simulator", "missing.py"], "there is no missing.py"),
        (["--simulator", "early.py"], "to its end"),
        (["--simulator", "raises.py"], "KeyError"),
        (["--simulator", "looks_on.py"], "takes a choice"),
        (["--simulator", "leaves.py"], "SystemExit: 3"),
        (["--most", "300"], "add --clear"),
    ],
)
def test_what_does_not_fit_is_refused(options, part, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, body in (
        ("empty", ""),
        ("early", "def simulate(p, session, rng):\n    session.take(0)\n"),
        ("looks_on", "def simulate(p, session, rng):\n    list(session)\n"),
        ("leaves", "def simulate(p, session, rng):\n    raise SystemExit(3)\n"),
        ("raises", "def simulate(p, session, rng):\n    p['none']\n"),
    ):
        (tmp_path / f"{name}.py").write_text(body, encoding="utf-8")
    typed = ["calibrate", "instrumental_learning", "--replicates", "20", "--out", "study"]
    with pytest.raises(SystemExit) as ended:
        main([*typed, *options])
    assert ended.value.code == 2
    assert part in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "study").exists()


@pytest.mark.long
def test_the_referee_asks_the_simulator_too(tmp_path, capsys):
    file = simulator(tmp_path, 0.5, "fading")
    typed = "referee rescorla_wagner --environment instrumental_learning --against random_responder"
    sizes = "--subjects 20 --replicates 60 --most 4 --seed 1 --workers 1 --json"
    with pytest.raises(SystemExit) as ended:
        main([*typed.split(), *sizes.split(), "--simulator", str(file)])
    assert ended.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdicts"]["simulator"]["verdict"] != "calibrated"
    assert told["verdicts"]["calibration"]["verdict"] == "calibrated"
