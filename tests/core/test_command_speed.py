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


def test_a_misspelt_name_is_answered_before_anything_that_computes_is_imported():
    place = ["instrumental_lerning"], "no environment named", "instrumental_learning"
    model = ["horizon", "--model", "horizon_explor"], "no model named", "horizon_explorer"
    for verb, (words, told, nearest) in (
        ("recover", place), ("simulate", place), ("budget", place), ("recover", model)
    ):  # fmt: skip
        code = (
            "import contextlib, io, sys\n"
            "from knownminds.validation.cli import main\n"
            "told = io.StringIO()\n"
            "with contextlib.redirect_stderr(told):\n"
            f"    try: main({[verb, *words]!r})\n"
            "    except SystemExit as end: assert end.code == 2\n"
            f"assert {told!r} in told.getvalue(), told.getvalue()\n"
            f"assert 'Nearest: {nearest}' in told.getvalue()"
        )
        assert imported(code) == set()


def test_a_misspelt_option_is_answered_before_anything_that_computes_is_imported():
    code = (
        "import contextlib, io\n"
        "from knownminds.validation.cli import main\n"
        "told = io.StringIO()\n"
        "with contextlib.redirect_stderr(told):\n"
        "    try: main(['recover', 'instrumental_learning', '--subjets', '20'])\n"
        "    except SystemExit as end: assert end.code == 2\n"
        "assert '--subjects' in told.getvalue(), told.getvalue()"
    )
    assert imported(code) == set()


def test_agents_and_the_list_need_no_tables():
    """Pandas and what comes with it are loaded when the first table is made."""
    code = "import knownminds.agents, knownminds.inference, contextlib, io\n"
    code += "from knownminds.validation.cli import main\n"
    code += "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
    code += "    main(['list'])"
    slow = {"pandas", "pyarrow", "statsmodels", "matplotlib", "arviz", "pymc"}
    assert imported(code).isdisjoint(slow)
    assert "pandas" in imported(
        f"{code}\nfrom knownminds.environments.later import pandas\npandas.NA"
    )
