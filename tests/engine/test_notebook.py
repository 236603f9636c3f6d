"""Progress in a notebook: what a kernel's display is given."""

import sys
from types import SimpleNamespace

import pytest

from knownminds.validation.engine import notebook
from knownminds.validation.power.power_study import power

ASKED = {"sessions": (4,), "trials": 24, "replicates": 20, "workers": 1}


@pytest.fixture
def shown(monkeypatch):
    """What a notebook's display was given, in order."""
    given = []
    handle = SimpleNamespace(update=given.append)

    def display(html, display_id):
        given.append(html)
        return handle

    # The kernel's own module is looked for, and what draws is looked up when something is drawn.
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    drawing = SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", drawing)
    monkeypatch.setattr(notebook, "LEAST", 0.0)
    return given


def test_a_verb_shows_a_bar_and_leaves_a_line(shown):
    power("instrumental_learning", {"optimism_bias": 0.4}, **ASKED)
    bars, line = shown[:-1], shown[-1]
    assert bars
    assert all("<progress" in bar for bar in bars)
    assert line.startswith("power: ")
    done, _, of = line.split()[1:4]
    assert done == of
    assert "<progress" not in line


def test_whoever_watches_alone_is_told(shown):
    told = []
    power("instrumental_learning", {"optimism_bias": 0.4}, **ASKED,
          progress=lambda done, total: told.append((done, total)))  # fmt: skip
    assert told[-1][0] == told[-1][1]
    assert shown == []


def test_no_terminal_is_a_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with notebook.notebook_bar("power") as bar:
        assert bar is None
