"""A package of an extra that is not there is answered with the line that installs it."""

import json
import subprocess
import sys
import tomllib

from house.test_packages import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
DEVELOPERS = {"dev", "docs", "notebooks", "test"}  # of these no command is in need

RUN = ["run", "instrumental_learning", "--trials", "4", "--llm"]
NETWORKS = "from knownminds.environments.diagnosis.network_files import "
# What needs which package: words of the command line, or a line of Python.
NEEDS = {
    "dask": [
        (package, ["recover", "instrumental_learning", "--replicates", "2",
                   "--backend", "dask", "--scheduler", "tcp://127.0.0.1:1"])
        for package in ("dask", "distributed")
    ],
    "gymnasium": [("gymnasium", "import knownminds.environments.formats.gymnasium_wrapper")],
    "inspect": [
        ("inspect_ai", ["import", "x.eval", "--out", "x.csv"]),
    ],
    "learning": [
        ("sklearn", "from knownminds.inference.diagnosis.predictive_gain import scikit_learn\n"
                    "scikit_learn('This')"),
    ],
    "networks": [
        ("pgmpy", NETWORKS + "load_network; load_network('asia')"),
    ],
    "serve": [
        (package, ["serve", "instrumental_learning"]) for package in ("starlette", "uvicorn")
    ],
    "transformers": [
        ("torch", [*RUN, "transformers:m"]),
        ("transformers", [*RUN, "transformers:m"]),
    ],
}  # fmt: skip

PROGRAM = """
import json, sys
from contextlib import redirect_stderr
from io import StringIO

hidden = set()

class Hiding:
    def __init__(self, finders):
        self.finders = finders

    def find_spec(self, name, *where):
        if not any(name == one or name.startswith(one + ".") for one in hidden):
            found = (finder.find_spec(name, *where) for finder in self.finders)
            return next((spec for spec in found if spec is not None), None)

    def find_distributions(self, *where):  # versions, of those that are hidden too
        for finder in self.finders:
            yield from getattr(finder, "find_distributions", lambda *_: ())(*where)

sys.meta_path[:] = [Hiding(list(sys.meta_path))]
from knownminds.validation.cli import main

told = []
for package, needed in json.loads(sys.argv[1]):
    hidden = {package, "torch"}  # which takes seconds to import
    here = {name: m for name, m in sys.modules.items() if name.split(".")[0] in
            {one.split(".")[0] for one in hidden}}
    for name in here:
        del sys.modules[name]
    words = StringIO()
    code = 0
    with redirect_stderr(words):
        try:
            if isinstance(needed, str):
                exec(needed)
            else:
                main(needed)
        except SystemExit as end:
            code = end.code
        except (ImportError, ValueError) as error:
            code, _ = 2, words.write(f"{error}\\n")
    sys.modules.update(here)
    told.append((code, words.getvalue()))
print(json.dumps(told))
"""


def test_every_extra_has_something_that_needs_it():
    assert set(NEEDS) == set(EXTRAS) - DEVELOPERS


def test_what_needs_an_extra_says_in_one_sentence_how_to_install_it(tmp_path):
    (tmp_path / "x.eval").write_bytes(b"PK")
    asked = [(name, *one) for name, some in NEEDS.items() for one in some]
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, json.dumps([one[1:] for one in asked])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for (extra, package, needed), (code, words) in zip(asked, json.loads(done.stdout), strict=True):
        about = f"{needed} without {package}: {code} {words}"
        assert code == 2, about
        assert f'pip install "knownminds[{extra}' in words.splitlines()[-1], about
        assert "Traceback" not in words, about
    assert {file.name for file in tmp_path.iterdir()} == {"x.eval"}
