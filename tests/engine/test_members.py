"""Members of a user's own files: known to every command, to workers, and to the report later."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from knownminds.agents import AGENTS, Model, positive
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES
from knownminds.llm_adapters import ADAPTERS
from knownminds.validation.cli import main
from knownminds.validation.engine import members
from knownminds.validation.engine.cells import Cell
from knownminds.validation.engine.study import Study, claim, read_study

# The kernels are those of a shipped model, so that nothing has to be compiled.
FILE = '''
from knownminds.agents import RescorlaWagner

class {name}(RescorlaWagner):
    """Learns one value."""

    summary = "learns one value"
    log_likelihood = staticmethod(RescorlaWagner.log_likelihood)
'''
COMMAND = ("recover", "instrumental_learning", "--subjects", "4", "--replicates", "2", "--trials")


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch, tmp_path):
    """Work in an empty folder, and forget afterwards what was made known."""
    tables = (AGENTS, ENVIRONMENTS, MEASURES, ADAPTERS)
    before, loaded = [dict(table) for table in tables], set(sys.modules)
    monkeypatch.setattr(members, "_files", [])
    monkeypatch.setattr(members, "_as_loaded", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield
    for name in set(sys.modules) - loaded:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).parent == tmp_path:
            del sys.modules[name]
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)


def run(*words):
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code or 0


def written(folder, stem, name):
    file = folder / f"{stem}.py"
    file.write_text(FILE.format(name=name))
    return str(file)


@pytest.mark.long
def test_two_workers_and_the_report_after_a_restart_know_a_model_of_a_users_file(
    tmp_path, capsys, monkeypatch
):
    plugin = written(tmp_path, "of_workers", "OfWorkers")
    folder = str(tmp_path / "study")
    asked = ("--model", "of_workers", "--plugin", plugin, "--workers", "2", "--out", folder)
    assert run(*COMMAND, "24", *asked) == 0
    assert "Can of_workers be recovered from instrumental_learning" in capsys.readouterr().out
    del AGENTS["of_workers"], sys.modules["of_workers"]  # as after a restart
    monkeypatch.setattr(members, "_files", [])
    assert run("report", folder) == 0
    del AGENTS["of_workers"]
    monkeypatch.setattr(members, "_files", [])
    (tmp_path / "of_workers.py").rename(tmp_path / "elsewhere.py")
    assert run("report", folder) == 2
    assert "was made with --plugin" in capsys.readouterr().err


@pytest.mark.parametrize("taken", [False, True], ids=["a part", "the member"])
def test_a_file_finds_what_lies_beside_it(tmp_path, taken):
    written(tmp_path, "its_neighbour", "OfTwoFiles")
    file = tmp_path / "of_two_files.py"
    again = "" if taken else 'class OfTwoFiles(OfTwoFiles):\n    """Again."""\n'
    file.write_text(f"from its_neighbour import OfTwoFiles\n\n{again}")
    assert run("list", "--plugin", str(file)) == 0
    assert AGENTS["of_two_files"].__module__ == ("its_neighbour" if taken else "of_two_files")


@pytest.mark.long
def test_two_workers_find_what_lies_beside_a_file(tmp_path, capsys):
    """Processes are started anew, so that nothing of this one's is known to them."""
    written(tmp_path, "its_neighbour", "OfTwoFiles")
    file = tmp_path / "of_two_files.py"
    file.write_text("from its_neighbour import OfTwoFiles\n")
    asked = ("--model", "of_two_files", "--plugin", str(file), "--workers", "2")
    assert run(*COMMAND, "24", *asked) == 0
    assert "Can of_two_files be recovered" in capsys.readouterr().out


