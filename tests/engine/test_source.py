"""What counts as changed code: the rooms a study runs through, and the files of its members."""

import ast
import importlib.resources
import shutil
import sys
from pathlib import Path

import pytest
from house.test_layout import FLOORS, ROOT

from knownminds.agents import AGENTS, RescorlaWagner
from knownminds.validation.engine import source
from knownminds.validation.engine.source import source_hash
from knownminds.validation.engine.study import Cell, Study


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


@pytest.mark.parametrize(
    "name",
    [
        "environments/bandits/instrumental_learning.py",
        "environments/bandits/instrumental_learning.toml",
        "environments/record/trials.py",
        "agents/bandits/rescorla_wagner.py",
        "agents/play.py",
        "inference/fits/point.py",
        "validation/recovery/parameter_recovery.py",
        "validation/engine/population.py",
    ],
)
def test_what_a_study_runs_through_counts(changes, name):
    assert changes(name, RECOVER)


@pytest.mark.parametrize(
    "name",
    [
        "validation/data/phenotype.py",
        "validation/recovery/recovery_page.py",
        "validation/pages/figures.py",
        "validation/power/power_study.py",
        "environments/causes/collider.py",
        "agents/causes/noisy_or.py",
        "inference/causes/alignment.py",
        "environments/formats/psych_101.py",
        "llm_adapters/providers/openai.py",
        "llm_adapters/known_minds/synthetic.py",
    ],
)
def test_what_it_does_not_run_through_does_not(changes, name):
    assert not changes(name, RECOVER)


def test_another_family_and_another_command_count_for_their_studies(changes):
    assert changes("agents/causes/causal_reasoner.py", COLLIDER)
    assert not changes("agents/bandits/rescorla_wagner.py", COLLIDER)
    assert changes("llm_adapters/known_minds/synthetic.py", CHANNEL)
    assert not changes("llm_adapters/runs/ledger.py", CHANNEL)


def test_rivals_that_only_the_question_names_count():
    plain = study("confuse", "instrumental_learning", "rescorla_wagner")
    rival = study("confuse", "instrumental_learning", "rescorla_wagner", rivals=["noisy_or"])
    assert source_hash(plain) != source_hash(rival)


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


def test_a_class_without_a_file_counts_by_its_bases(monkeypatch):
    made = type("Made", (RescorlaWagner,), {"__module__": "__main__"})
    monkeypatch.setitem(AGENTS, "made", made)
    assert source_hash(study(model="made"))


@pytest.mark.parametrize("command", list(source.COMMANDS))
def test_what_a_study_runs_through_imports_nothing_that_does_not_count(command):
    """But for registries, whose members count where they are named, and how a study is asked."""
    one = study(command)
    counted = {name for name, _ in source._files(one)}
    for name in sorted(counted):
        # Lists of members, and rooms that look up what their module had, import at will.
        if not name.endswith(".py") or name.endswith(("/nesting.py", "/__init__.py")):
            continue
        folder = name.rpartition("/")[0]
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        only_types = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or id(node) in only_types:
                continue
            module = node.module or ""
            if node.level == 1:
                inside = [f"{folder}/{module}"]
            elif module.startswith("knownminds.") and module.count(".") >= 2:
                parts = module.split(".")[1:]  # a floor, perhaps a room, and a module or a room
                if (ROOT / Path(*parts)).is_dir():
                    inside = ["/".join([*parts, alias.name]) for alias in node.names]
                else:
                    inside = ["/".join([parts[0], *([""] * (len(parts) == 2)), *parts[1:]])]
            else:
                continue
            for other in inside:
                known = f"{other}.py" in counted or not (ROOT / f"{other}.py").is_file()
                known |= other.rpartition("/")[2] + ".py" in source.SAYS
                assert known, f"{name} imports {other}, which does not count for {command}"
