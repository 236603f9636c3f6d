"""Members of a file, of a file that imports a second one, and of a package: all behave alike."""

import json
import os
import subprocess
import sys

import pytest
from walked import PAGES, blocks_of

PAGE = next(page for page in PAGES if page.stem == "add-an-environment")
EXPERIMENT = next(b.text for b in blocks_of(PAGE) if b.is_file and "class SureOrGamble" in b.text)
OTHERS = """
import numpy as np

from knownminds.agents import Model, positive
from knownminds.inference import Dial, session_measure


class Gambler(Model):
    source = "a test"
    beta = positive("inverse temperature", mean=-2.0)

    def respond(self, trial):
        return self.beta * (trial.prize * trial.percent / 100 - 50)


@session_measure(
    name="daring", summary="how often one gambles", source="a test", violator="gambler",
    environments=("sure_or_gamble",), columns=("action",), reason="no trial",
    bounds=(0.0, 1.0), dial=Dial({"beta": 1.0}, reach=2.0, steps=5),
)
def daring(rows):
    return rows.mean(rows["action"], np.isfinite(rows["action"]))
"""
LISTED = """
[environments]
sure_or_gamble = "experiment"
[models]
gambler = "others"
[measures]
daring = "others"
"""


def one_file(folder):
    (folder / "mine.py").write_text(EXPERIMENT + OTHERS)
    (folder / "knownminds.toml").write_text('plugins = ["mine.py"]\n')


def two_files(folder):
    (folder / "sure_or_gamble.py").write_text(EXPERIMENT)
    (folder / "mine.py").write_text(f"from sure_or_gamble import SureOrGamble\n{OTHERS}")
    (folder / "knownminds.toml").write_text('plugins = ["mine.py"]\n')


def a_package(folder):
    package, about = folder / "site" / "of_mine", folder / "site" / "of_mine-1.dist-info"
    for made in (package, about):
        made.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "experiment.py").write_text(EXPERIMENT)
    (package / "others.py").write_text(OTHERS)
    (package / "members.toml").write_text(LISTED)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: of_mine\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[knownminds]\nof_mine = of_mine\n")


COMMANDS = (
    ("show", "sure_or_gamble"),
    ("recover", "sure_or_gamble", "--subjects", "4", "--replicates", "4", "--workers", "2",
     "--method", "map", "--seed", "1", "--out", "study"),
    ("run", "sure_or_gamble", "--llm", "synthetic:gambler", "--sessions", "2", "--out", "run"),
    ("score", "run/trials.parquet"),
    ("report", "study"),
)  # fmt: skip


def told(folder):
    """What each command says, in processes of their own; as data where it has numbers."""
    env = {**os.environ, "PYTHONPATH": str(folder / "site")}
    said = []
    for command in COMMANDS:
        words = [sys.executable, "-m", "knownminds", *command, "--json"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=env)
        assert done.returncode == 0, (command, done.stderr)
        content = json.loads(done.stdout)
        said.append(content.get("tables", sorted(content)))
    return said


@pytest.mark.long
def test_members_behave_alike_wherever_they_lie(tmp_path):
    """The usual model of the experiment is the one that lies with it."""
    answers = []
    for lay_out in (one_file, two_files, a_package):
        folder = tmp_path / lay_out.__name__
        folder.mkdir()
        lay_out(folder)
        answers.append(told(folder))
    assert answers[0] == answers[1] == answers[2]
    assert "daring" in json.dumps(answers[0])
    assert (
        json.loads((folder / "study" / "study.json").read_text())["cells"][0]["model"] == "gambler"
    )
