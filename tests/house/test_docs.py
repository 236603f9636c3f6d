"""Every code block of the documentation is run as it is written; what takes long is parsed."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import pytest
import typer
from registries import as_they_were

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make
from knownminds.inference import MEASURES
from knownminds.validation.cli import app, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)[ ]*(?:title=\"([^\"]*)\")?[ ]*\n(.*?)^```", re.M | re.S)

# Titles of blocks that are parsed and not run, and of those that show what was printed.
NOT_RUN = (
    "installs",
    "needs a key",
    "needs a cluster",
    "takes minutes",
    "until Ctrl-C",
    "in another terminal",
    "tests",
    "in the repository",
)
OUTPUT = "output"
LANGUAGES = ("bash", "python", "text", "toml", "csv", "json", "console")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line on which it begins."""

    language: str
    title: str
    text: str
    line: int

    @property
    def is_file(self):
        return bool(re.fullmatch(r"\w+\.\w+", self.title))


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2] or "", found[3], text[: found.start()].count("\n") + 2)
        for found in BLOCK.finditer(text)
    ]


def commands_of(text):
    """Return the words of every command in lines of a shell, comments left out."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words:
            end = next((i for i, word in enumerate(words) if word in ("&&", "&")), len(words))
            if words[:end]:
                yield words[:end]
            words = words[end + 1 :]


def check_parses(words):
    """Let the command line's own parser take the words, and look up the names in them."""
    taken = []
    shadow = typer.Typer(add_completion=False)
    for command in app.registered_commands:

        def record(**given):
            taken.append(given)

        declared = inspect.signature(command.callback, eval_str=True)
        record.__signature__ = declared
        record.__annotations__ = {name: p.annotation for name, p in declared.parameters.items()}
        shadow.command(command.name or command.callback.__name__)(record)
    if "--plugin" in words:  # taken off every command before it is read; a page has run it before
        where = words.index("--plugin")
        words = words[:where] + words[where + 2 :]
    shadow(args=words, standalone_mode=False)
    (given,) = taken
    place, model = given.get("environment"), given.get("model")
    minds = [model] if isinstance(model, str) else model or []
    assert place is None or place in ENVIRONMENTS, place
    assert set(minds) <= set(AGENTS), minds
    named = given.get("measure") or []
    assert set([named] if isinstance(named, str) else named) <= set(MEASURES), named
    known = set(make(place).settings) if place else set()
    llm = given.get("llm") or []
    asked = [llm] if isinstance(llm, str) else llm
    minds = [*minds, *(one.removeprefix("synthetic:") for one in asked if "synthetic:" in one)]
    known |= {name for mind in minds for name in AGENTS[mind].parameters.names}
    if place:
        named = {text.partition("=")[0] for text in given.get("values") or []}
        assert named <= known, named


def parsed(block):
    """Check a block that is not run; return how many of our commands it has."""
    found = 0
    if block.language == "python":
        tree = ast.parse(block.text)
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), block.title, "exec"), {})
        return 1
    for words in commands_of(block.text):
        if words[0].rpartition("/")[2] == "knownminds":
            check_parses(words[1:])
            found += 1
    return found


@pytest.fixture
def registries():
    """Forget afterwards what a page has registered and imported."""
    loaded = set(sys.modules)
    with as_they_were():
        yield
    for name in set(sys.modules) - loaded:
        if not name.startswith("knownminds") and "." not in name:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).parent == Path.cwd():
                del sys.modules[name]


@pytest.fixture
def page_folder(tmp_path, monkeypatch, registries):
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def exit_code(words):
    try:
        main(words)
    except SystemExit as end:
        return end.code or 0
    return 0


