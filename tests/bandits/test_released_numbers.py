"""`score --released` on imported files gives what the benchmark's own scripts compute of them.

The scripts' arithmetic (Coda-Forno et al. 2024, `store.py` of each task) is written here anew in
plain Python and NumPy, row by row of the files of `their_files`; nothing is shared with the
measures, and nothing is taken over from the scripts.
"""

import csv
import io
from itertools import pairwise

import numpy as np
import pytest
import their_files

from knownminds import score
from knownminds.validation.data.questions import AskImport
from knownminds.validation.imports.importing import import_tables


def scored(made, folder, released=True):
    """Return the measures of a file, imported and scored: by name, the row of the table."""
    file = folder / made.name
    file.write_text(made.text, encoding="utf-8")
    trials = import_tables([file], AskImport([file])).trials
    found = score(trials, released=released)
    return {row["measure"]: row for row in found["Measures"].to_dict("records")}, found


def rows_of(made):
    return list(csv.DictReader(io.StringIO(made.text.lstrip("\ufeff"))))


def grouped(rows, column="run"):
    found = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def newton(x, y):
    """Maximum likelihood of a logistic regression, by Newton's method."""
    x, y = np.array(x, dtype=float), np.array(y, dtype=float)
    b = np.zeros(x.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-x @ b))
        b = b + np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x, x.T @ (y - p))
    return b


def test_urns_are_regressed_without_intercept_and_numbers_above_one_are_held(tmp_path):
    made = their_files.urns(seed=4, runs=40)
    found, _ = scored(made, tmp_path)
    x, y, near = [], [], []
    for row in rows_of(made):
        prior, red = float(row["prior"]), row["red_observation"] == "True"
        lh = float(row["lh"]) if red else 1 - float(row["lh"])
        said = min(max(float(row["left_pred"]), 0.00001), 0.99999)
        x.append([np.log(prior / (1 - prior)), np.log(lh / (1 - lh))])
        y.append(np.log(said / (1 - said)))
        near.append(1 - abs(prior * lh / (prior * lh + (1 - prior) * (1 - lh)) - said))
    weights = np.linalg.lstsq(np.array(x), np.array(y), rcond=None)[0]
    assert found["prior_weighting_released"]["value"] == pytest.approx(weights[0], abs=1e-8)
    assert found["likelihood_weighting_released"]["value"] == pytest.approx(weights[1], abs=1e-8)
    assert found["performance_released"]["value"] == pytest.approx(mean(near), abs=1e-9)
    assert "1 x a number beyond 0 to 1" in found["performance_released"]["note"]
    assert "1 x a number beyond 0 to 1" in found["prior_weighting_released"]["note"]
    assert found["performance_released"]["left_out"] == ""  # that answer counts
    # By default that answer is none, and is left out.
    usual, _ = scored(made, tmp_path, released=False)
    assert usual["prior_weighting"]["n"] == found["prior_weighting_released"]["n"] - 1
    assert usual["performance"]["value"] != pytest.approx(mean(near), abs=1e-6)


def test_exploration_goes_by_true_means_and_forced_plays_count_in_the_mean(tmp_path):
    made = their_files.games(seed=4, n=160)
    found, _ = scored(made, tmp_path)
    equal, unequal, points = ([], []), ([], []), []
    for game in grouped(rows_of(made)).values():
        points += [float(row["reward"]) for row in game]
        ones = sum(int(row["choice"]) for row in game[:4])
        long = 1.0 if len(game) == 10 else -1.0
        lead, first = float(game[0]["mean1"]) - float(game[0]["mean0"]), int(game[4]["choice"])
        if ones == 3:
            lead, first = -lead, 1 - first
        x, y = equal if ones == 2 else unequal
        x.append([lead, long, lead * long, 1.0])
        y.append(first)
    assert found["performance_released"]["value"] == pytest.approx(mean(points), abs=1e-9)
    assert equal[0]
    assert found["random_exploration_released"]["value"] == pytest.approx(
        -newton(*equal)[2], abs=1e-6
    )
    if unequal[0]:
        assert found["directed_exploration_released"]["value"] == pytest.approx(
            newton(*unequal)[1], abs=1e-6
        )


def test_choices_before_a_swap_are_judged_after_it(tmp_path):
    made = their_files.blocks(seed=4, runs=3)
    found, _ = scored(made, tmp_path)
    quality, accuracy = [], []
    for run in grouped(rows_of(made)).values():
        told = [(int(r["accurate"]), float(r["confidence"])) for r in run if r["confidence"]]
        low, high = min(c for _, c in told), max(c for _, c in told)
        quality.append(mean(1 - (a - (c - low) / (high - low)) ** 2 for a, c in told))
        accuracy.append(mean(int(r["accurate"]) for r in run))
    assert found["meta_cognition_released"]["value"] == pytest.approx(mean(quality), abs=1e-9)
    assert found["performance_released"]["value"] == pytest.approx(mean(accuracy), abs=1e-9)
    usual, _ = scored(made, tmp_path, released=False)
    assert abs(usual["meta_cognition"]["value"] - mean(quality)) > 1e-3


def test_days_are_regressed_by_least_squares(tmp_path):
    made = their_files.days(seed=4, runs=8)
    found, _ = scored(made, tmp_path)
    rows, paid = [], []
    lost = {(0, 4), (2, 6)}  # days without a readable shuttle and without a readable alien
    at = {}
    days = []
    for row in rows_of(made):
        run, day = int(row["run"]), int(row["trial"])
        at[run, day] = at.get((run, day), -1) + 1
        days.append((run, at[run, day], day, row))
    for (run, n, day, one), (run_2, n_2, _, two) in pairwise(days):
        if (run, n) != (run_2, n_2) or {(run, day), (run, day + 1)} & {(0, 4)}:
            continue
        reward = 1 if one["reward"] == "1" else -1
        common = 1 if one["action1"] == one["state"] else -1
        rows.append(([1, reward, common, reward * common], one["action1"] == two["action1"]))
    for run, _, day, row in days:
        if (run, day) not in lost:
            paid.append((run, int(row["reward"])))
    x, y = np.array([x for x, _ in rows]), np.array([y for _, y in rows], dtype=float)
    weight = np.linalg.lstsq(x, y, rcond=None)[0][3]
    assert found["model_basedness_released"]["value"] == pytest.approx(weight, abs=1e-9)
    # What has no released form is of all runs of the engine together.
    assert found["performance"]["value"] == pytest.approx(mean(p for _, p in paid), abs=1e-9)
