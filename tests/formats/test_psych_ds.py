"""A Psych-DS folder: by its own validator where that is installed, by its rules everywhere."""

import json
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from played import played

from knownminds.environments import Trials
from knownminds.environments.formats.psych_ds import write_psych_ds

# What npm has put here; see .ci/release. Its validator is psychds-validator, where the registry has
# it; jsonld and csv-parse are what that one reads metadata and data with.
MODULES = Path(__file__).parents[2] / ".psych-ds" / "node_modules"
SPOKEN = 'Said "K",\nthen <none> \u00e9'


def runs():
    """Trials of two experiments, with a gap, odd text and a condition of somebody's own."""
    frame = pd.concat([played("instrumental_learning").frame, played("coins").frame])
    frame = frame.reset_index(drop=True).assign(site="A", raw_text=None, money=0.25)
    frame.loc[3, ["action", "reward"]] = None
    frame.loc[3, "outcome"] = "malformed"
    frame.loc[3, "raw_text"] = SPOKEN
    return Trials.from_frame(frame)


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
        pytest.skip(f"{package} is not installed in .psych-ds; see .ci/release")
    run = subprocess.run(
        ["node", "-e", code, str(MODULES), str(folder)], capture_output=True, text=True, timeout=120
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
