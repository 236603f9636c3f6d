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
FAMILIES = {"bandits", "magnitudes", "chance", "causes", "diagnosis", "decisions"}
FAMILIES |= {"baselines"}
SEES_AGENTS = "known_minds"  # of llm_adapters
LISTS = ("__init__.py", "nesting.py")  # of members, and of which lies within which
MOST_FILES = 20  # of code in a folder
MOST_LINES = 100  # of a function
MOST_ARGUMENTS = 12  # of a function, without self


def rooms():
    return [
        folder
        for floor in FLOORS
        for folder in [ROOT / floor, *sorted((ROOT / floor).rglob("*"))]
        if folder.is_dir() and folder.name != "__pycache__"
    ]


def modules():
    return [file for room in rooms() for file in sorted(room.glob("*.py"))]


def place_of(file):
    """Return floor and room of a file; the room of what lies on the floor itself is empty."""
    floor, *room = file.parent.relative_to(ROOT).parts
    return floor, "".join(room[:1])


def imported_places(file):
    """Return floor and room of everything of ours that a file imports, also within functions.

    A floor's own `__init__`, from which upper floors take public names, counts as no room.
    """
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            ours, _, rest = name.partition(".")
            if ours == "knownminds" and rest:
                floor, *inner = rest.split(".")
                room = inner[0] if inner and (ROOT / floor / inner[0]).is_dir() else ""
                yield floor, room


def test_the_packages_listed_are_the_folders_that_hold_code():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = settings["tool"]["setuptools"]["packages"]
    there = [".".join(("knownminds", *room.relative_to(ROOT).parts)) for room in rooms()]
    assert sorted(listed) == sorted(["knownminds", *there])
    assert settings["tool"]["mypy"]["packages"] == ["knownminds"]
    for floor in FLOORS:
        assert (ROOT / floor / "py.typed").is_file()


def test_each_room_says_what_lives_there_and_is_small_enough_to_look_over():
    for room in rooms():
        told = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
        assert told, f"{room.name} says nothing"
        files = [file for file in room.iterdir() if file.is_file()]
        assert len(files) <= MOST_FILES, f"{room.name} holds {len(files)} files"


def functions(node, within=""):
    """Return every function below a node with its dotted name inside the file."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from functions(child, within)
            continue
        name = f"{within}.{child.name}".lstrip(".")
        if not isinstance(child, ast.ClassDef):
            yield name, child
        yield from functions(child, name)


def too_big():
    for file in modules():
        for name, function in functions(ast.parse(file.read_text(encoding="utf-8"))):
            lines = function.end_lineno - function.lineno + 1
            given = function.args
            arguments = [a.arg for a in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
            asked = len([a for a in arguments if a not in ("self", "cls")])
            if lines > MOST_LINES or asked > MOST_ARGUMENTS:
                yield f"{file.relative_to(ROOT).as_posix()} {name}", lines, asked


def test_a_person_can_hold_each_function():
    for name, lines, arguments in too_big():
        told = f"{name} has {lines} lines (at most {MOST_LINES}) and {arguments} arguments"
        raise AssertionError(f"{told} (at most {MOST_ARGUMENTS}): split it")


@pytest.mark.parametrize("floor", FLOORS)
def test_each_package_was_found_whole(floor):
    package = importlib.import_module(f"knownminds.{floor}")
    assert package.__file__ is not None, (
        f"knownminds.{floor} is an empty namespace: delete the left-over directory "
        f"{list(package.__path__)} of an earlier plain install"
    )


def test_no_name_that_a_package_gives_hides_a_module_of_it():
    """Else `import knownminds.agents.play as it` would give the function, and only sometimes."""
    hidden = set()
    for file in modules():
        if file.name != "__init__.py":
            continue
        beside = {one.stem for one in file.parent.iterdir() if one.suffix == ".py" or one.is_dir()}
        tree = ast.parse(file.read_text(encoding="utf-8"))
        given = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        given |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        hidden |= {f"{'.'.join(file.parent.relative_to(ROOT).parts)}.{n}" for n in given & beside}
    assert hidden == {"agents.play"}  # which users type


def test_imports_go_down_only():
    for file in modules():
        floor, room = place_of(file)
        for other, _ in imported_places(file):
            allowed = MAY_IMPORT[floor] | {floor}
            if floor == "llm_adapters" and other == "agents":
                allowed = allowed if room == SEES_AGENTS else allowed - {"agents"}
            assert other in allowed, f"{file.relative_to(ROOT)} imports knownminds.{other}"


def test_a_family_imports_the_core_and_never_another_family():
    for file in modules():
        _, room = place_of(file)
        if room not in FAMILIES:
            continue
        for other, there in imported_places(file):
            told = f"{file.relative_to(ROOT)} imports {other}/{there}"
            assert there not in FAMILIES - {room}, told


def test_the_core_imports_no_family():
    """Only the lists of a floor's members know the families; validation's commands use them."""
    for file in modules():
        floor, room = place_of(file)
        if room in FAMILIES or floor == "validation" or file.name in LISTS:
            continue
        for other, there in imported_places(file):
            assert there not in FAMILIES, f"{file.relative_to(ROOT)} imports {other}/{there}"


def kernels_in(tree):
    """Functions that numba compiles."""
    for function in ast.walk(tree):
        decorators = function.decorator_list if isinstance(function, ast.FunctionDef) else []
        if any("njit" in ast.unparse(d) for d in decorators):
            yield function


def test_cached_kernels_call_only_kernels_of_their_own_file():
    for file in modules():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        borrowed = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (node.level or (node.module or "").startswith("knownminds."))
            # which says itself what its editor has to do
            and not (node.module or "").endswith("exponential")
            for alias in node.names
        }
        for function in kernels_in(tree):
            called = {
                node.func.id
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            assert not called & borrowed, (
                f"{file.name}: {function.name} calls {sorted(called & borrowed)} of another file; "
                "numba's cache would not notice edits there"
            )


def test_no_kernel_assigns_arrays_to_slices():
    """What numba says of shapes that differ took ten seconds to compile in each group model."""
    for file in modules():
        for function in kernels_in(ast.parse(file.read_text(encoding="utf-8"))):
            for node in ast.walk(function):
                if not isinstance(node, ast.Assign | ast.AugAssign):
                    continue
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                sliced = any(
                    isinstance(t, ast.Subscript) and ":" in ast.unparse(t) for t in targets
                )
                number = isinstance(node.value, ast.Constant) or ast.unparse(node.value) == "np.nan"
                told = f"{file.name}: {function.name}: {ast.unparse(node)}; assign number by number"
                assert number or not sliced, told


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
    heavy += ("scipy.stats", "scipy.optimize", "statsmodels")  # `scipy.stats` loads when it is used
    code = f"import sys, knownminds.{floor}; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
