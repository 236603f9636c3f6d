"""What the packages promise as a whole: layers, light imports, a complete wheel."""

import ast
import collections
import graphlib
import importlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
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
# The lists of members, and how models are called, which all floors may read.
BENEATH = ("members", "calling")
FAMILIES = {"bandits", "magnitudes", "chance", "causes", "diagnosis", "baselines"}
TWICE = {"Cell", "Grid", "Group", "Rows"}
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


def imported_files(file):
    """The files of ours that a file imports, also within functions and for types alone."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            up = file.relative_to(ROOT).parts[: -node.level] if node.level else ()
            inside = (node.module or "").split(".")[0 if node.level else 1 :]
            source = ROOT.joinpath(*up, *inside)
            for target in (source, *(source / alias.name for alias in node.names)):
                if target.with_suffix(".py").is_file():
                    yield target.with_suffix(".py")


def test_no_files_import_each_other_in_a_circle():
    files = [file for floor in BELOW for file in modules(ROOT / floor)]
    graphlib.TopologicalSorter({file: {*imported_files(file)} for file in files}).prepare()


def test_few_names_of_classes_stand_in_several_files():
    names = collections.Counter(
        node.name
        for floor in BELOW
        for file in modules(ROOT / floor)
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} <= TWICE


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
            if other in BENEATH:
                continue
            assert other in BELOW[floor] | {floor}, about
            if floor == "llm_adapters" and other == "agents":
                assert room == "known_agents", about
            if room in FAMILIES:
                assert not {*inner[:1]} & (FAMILIES - {room}), about


def test_a_room_of_the_further_members_imports_no_other_room():
    folder = ROOT / "more" / "knownminds_more"
    for file in modules(folder):
        room = file.relative_to(folder).parts[0]
        others = [name for name in imported(file) if name.startswith("knownminds_more.")]
        assert not [name for name in others if name.split(".")[1] != room], file
        assert not [name for name in imported(file) if name.startswith("knownminds.validation")]


def test_the_core_knows_by_name_what_the_further_members_are():
    core, more = (
        tomllib.loads((ROOT / folder / "members.toml").read_text(encoding="utf-8"))
        for folder in ("knownminds", "more/knownminds_more")
    )
    names = {name for kind in ("environments", "models", "measures") for name in more[kind]}
    assert {*core["elsewhere"]["knownminds-more"].split()} == names


def test_both_packages_have_one_version():
    more = tomllib.loads((ROOT / "more" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert more["version"] == SETTINGS["project"]["version"]
    assert more["dependencies"] == [f"knownminds=={more['version']}"]


@pytest.mark.parametrize("module", BENEATH)
def test_what_lies_beneath_the_floors_imports_none_of_them(module):
    names = imported(ROOT / "knownminds" / f"{module}.py")
    assert not [name for name in names if name.startswith("knownminds")]


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


@pytest.mark.parametrize("package", ["knownminds", "knownminds_more"])
def test_the_wheel_holds_every_file_of_the_package_and_no_other(package, tmp_path):
    words = ["git", "ls-files", "-z"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = [name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]
    for name in tracked:
        copy = tmp_path / "tree" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy, follow_symlinks=False)
    home = tmp_path / "tree" / ("more" if package == "knownminds_more" else ".")
    build = "import sys\nfrom setuptools.build_meta import build_wheel\nbuild_wheel(sys.argv[1])"
    words = [sys.executable, "-c", build, str(tmp_path)]
    subprocess.run(words, cwd=home, capture_output=True, text=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    if package == "knownminds_more":
        begin = "more/knownminds_more/"
        expected = {name.removeprefix("more/") for name in tracked if name.startswith(begin)}
    else:
        own = {name for name in tracked if name.startswith("knownminds/")}
        expected = {f"knownminds/{name}" for name in tracked if name.partition("/")[0] in BELOW}
        expected |= own - {f"knownminds/{floor}" for floor in BELOW}
    assert held == expected


def test_a_checkout_without_links_says_what_it_needs(tmp_path):
    folder = tmp_path / "knownminds"
    folder.mkdir()
    shutil.copy(ROOT / "knownminds" / "__init__.py", folder)
    for floor in BELOW:  # so git writes a link where it may not make links
        (folder / floor).write_text(f"../{floor}")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import knownminds"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "core.symlinks" in done.stderr


def test_the_bare_name_of_a_floor_is_refused_with_the_right_one():
    done = subprocess.run(
        [sys.executable, "-c", "import agents"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "knownminds.agents" in done.stderr
