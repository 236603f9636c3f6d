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
    FRAMES,
    MagnitudeTable,
    magnitude_table,
    read_magnitude,
)
from knownminds.validation.magnitudes.magnitude_task_page import (
    blur_weights,
    condition_words,
    stimuli,
)
from knownminds.validation.report import report

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


@pytest.fixture(scope="module")
def small(frame: pd.DataFrame) -> MagnitudeTable:
    chosen = (frame["environment"] == "line_ratio") & (frame["condition"] < 2)
    return magnitude_table(frame[chosen], rounds=5, replicates=200)


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


def test_a_saved_table_is_the_same_when_it_is_read(table: MagnitudeTable, tmp_path: Path) -> None:
    table.save(tmp_path)
    again = read_magnitude(tmp_path)
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(table, name), getattr(again, name))
    assert str(again) == str(table)
    assert again.to_json() == table.to_json()
    (tmp_path / "magnitude.json").write_text("{}")
    with pytest.raises(ValueError, match="damaged"):
        read_magnitude(tmp_path)


def test_the_printed_table_tells_known_minds_beside_each_score(table: MagnitudeTable) -> None:
    told = str(table)
    for word in (
        "non-adapting",
        "adapting",
        "perfect",
        "bayes_oracle",
        "S composite",
        "sequential",
    ):
        assert word in told
    assert "Trials without a readable answer, left out and counted: 0." in told


def test_pages_tell_what_each_condition_adds() -> None:
    told = {line.partition(":")[0]: line for line in condition_words("marker_location")}
    assert set(told) == set(CONDITIONS)
    assert "Bayesian observer" in told["verbal"]
    assert "8 px" in told["constant_noise"]
    assert "3 earlier trials" in told["short_context"]
    assert "words alone" in condition_words("duration")[CONDITIONS.index("gradual_noise")]


def test_the_report_has_a_page_of_pictures_per_task(small: MagnitudeTable, tmp_path: Path) -> None:
    small.save(tmp_path)
    page = report(tmp_path)
    assert {file.name for file in page.parent.glob("*.html")} == {
        "report.html",
        "line_ratio.html",
    }
    whole = page.read_text(encoding="utf-8")
    assert "turner" in whole
    assert "no base trials of marker_location" in whole
    ratio = (tmp_path / "line_ratio.html").read_text(encoding="utf-8")
    assert ratio.count("<figure ") == 5
    assert "Weight of the text by blur" in ratio


def test_a_picture_of_stimuli_has_one_panel_per_condition_and_blur() -> None:
    # One in words, nine conditions, of which one at three times; words alone are never blurred.
    assert stimuli("line_ratio").count('id="axes_') == 12


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


def test_two_runs_of_the_same_name_stay_two_sessions(frame: pd.DataFrame, tmp_path: Path) -> None:
    one = frame[(frame["environment"] == "duration") & (frame["condition"] == 0)]
    one = one[one["model"] == "steady"].assign(subject="0")
    for name in ("first", "second"):
        Trials.from_frame(one).save(tmp_path / f"{name}.csv")
    found = magnitude_table([tmp_path], rounds=2)
    assert found.cells["n"].tolist() == [198]
    assert found.trials["session"].nunique() == 2


def test_long_names_are_cut_and_stay_different(frame: pd.DataFrame, tmp_path: Path) -> None:
    one = frame[(frame["environment"] == "duration") & (frame["condition"] == 0)]
    long = "a mind whose name tells each of its many parameters, "
    found = magnitude_table(one.assign(model=long + one["model"]), rounds=0, replicates=0)
    assert found.participants == (f"{long}steady", f"{long}turner")
    assert len(set(found.labels.values())) == 2
    found.save(tmp_path)
    short = read_magnitude(tmp_path).labelled()
    assert max(map(len, short.participants)) < 40
    assert set(short.cells["participant"]) == set(short.participants)
    assert set(short.trials["model"]) == set(short.participants)
    assert short.cues.empty
    assert long not in str(found)


def test_runs_that_cannot_be_told_apart_or_found_are_refused(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_runs(frame[(frame["environment"] == "duration")].drop(columns="model").assign(
        model=frame["model"], nobody=1), tmp_path / "runs")  # fmt: skip
    files = sorted((tmp_path / "runs").iterdir())[:2]
    for file in files:
        Trials.from_frame(Trials.load(file).frame.drop(columns="model")).save(file)
    with pytest.raises(SystemExit) as end:
        main(["score", *map(str, files)])
    assert end.value.code == 2
    assert "Name another with --by" in capsys.readouterr().err
    found = magnitude_table(files, by="nobody", rounds=0)
    assert found.participants == ("1",)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has none"):
        magnitude_table([tmp_path / "empty"])
    with pytest.raises(ValueError, match="there is no"):
        magnitude_table([tmp_path / "nowhere", *files])
    with pytest.raises(ValueError, match="at least 0"):
        magnitude_table(files, by="nobody", rounds=-1)