def test_a_study_does_not_go_on_once_the_code_of_its_members_was_edited(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    plugin, rates = Path(written(tmp_path, "edited_model", "EditedModel")), tmp_path / "rates.py"
    plugin.write_text(f"from rates import RATE\n{plugin.read_text()}")
    rates.write_text("RATE = 1\n")
    other = Path(written(tmp_path, "other_model", "OtherModel"))
    study = Study("recover", (Cell("instrumental_learning", {}, "edited_model"),))

    def claimed_anew():
        """Claim the folder of the study as a new process does."""
        for name in {"edited_model", "other_model", "rates"} & set(sys.modules):
            AGENTS.pop(name, None)
            del sys.modules[name]
        members._files.clear()
        members._as_loaded.clear()
        for file in (plugin, other):
            members.load_file(file)
        claim(study, tmp_path / "study")

    (tmp_path / "study").mkdir()
    claimed_anew()
    for file in (plugin, rates):
        text = file.read_text()
        file.write_text(f"{text}# edited\n")
        with pytest.raises(ValueError, match=f"before {file.stem} was edited"):
            claimed_anew()
        with pytest.raises(ValueError, match=f"before {file.stem} was edited"):
            read_study(tmp_path / "study")
        file.write_text(text)
    other.write_text(f"{other.read_text()}# edited\n")
    claimed_anew()
    # What runs is no longer what stands in the file.
    plugin.write_text(f"{plugin.read_text()}# edited\n")
    with pytest.raises(ValueError, match=r"edited_model\.py was edited since it was loaded"):
        read_study(tmp_path / "study")


MEASURE = """
from knownminds.inference import session_measure

@session_measure(
    name="liking", summary="", source="", environments=("instrumental_learning",),
    violator="rescorla_wagner", columns=("action",), reason="none",
)
def liking(rows):
    return rows.mean(rows["action"])
"""


def test_code_is_that_of_the_members_that_are_named_of_a_measure_too(tmp_path):
    (tmp_path / "of_measure.py").write_text(MEASURE)
    members.load_file(tmp_path / "of_measure.py")
    assert list(members.code_of({"effect": ["liking=0.1"]})) == ["of_measure"]
    assert members.code_of("rescorla_wagner and likings") == {}


def test_code_of_a_notebook_is_that_of_its_methods(monkeypatch):
    def registered(number):
        """Write down a class as a cell does: its code lies in no file."""
        space = {"__name__": "__main__", "Model": Model, "positive": positive}
        lines = ("class Cell(Model):", "    '.'", "    b = positive('b')",
                 "    def respond(self, trial):", f"        return {number} * self.b")  # fmt: skip
        exec("\n".join(lines), space)
        members.register(space["Cell"])
        return members.code_of(["cell"])

    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    assert registered(1) == registered(1) != registered(2)


def test_a_list_in_the_folder_is_read(tmp_path, capsys):
    written(tmp_path, "listed_model", "ListedModel")
    (tmp_path / "knownminds.toml").write_text('plugins = ["listed_model.py"]\n')
    assert run("show", "listed_model") == 0
    assert "learns one value" in capsys.readouterr().out


ADAPTER = """
from knownminds.llm_adapters import InProcess, Reply, Usage


class FirstNamed(InProcess):
    provider = "first_named"

    async def complete(self, prompt, *, settings):
        named = prompt.text.split("machine ")[-3][0]
        return Reply(named, usage=Usage(0, 1), model_served=self.model)
"""


def test_an_adapter_of_a_users_file_takes_a_run(tmp_path):
    (tmp_path / "first_named.py").write_text(ADAPTER)
    words = ("instrumental_learning", "--llm", "first_named:rule", "--out", str(tmp_path / "run"))
    assert run("run", *words, "--plugin", str(tmp_path / "first_named.py")) == 0
    frame = pd.read_parquet(tmp_path / "run" / "trials.parquet")
    assert (frame["model"] == "rule").all()
    assert (frame["action"] == frame["first"]).all()


PACKAGE = """
from knownminds.agents import Model, positive

class Offered(Model):
    '''What an installed package offers.'''

    beta = positive("bias")

    def respond(self, trial):
        return self.beta
"""


def installed(folder, name, listed):
    """Lay out a package as pip leaves it, with one module and what it lists; return its folder."""
    package, about = folder / name, folder / f"{name}-1.dist-info"
    for made in (package, about):
        made.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "models.py").write_text(PACKAGE)
    (package / "members.toml").write_text(listed)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[knownminds]\nof_it = {name}\n")
    return package


@pytest.mark.parametrize(
    ("listed", "code", "told"),
    [
        ('[models]\noffered = "models"\n', 0, "What an installed package offers"),
        ('[models]\nperseverator = "models"\n', 2, "and so does knownminds. Uninstall one"),
        ('[models]\noffered = "models"\n[model]\n', 2, "got 'model'. Rename it"),
        ('[models]\nof = "models"\n', 2, "There is no"),
        ('[models]\noffered = "models"\nof = "models"\n', 0, "What an installed"),
    ],
    ids=["a model", "a name that is taken", "no kind", "another name", "one that is not there"],
)
def test_what_installed_packages_list_is_known(tmp_path, listed, code, told):
    installed(tmp_path, "of_others", listed)
    words = [sys.executable, "-m", "knownminds", "show", "offered"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert done.returncode == code, done.stderr
    assert told in done.stdout + done.stderr


ALONE = (
    "import importlib.metadata, sys\nimportlib.metadata.entry_points = lambda **how: ()\n"
    "from knownminds.validation.cli import main\nmain(sys.argv[1:])"
)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("recover", "risky_choice"), 2, "The environment 'risky_choice' is part of"),
        (
            ("recover", "two_step", "--model", "prospect_theory"),
            2,
            "The model 'prospect_theory' is part",
        ),
        (("list",), 0, "more are in"),
    ],
)
def test_what_is_known_and_not_installed_is_named_with_its_package(words, code, told):
    command = [sys.executable, "-c", ALONE, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert told in said
    assert "pip install knownminds-more" in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "A plugin is a Python file; there is no"),
        ("import nothing_of_the_kind\n", "cannot be run: ModuleNotFoundError"),
        ("from .beside import Anything\n", "Write 'from helper import ...' for 'from .helper"),
        (FILE.format(name="Perseverator"), "There is a model 'perseverator' already"),
    ],
)
def test_what_cannot_be_loaded_is_told_in_a_sentence(tmp_path, capsys, text, told):
    file = tmp_path / "wrong_one.py"
    if text is not None:
        file.write_text(text)
    assert run("list", "--plugin", str(file)) == 2
    assert told in capsys.readouterr().err
