"""The table of a set of runs, its pages, and the command line that makes them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from magnitude_sets import answers_of

from knownminds.environments import CONDITIONS, Trials, make
from knownminds.inference.magnitudes.consistency_score import ABLATIONS
from knownminds.inference.magnitudes.factor_evidence import FACTORS
from knownminds.inference.magnitudes.magnitude_answers import MagnitudeAnswers
from knownminds.validation.cli import main
from knownminds.validation.data.trials_of_runs import runs_in
from knownminds.validation.magnitudes.magnitude_table import (
    MagnitudeTable,
    magnitude_table,
)
from knownminds.validation.magnitudes.magnitude_task_page import (
    blur_weights,
)

ADAPTING = {name: 0.45 for name in CONDITIONS} | {"base": 0.15}

SOME = ("base", *ABLATIONS)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    both = [
        answers_of("steady", conditions=SOME, prior=0.2, seed=2),
        answers_of("turner", conditions=SOME, prior=ADAPTING),
    ]
    return pd.concat(both, ignore_index=True)


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> MagnitudeTable:
    return magnitude_table(frame, rounds=10, replicates=200)


def test_the_table_has_every_cell_of_every_participant(table: MagnitudeTable) -> None:
    assert table.participants == ("steady", "turner")
    # Six conditions, three modalities in three tasks and one in the fourth.
    assert len(table.cells) == 2 * 6 * (3 * 3 + 1)
    assert len(table.cues) == 2 * 6 * 3 * 5
    assert len(table.consistency) == 2 * 15
    assert len(table.fits) == len(table.cells) * 14
    assert (table.cells["n"] == 99).all()
    assert table.cells[[*FACTORS, "error", "prior_weight", "bias"]].notna().all(axis=None)
    summary = table.summary().set_index("participant")
    assert summary.loc["turner", "BCS"] > summary.loc["steady", "BCS"]
    assert (summary["missing"] == "").all()
    for letter in "AEC":
        assert summary[letter].between(0, 1.5).all()
    rows = table.cells.set_index(["participant", "task", "condition", "modality"])
    own = rows.loc[("turner", "line_ratio", "base", "text+image")]
    assert summary.loc["turner", "NRMSE_line_ratio"] == own["error"]
    assert own["low"] < own["high"]


def test_fits_of_a_cell_find_what_it_was_made_with(table: MagnitudeTable) -> None:
    text = table.cells[(table.cells["modality"] == "text") & (table.cells["task"] != "duration")]
    weight = text.groupby(["participant", "condition"])["prior_weight"].mean()
    # Standard error of a slope: .03 / (.126 sqrt(99)) = .024, by sqrt(3) less for three tasks.
    for who, condition in weight.index:
        truth = 0.2 if who == "steady" else ADAPTING[condition]
        assert weight[who, condition] == pytest.approx(truth, abs=4 * 0.024 / np.sqrt(3))
    assert (text["bayesian"] > 0.5).mean() > 0.9


def test_weights_follow_the_blur_of_the_pictures() -> None:
    place = make("marker_location", modality="all", condition="gradual_noise")
    table = place.draw(np.random.default_rng(3)).table
    frame = pd.DataFrame({name: table[name] for name in place.fields.stimulus})
    frame = frame.assign(environment="marker_location", subject="0", session="0", model="a")
    frame["trial"] = np.arange(len(frame))
    rng = np.random.default_rng(4)
    noise = np.where(frame["modality"] == 1, 0.02 + 0.01 * frame["blur"], 0.05)
    frame["response"] = frame["value"] + noise * rng.standard_normal(len(frame))
    text, image, both = (
        frame[frame["modality"] == k].set_index(["window", "item"]) for k in range(3)
    )
    blur = image["blur"].reindex(both.index)
    weight = (0.02 + 0.01 * blur) ** 2 / ((0.02 + 0.01 * blur) ** 2 + 0.05**2)
    said = weight * text["response"] + (1 - weight) * image["response"]
    frame.loc[frame["modality"] == 2, "response"] = said.reindex(both.index).to_numpy()
    found = blur_weights(MagnitudeAnswers.read(frame, "model"), "marker_location", ["a"])
    assert len(found) == 4
    assert (np.diff(found["blur"]) > 0).all()
    assert (np.diff(found["text_weight"]) > 0).all()
    assert found["text_weight"].iloc[-1] - found["text_weight"].iloc[0] > 0.4
    assert found["items"].sum() == 99


def test_missing_answers_and_conditions_are_counted_and_named(frame: pd.DataFrame) -> None:
    less = frame[(frame["model"] == "turner") & (frame["environment"] == "line_ratio")]
    less = less[less["condition"].isin([0, 1])].copy()
    less["outcome"] = "ok"
    less.loc[less.index[:7], ["response", "outcome"]] = [np.nan, "malformed"]
    found = magnitude_table(less, rounds=0)
    assert found.cells["missing"].sum() == 7
    told = str(found)
    assert "Trials without a readable answer, left out and counted: 7." in told
    assert "turner has no A: no base trials of marker_location with text+image" in told
    assert "none, for lack of a comparison" in told
    assert found.composite["value"].isna().all()
    assert found.cells["low"].isna().all()  # no bootstraps, no intervals
    assert [rate.count for rate in found.outcomes["line_ratio"] if rate.outcome == "ok"] == [
        len(less) - 7
    ]


def save_runs(frame: pd.DataFrame, folder: Path) -> None:
    folder.mkdir()
    names = ["model", "environment", "condition"]
    for (who, task, condition), part in frame.groupby(names):
        file = folder / f"{who} {task} {condition}.parquet"
        Trials.from_frame(part.assign(subject="0")).save(file)


def test_the_command_line_scores_a_folder_of_runs(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = frame[frame["environment"].isin(["line_ratio", "duration"]) & (frame["condition"] < 2)]
    some = some[(some["environment"] == "duration") | (some["condition"] == 1)]
    save_runs(some, tmp_path / "runs")
    assert len(runs_in([tmp_path / "runs"])) == 6
    command = ["score", str(tmp_path / "runs"), "--bootstraps", "5", "--mass", "0.9"]
    with pytest.raises(SystemExit) as end:
        main(command)
    assert end.value.code == 0
    assert "90% intervals of 5 bootstraps" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*command, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["options"]["mass"] == 0.9
    assert {row["task"] for row in told["cells"]} == {"line_ratio", "duration"}
    assert len(told["cells"]) == 2 * (3 + 2)
    # A single run has its own measures, unless it is a single subject, which has no test.
    run = next((tmp_path / "runs").glob("steady line_ratio 1*"))
    with pytest.raises(SystemExit):
        main(["score", str(run)])
    assert "condition base: not played" in capsys.readouterr().out
    several = Trials.load(run).frame.query("modality == 0")
    several = several.assign(subject=several["window"].astype(str))
    Trials.from_frame(several).save(tmp_path / "subjects.csv")
    with pytest.raises(SystemExit):
        main(["score", str(tmp_path / "subjects.csv")])
    assert "normalised_error (line_ratio)" in capsys.readouterr().out
