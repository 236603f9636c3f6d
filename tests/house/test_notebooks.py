"""The notebooks run from top to bottom, and say what to install where something is missing."""

import asyncio
import builtins
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
each = pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)


def code_of(file):
    return [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]


def test_there_are_three():
    names = {"recovery_before_spending", "power_to_budget", "language_model_and_its_known_twin"}
    assert {file.stem for file in NOTEBOOKS} == names


@each
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the client's own libraries
def test_a_notebook_runs_from_top_to_bottom(file, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    book = nbformat.read(file, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources=where)
    asyncio.run(client.async_execute())  # in a loop that is closed; `execute` leaves its own open
    shown = [out for cell in book.cells for out in cell.get("outputs", [])]
    assert any("image/png" in out.get("data", {}) for out in shown)
    assert sum(len(out.get("text", "")) for out in shown) > 500
    assert not [out for out in shown if out.get("name") == "stderr"]
    data = [out["data"]["text/html"] for out in shown if "text/html" in out.get("data", {})]
    assert any("srcdoc" in html for html in data)  # a result shows itself as its report
    assert any(re.search(r"\d+ of \d+ in [\d.]+ s|<progress", html) for html in data)


@each
def test_a_notebook_asks_questions(file):
    cells = nbformat.read(file, as_version=4).cells
    heads = [cell.source.splitlines()[0] for cell in cells if cell.source.startswith("#")]
    heads += [line for cell in cells for line in cell.source.splitlines()[1:] if line[:3] == "## "]
    assert heads[0].startswith("# ")
    assert len(heads) >= 4
    assert all(head.endswith("?") for head in heads)


@each
def test_a_notebook_is_stored_without_what_it_printed(file):
    nbformat.validate(nbformat.read(file, as_version=4))
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code_of(file))


@each
def test_without_what_it_needs_a_notebook_says_so_in_one_sentence(file, monkeypatch):
    source, whole = code_of(file)[0].source, builtins.__import__

    def lacking(name, *rest, **further):
        if name.startswith("knownminds"):
            raise ModuleNotFoundError("No module named 'knownminds'", name="knownminds")
        return whole(name, *rest, **further)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(SystemExit) as told:
        exec(compile(source, file.name, "exec"), {})
    sentence = str(told.value)
    assert sentence == (
        'knownminds is not installed for this kernel: pip install "knownminds[notebooks]".'
    )
