import subprocess
import sys

# What takes long to import; help and completion need none of it.
HEAVY = (
    "arviz",
    "jinja2",
    "joblib",
    "matplotlib",
    "numba",
    "numpy",
    "nutpie",
    "pandas",
    "pyarrow",
    "pymc",
    "pytensor",
    "scipy",
    "statsmodels",
    "knownminds.agents",
    "knownminds.environments",
    "knownminds.inference",
)


def imported(code):
    """Names of the heavy packages that a fresh interpreter has imported after the code."""
    last = f"\nprint(*(set({HEAVY!r}) & set(__import__('sys').modules)), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code + last], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {line for line in done.stdout.splitlines() if line in HEAVY}


def test_the_check_sees_what_is_imported():
    assert imported("import numpy") == {"numpy"}


def test_help_imports_nothing_that_computes():
    code = "from knownminds.validation.cli import main\n"
    for words in (["--help"], ["recover", "--help"], ["run", "--help"]):
        code += f"try: main({words!r})\nexcept SystemExit as end: assert not end.code\n"
    assert imported(code) == set()


def test_completion_imports_nothing_that_computes():
    code = "from knownminds.validation.completion import completes\n"
    code += "assert completes('environments', 'models', 'measures')('')"
    assert imported(code) == set()
