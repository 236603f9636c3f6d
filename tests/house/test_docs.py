"""Commands, names and links of the documentation exist; `tests/walked.py` runs its blocks."""

import ast
import re
import shlex
import sys

import pytest
from walked import PAGES, ROOT, blocks_of

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make
from knownminds.inference import MEASURES
from knownminds.members import KINDS, elsewhere
from knownminds.validation.cli import command as command_of
from knownminds.validation.studies import AUDITS

pytestmark = pytest.mark.skipif(bool(elsewhere()), reason="the pages tell of both packages")
README = ROOT / "README.md"
REGISTRIES = {"environment": ENVIRONMENTS, "model": AGENTS, "measure": MEASURES}
GROUP = command_of()
of_each_page = pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)


def commands_of(text):
    """Yield the words of every command in lines of a shell, comments left out."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words:
            end = next((i for i, word in enumerate(words) if word in ("&&", "&")), len(words))
            if words[:end]:
                yield words[:end]
            words = words[end + 1 :]


def several(given):
    return [given] if isinstance(given, str) else list(given or ())


def check_command(words):
    """Let the command's own parser read the words, and look up the names in them."""
    if len(words) > 1 and words[1].endswith(".toml"):
        return  # a run file, which is read when the page is walked
    given = GROUP.commands[words[0]].make_context(words[0], list(words[1:])).params
    environment, models = (
        given.get("environment"),
        several(given.get("models") or given.get("model")),
    )
    assert environment is None or environment in ENVIRONMENTS, environment
    assert {*models} <= {*AGENTS}, models
    assert {*several(given.get("measure"))} <= {*MEASURES, *AUDITS}, given["measure"]
    if isinstance(environment, str):
        llm = [one.partition(":") for one in several(given.get("llm"))]
        models += [name for kind, _, name in llm if kind == "synthetic"]
        known = {*make(environment).settings}
        known |= {name for model in models for name in AGENTS[model].parameters.names}
        texts = given.get("truth") or given.get("values") or given.get("settings") or []
        named = {text.partition("=")[0] for text in texts}
        assert named <= known, named


@of_each_page
def test_the_commands_and_imports_of_a_page_exist(page):
    blocks = blocks_of(page)
    if any(block.is_file and block.language == "python" for block in blocks):
        return  # which brings members of its own; walking the page looks them up
    for block in blocks:
        if block.language == "bash":
            for words in commands_of(block.text):
                if words[0].rpartition("/")[2] == "knownminds":
                    check_command(words[1:])
        elif block.language == "python":
            imports = [
                node for node in ast.parse(block.text).body
                if isinstance(node, ast.ImportFrom) and node.module.startswith("knownminds.")
            ]  # fmt: skip
            exec(compile(ast.Module(imports, []), page.name, "exec"), {})


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("recover instrumental_learning --subject 200", "--subject"),
        ("recovery instrumental_learning", "recovery"),
        ("recover instrumental_lerning", "lerning"),
        ("recover instrumental_learning --model rescorla_wagner_duel", "duel"),
        ("recover instrumental_learning --set n_visit=3", "n_visit"),
        ("audit optimism", "optimism"),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line, name):
    with pytest.raises(Exception, match=name):
        check_command(line.split())


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *PAGES], ids=lambda page: page.stem)
def test_the_tests_that_a_page_names_are_there(page):
    if page.name == "CHANGELOG.md":
        return  # which tells of what was
    text = page.read_text(encoding="utf-8")
    for file, name in re.findall(r"\b(tests/[\w/.-]*\w)(?:::(\w+))?", text):
        assert (ROOT / file).exists(), file
        assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), name
    defined = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", file.read_text(encoding="utf-8"))
    }
    assert {*re.findall(r"`(test_\w+)`", text)} <= defined


@of_each_page
def test_what_a_page_links_to_is_there(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_table_of_a_list_of_members_is_documented():
    page = (ROOT / "docs" / "how-to" / "add-an-agent.md").read_text(encoding="utf-8")
    assert [kind for kind, held in KINDS.items() if f"| `{kind}` | {held} |" not in page] == []


def test_every_experiment_and_model_has_its_line_in_the_pages():
    pages = [ROOT / "docs" / f"{name}.md" for name in ("experiments", "models")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in (*ENVIRONMENTS, *AGENTS) if f"`{name}`" not in text] == []


@pytest.mark.long
def test_all_pages_are_laid_out(tmp_path, monkeypatch):
    """Every generated part is there: commands, members, columns, and names that have a source."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    before = {*sys.modules}
    from build import lay_out

    lay_out(tmp_path)
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "docs")):
            del sys.modules[name]
    pages = {
        str(page.relative_to(tmp_path / "docs")): page.read_text(encoding="utf-8")
        for page in (tmp_path / "docs").rglob("*.md")
    }
    assert {*pages} == {str(page.relative_to(ROOT / "docs")) for page in PAGES}
    for command in GROUP.commands:
        assert f"\n## {command}\n" in pages["reference/command-line.md"]
    gallery = pages["gallery.md"]
    for kind, members in REGISTRIES.items():
        for name, member in members.items():
            assert gallery.count(f"{{#{kind}-{name}}}") == 1
            assert member.summary in gallery
    links = set(re.findall(r"\]\(#([^)]+)\)", gallery))
    assert links <= set(re.findall(r"\{#([^}]+)\}", gallery))
    assert (tmp_path / "package" / "knownminds" / "agents" / "__init__.py").is_file()
    for name in re.findall(r"^::: (.+)$", "\n".join(pages.values()), re.MULTILINE):
        module, _, defined = name.rpartition(".")
        file = (tmp_path / "package").joinpath(*module.split("."))
        file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        stands = rf"^(class |(async )?def )?{defined}\b|\b{defined}$"
        assert re.search(stands, file.read_text(encoding="utf-8"), re.MULTILINE), name