def run_page(page, folder, capsys, languages=LANGUAGES):
    """Run the blocks of a page in order, in one folder and one namespace."""
    namespace, printed = {"__name__": "page"}, ""
    for block in blocks_of(page):
        place = f"{page.relative_to(ROOT)}, line {block.line}"
        assert block.language in LANGUAGES, place
        if block.language not in languages:
            continue
        if block.is_file:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.title == OUTPUT:
            assert " ".join(block.text.split()) in " ".join(printed.split()), f"{place}: {printed}"
        elif block.title in NOT_RUN:
            parsed(block)
        elif block.language == "python":
            assert not block.title, f"{place}: unknown title"
            exec(compile(block.text, place, "exec"), namespace)
            printed = capsys.readouterr().out
        elif block.language == "bash":
            assert not block.title, f"{place}: unknown title"
            printed = ""
            for words in commands_of(block.text):
                assert words[0] == "knownminds", place
                code = exit_code(words[1:])
                out, err = capsys.readouterr()
                assert code == 0, f"{place}: {' '.join(words)}: {err}"
                printed += out
    return namespace


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_the_blocks_of_a_page_run_as_they_are_written(page, page_folder, capsys):
    run_page(page, page_folder, capsys)


def test_the_commands_of_the_readme_are_ones_that_exist(page_folder, capsys):
    found = 0
    for block in blocks_of(ROOT / "README.md"):
        if block.language == "bash":
            found += parsed(block)
        else:
            exec(compile(block.text, f"README.md, line {block.line}", "exec"), {})
    assert found >= 14
    assert "alpha_positive" in capsys.readouterr().out


def test_the_readme_is_short_and_what_it_points_to_is_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1540  # half of what it was
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert len(links) >= 8
    assert not [link for link in links if not (ROOT / link).exists()]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("knownminds recover instrumental_learning --subject 200", "No such option.*--subject"),
        ("knownminds recover instrumental_learning --subjects many", "valid int"),
        ("knownminds recovery instrumental_learning", "No such command"),
        ("knownminds recover instrumental_lerning", "instrumental_lerning"),
        ("knownminds recover instrumental_learning --model rescorla_wagner_duel", "duel"),
        ("knownminds recover instrumental_learning --set n_visit=3", "n_visit"),
        ("knownminds audit optimism", "optimism"),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line, said):
    # Typer raises the errors of its own copy of click, whose place differs between versions.
    with pytest.raises(Exception, match=said):
        parsed(Block("bash", "takes minutes", line, 1))


def test_a_line_that_goes_on_and_a_comment_are_read_as_a_shell_reads_them():
    text = "# first\nknownminds list --json # all\na b \\\n  c && d\n"
    assert list(commands_of(text)) == [["knownminds", "list", "--json"], ["a", "b", "c"], ["d"]]


def test_the_agent_of_the_page_keeps_the_contract_of_all_agents(page_folder, capsys):
    namespace = run_page(
        ROOT / "docs" / "how-to" / "add-an-agent.md", page_folder, capsys, {"python"}
    )
    model = namespace["ForgetfulLearner"]
    for name in [name for name in AGENTS if name != model.name]:
        del AGENTS[name]
    file = ROOT / "tests" / "core" / "test_agents.py"
    spec = importlib.util.spec_from_file_location("contract_of_agents", file)
    contract = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(contract)
    assert (model.name, "instrumental_learning") in contract.PAIRS
    tests = {k: v for k, v in vars(contract).items() if k.startswith("test_")}
    assert len(tests) >= 12
    for test in tests.values():
        if "lapse" not in inspect.signature(test).parameters:
            test(model)
            continue
        (marks,) = [mark for mark in test.pytestmark if mark.args[0] == "lapse"]
        for lapse in marks.args[1]:
            test(model, lapse)


def test_pictures_are_small_and_say_in_words_what_they_show():
    shown = set()
    for page in PAGES:
        for text, file in re.findall(r"!\[(.*?)\]\((.*?)\)", page.read_text(encoding="utf-8")):
            assert len(text) > 25, file
            shown.add((page.parent / file).resolve())
    stored = set((ROOT / "docs" / "pictures").iterdir())
    assert shown == stored
    assert all(file.stat().st_size < 400_000 for file in stored)
