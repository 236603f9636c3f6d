"""A Psych-DS folder: by its own validator where that is installed, by its rules everywhere."""

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from played import played

from knownminds.environments import Trials
from knownminds.environments.formats.psych_ds import read_psych_ds, write_psych_ds

# What npm has put here; see .ci/run. Its validator is psychds-validator, where the registry has
# it; jsonld and csv-parse are what that one reads metadata and data with.
MODULES = Path(__file__).parents[2] / ".psych-ds" / "node_modules"
KEYWORDS = {"study", "site", "subject", "session", "task", "condition", "trial", "stimulus"}
SPOKEN = 'Said "K",\nthen <none> \u00e9'


def runs():
    """Trials of two experiments, with a gap, odd text and a condition of somebody's own."""
    frame = pd.concat([played("instrumental_learning").frame, played("coins").frame])
    frame = frame.reset_index(drop=True).assign(site="A", raw_text=None, money=0.25)
    frame.loc[3, ["action", "reward"]] = None
    frame.loc[3, "outcome"] = "malformed"
    frame.loc[3, "raw_text"] = SPOKEN
    return Trials.from_frame(frame)


def broken_rules(folder):
    """Return which rules of Psych-DS 1.5 for files, names and metadata a folder breaks."""
    broken = []
    try:
        about = json.loads((folder / "dataset_description.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ["JSON_INVALID"]
    if about.get("@context") not in ("https://schema.org/", {"@vocab": "http://schema.org/"}):
        broken.append("INVALID_JSONLD_FORMATTING")
    if about.get("@type") != "Dataset":
        broken.append("INCORRECT_DATASET_TYPE")
    broken += [
        f"JSON_KEY_REQUIRED {key}"
        for key in ("name", "description", "variableMeasured")
        if not about.get(key)
    ]
    variables = about.get("variableMeasured", [])
    if any(v.get("@type") != "PropertyValue" for v in variables):
        broken.append("OBJECT_TYPE_MISSING")
    known = [v["name"] for v in variables]
    if len(known) != len(set(known)):
        broken.append("variable twice")
    files = sorted((folder / "data").rglob("*.csv"))
    if not files:
        broken.append("MISSING_DATAFILE")
    for file in files:
        if not re.fullmatch(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.csv", file.name):
            broken.append("FILENAME_KEYWORD_FORMATTING_ERROR")
        words = [part.split("-")[0] for part in file.name.split("_")[:-1]]
        if not set(words) <= KEYWORDS:
            broken.append("FILENAME_UNOFFICIAL_KEYWORD")
        with file.open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        if not set(header) <= set(known):
            broken.append("CSV_COLUMN_MISSING_FROM_METADATA")
        if any(len(row) != len(header) for row in rows):
            broken.append("CSV_HEADER_LENGTH_MISMATCH")
        if "row_id" in header and len({row[header.index("row_id")] for row in rows}) < len(rows):
            broken.append("ROWID_VALUES_NOT_UNIQUE")
    return broken


def test_the_folder_keeps_to_the_rules_and_gives_the_trials_back(tmp_path):
    write_psych_ds(runs(), tmp_path / "set", name="Two tasks", authors=["A. Person"], licence="CC0")
    assert broken_rules(tmp_path / "set") == []
    back = read_psych_ds(tmp_path / "set").frame  # experiment by experiment
    ours = runs().frame.sort_values(["environment", "trial"], ignore_index=True)
    pd.testing.assert_frame_equal(back[list(ours)], ours)
    names = sorted(
        p.relative_to(tmp_path / "set").as_posix() for p in (tmp_path / "set").rglob("*")
    )
    assert names == [
        "CHANGES.md",
        "README.md",
        "data",
        "data/study-TwoTasks_task-coins_data.csv",
        "data/study-TwoTasks_task-instrumentalLearning_data.csv",
        "dataset_description.json",
    ]
    about = json.loads((tmp_path / "set" / "dataset_description.json").read_text())
    assert (about["name"], about["license"]) == ("Two tasks", "CC0")
    assert about["author"] == [{"@type": "Person", "name": "A. Person"}]
    variables = {v["name"]: v for v in about["variableMeasured"]}
    assert variables["money"]["unitText"] == "US dollars"
    assert "malformed" in variables["outcome"]["description"]
    assert "site" in variables
    # What nobody said is not made up.
    write_psych_ds(runs(), tmp_path / "bare", name="bare")
    about = json.loads((tmp_path / "bare" / "dataset_description.json").read_text())
    assert not {"author", "license", "funder"} & set(about)


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        (lambda a: a.pop("description"), "JSON_KEY_REQUIRED description"),
        (lambda a: a.pop("@context"), "INVALID_JSONLD_FORMATTING"),
        (lambda a: a["variableMeasured"].pop(), "CSV_COLUMN_MISSING_FROM_METADATA"),
        (lambda a: a.update({"@type": "Thing"}), "INCORRECT_DATASET_TYPE"),
    ],
)
def test_a_damaged_data_set_breaks_a_rule(damage, rule, tmp_path):
    write_psych_ds(runs(), tmp_path, name="set")
    file = tmp_path / "dataset_description.json"
    about = json.loads(file.read_text())
    damage(about)
    file.write_text(json.dumps(about))
    assert rule in broken_rules(tmp_path)


def damaged(folder):
    """Write the two experiments with a column that the metadata do not tell."""
    write_psych_ds(runs(), folder, name="Two tasks")
    about = json.loads((folder / "dataset_description.json").read_text())
    about["variableMeasured"].pop()
    (folder / "dataset_description.json").write_text(json.dumps(about))
    return folder


def asked_of_node(code, package, folder):
    """Run a script with a package of npm on a folder, and return what it found."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not (MODULES / package).is_dir():
        pytest.skip(f"{package} is not installed in .psych-ds; see .ci/run")
    run = subprocess.run(
        ["node", "-e", code, str(MODULES), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    [line] = [x for x in run.stdout.splitlines() if x.startswith("FOUND")]
    return json.loads(line.removeprefix("FOUND"))


VALIDATE = """
const load = require('module').createRequire(process.argv[1] + '/here.js');
const { validate } = load('psychds-validator');
validate(process.argv[2]).then((found) => console.log('FOUND' + JSON.stringify(
  [...found.issues.values()].filter((i) => i.severity === 'error').map((i) => i.key))));
"""


@pytest.mark.long
@pytest.mark.long
def test_its_own_validator_finds_no_error(tmp_path):
    # It falls back on the schema in its package where there is no network.
    write_psych_ds(runs(), tmp_path / "good", name="Two tasks")
    assert asked_of_node(VALIDATE, "psychds-validator", tmp_path / "good") == []
    assert asked_of_node(VALIDATE, "psychds-validator", damaged(tmp_path / "wrong")) != []


# It takes a context of schema.org for this vocabulary, so that no network is needed.
