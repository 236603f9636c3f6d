"""What the packages promise as a whole: layers, light imports, a complete wheel."""

import ast
import fnmatch
import importlib
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import knownminds

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BELOW = {
    "environments": set(),
    "agents": {"environments"},
    "inference": {"environments", "agents"},
    "llm_adapters": {"environments", "agents"},
    "validation": {"environments", "agents", "inference", "llm_adapters"},
}
FAMILIES = {"bandits", "magnitudes", "chance", "causes", "diagnosis", "decisions", "baselines"}
HEAVY = (
    "arviz", "inspect_ai", "matplotlib", "openai", "pandas", "pymc", "scipy.optimize",
    "scipy.stats", "statsmodels", "torch",
)  # fmt: skip


def modules(folder):
    return [file for file in sorted(folder.rglob("*.py")) if "__pycache__" not in file.parts]


def imported(file):
    """The dotted names that a file imports, also within functions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("floor", BELOW)
def test_imports_go_down_and_no_family_imports_another(floor):
    for file in modules(ROOT / floor):
        room = file.relative_to(ROOT).parts[1]
        for name in imported(file):
            ours, _, rest = name.partition(".")
            if ours != "knownminds" or not rest:
                continue
            other, *inner = rest.split(".")
            about = f"{file.relative_to(ROOT)} imports {name}"
            assert other in BELOW[floor] | {floor}, about
            if floor == "llm_adapters" and other == "agents":
                assert room == "known_minds", about
            if room in FAMILIES:
                assert not {*inner[:1]} & (FAMILIES - {room}), about


@pytest.mark.parametrize("file", modules(ROOT / "tests" / "acceptance"), ids=lambda f: f.stem)
def test_acceptance_tests_use_public_names_alone(file):
    """So that they can judge a redesign of everything behind these names."""
    for name in imported(file):
        package, _, member = name.rpartition(".")
        if package.partition(".")[0] == "knownminds":
            assert package.count(".") <= 1, f"{name} lies within a floor"
            public = importlib.import_module(package)
            assert member in (*public.__all__, *BELOW), f"{name} is not public"


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("floor", ["environments", "agents", "inference", "llm_adapters"])
def test_importing_a_floor_loads_nothing_heavy(floor):
    code = f"import sys, knownminds.{floor}; print({{*{HEAVY!r}}} & {{*sys.modules}} or '')"
    assert run(code).stdout.strip() == ""


def test_help_and_a_misspelt_name_need_nothing_that_computes():
    code = "import contextlib, io, sys\nfrom knownminds.validation.cli import main\n"
    code += "with contextlib.redirect_stderr(io.StringIO()) as errors:\n"
    for words in (["--help"], ["recover", "--help"], ["recover", "instrumental_lerning"]):
        code += f"    with contextlib.suppress(SystemExit): main({words!r})\n"
    code += "assert 'instrumental_learning' in errors.getvalue(), errors.getvalue()\n"
    code += f"assert not {{'numpy', 'numba', *{HEAVY!r}}} & {{*sys.modules}}"
    run(code)


def test_the_package_has_its_version_and_its_verbs():
    assert knownminds.__version__ == version("knownminds") == SETTINGS["project"]["version"]
    assert all(getattr(knownminds, verb).__name__ == verb for verb in knownminds.VERBS)


def test_the_wheel_lists_every_folder_and_every_data_file():
    setup = SETTINGS["tool"]["setuptools"]
    code = {file.parent.relative_to(ROOT) for floor in BELOW for file in modules(ROOT / floor)}
    assert {*setup["packages"]} == {
        "knownminds", *(".".join(("knownminds", *folder.parts)) for folder in code)
    }  # fmt: skip
    for folder in code:
        for file in (ROOT / folder).iterdir():
            listed = any(fnmatch.fnmatch(file.name, p) for p in setup["package-data"]["*"])
            assert file.is_dir() or file.suffix == ".py" or listed, file


def test_the_bare_name_of_a_floor_is_refused_with_the_right_one():
    done = subprocess.run(
        [sys.executable, "-c", "import agents"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "knownminds.agents" in done.stderr
