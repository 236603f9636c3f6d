"""The notebooks run from top to bottom."""

import asyncio
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.ipynb"))
each = pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)


@pytest.mark.long
@each
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the client's own libraries
def test_a_notebook_runs_from_top_to_bottom(file, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    book = nbformat.read(file, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources=where)
    asyncio.run(client.async_execute())  # in a loop that is closed; `execute` leaves its own open
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output.get("name") == "stderr"]


@each
def test_a_notebook_is_stored_without_what_it_printed(file):
    book = nbformat.read(file, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
