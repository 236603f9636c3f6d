"""The mapping of five folders onto one import package, and what would quietly break it."""

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("environments", "agents", "inference", "llm_adapters", "validation")
MAY_IMPORT = {
    "environments": set(),
    "agents": {"environments"},
    "inference": {"environments", "agents"},
    "llm_adapters": {"environments", "agents"},
    "validation": {"environments", "agents", "inference", "llm_adapters"},
}


def modules():
    return [file for floor in FLOORS for file in sorted((ROOT / floor).glob("*.py"))]


def imported_floors(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("knownminds."):
                yield name.split(".")[1]


def test_the_packages_listed_are_the_folders_that_hold_code():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(f"knownminds.{floor}" for floor in FLOORS)
    assert sorted(settings["tool"]["mypy"]["packages"]) == sorted(listed)
    for floor in FLOORS:
        inside = [p for p in (ROOT / floor).iterdir() if p.is_dir() and p.name != "__pycache__"]
        assert not inside, f"{floor} is one flat folder; {inside[0].name} would miss the wheel"
        assert (ROOT / floor / "py.typed").is_file()


@pytest.mark.parametrize("floor", FLOORS)
def test_each_package_was_found_whole(floor):
    package = importlib.import_module(f"knownminds.{floor}")
    assert package.__file__ is not None, (
        f"knownminds.{floor} is an empty namespace: delete the left-over directory "
        f"{list(package.__path__)} of an earlier plain install"
    )


def test_imports_go_down_only():
    for file in modules():
        floor = file.parent.name
        for other in imported_floors(file):
            allowed = MAY_IMPORT[floor] | {floor}
            if floor == "llm_adapters" and other == "agents":
                allowed = allowed if file.stem in ("synthetic", "serve") else allowed - {"agents"}
            assert other in allowed, f"{floor}/{file.name} imports knownminds.{other}"


def test_cached_kernels_call_only_kernels_of_their_own_file():
    for file in modules():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        borrowed = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (node.level or (node.module or "").startswith("knownminds."))
            and node.module != "exponential"  # which says what its editor has to do
            for alias in node.names
        }
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            if not any("njit" in ast.unparse(d) for d in function.decorator_list):
                continue
            called = {
                node.func.id
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            assert not called & borrowed, (
                f"{file.name}: {function.name} calls {sorted(called & borrowed)} of another file; "
                "numba's cache would not notice edits there"
            )


@pytest.mark.parametrize("floor", FLOORS)
def test_the_bare_name_is_refused_with_the_right_one(floor):
    run = subprocess.run(
        [sys.executable, "-c", f"import {floor}"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert f"import knownminds.{floor}, not {floor}" in run.stderr


@pytest.mark.parametrize("floor", ["environments", "agents", "inference", "llm_adapters"])
def test_importing_a_floor_loads_nothing_heavy(floor):
    heavy = ("pymc", "arviz", "openai", "matplotlib", "gymnasium", "torch", "inspect_ai")
    code = f"import sys, knownminds.{floor}; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
