"""What counts as changed code: the rooms a study runs through, and the files of its members."""

import importlib.resources
import shutil
import sys
from pathlib import Path

import pytest

from knownminds.agents import AGENTS
from knownminds.validation.engine.source import source_hash
from knownminds.validation.engine.study import Cell, Study

ROOT = Path(__file__).parents[2]
FLOORS = ("environments", "agents", "inference", "llm_adapters", "validation")


def study(command="recover", environment="instrumental_learning", model="rescorla_wagner", **more):
    return Study(command, (Cell(environment, {}, model),), question=more)


RECOVER, COLLIDER = study(), study(environment="collider", model="noisy_or")
CHANNEL = study("channel")


@pytest.fixture
def changes(tmp_path, monkeypatch):
    """Say whether a comment at the end of a file of ours changes the hash of a study."""
    for floor in FLOORS:
        shutil.copytree(
            ROOT / floor, tmp_path / floor, ignore=shutil.ignore_patterns("__pycache__")
        )
    before = {id(s): source_hash(s) for s in (RECOVER, COLLIDER, CHANNEL)}

    def files(name):
        return tmp_path / name.removeprefix("knownminds.")

    monkeypatch.setattr(importlib.resources, "files", files)
    assert source_hash(RECOVER) == before[id(RECOVER)]

    def told(name, of):
        file = tmp_path / name
        content = file.read_bytes()
        file.write_bytes(content + b"\n# changed")
        changed = source_hash(of) != before[id(of)]
        file.write_bytes(content)
        return changed

    return told


COUNT = (
    "environments/bandits/instrumental_learning.py",
    "environments/bandits/instrumental_learning.toml",
    "environments/record/trials.py",
    "agents/bandits/rescorla_wagner.py",
    "agents/play.py",
    "inference/fits/point.py",
    "validation/recovery/parameter_recovery.py",
    "validation/engine/population.py",
)
DO_NOT = (
    "validation/data/phenotype.py",
    "validation/recovery/recovery_page.py",
    "validation/power/power_study.py",
    "environments/causes/collider.py",
    "agents/causes/noisy_or.py",
    "llm_adapters/providers/openai.py",
)


def test_what_a_study_runs_through_counts_and_nothing_else(changes):
    assert [name for name in COUNT if not changes(name, RECOVER)] == []
    assert [name for name in DO_NOT if changes(name, RECOVER)] == []


def test_another_family_and_another_command_count_for_their_studies(changes):
    assert changes("agents/causes/noisy_or.py", COLLIDER)
    assert not changes("agents/bandits/rescorla_wagner.py", COLLIDER)
    assert changes("llm_adapters/known_minds/synthetic.py", CHANNEL)
    assert not changes("llm_adapters/runs/ledger.py", CHANNEL)


def test_an_edited_model_of_a_users_own_is_noticed(tmp_path, monkeypatch):
    file = tmp_path / "my_model.py"
    file.write_text(
        "from knownminds.agents import RescorlaWagner\nclass Mine(RescorlaWagner):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import my_model

    monkeypatch.setitem(AGENTS, "mine", my_model.Mine)
    mine = study(model="mine")
    before = source_hash(mine)
    assert before != source_hash(RECOVER)
    file.write_text(file.read_text() + "# edited\n")
    assert source_hash(mine) != before
    del sys.modules["my_model"]
