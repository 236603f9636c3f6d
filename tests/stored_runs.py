"""Results of slow runs: stored with their date, and held against what a short test finds.

A slow test bears the mark `long` and hands its numbers to `keep`, which holds them against those
of the last run that was stored: `pytest -m long`. KNOWNMINDS_STORE=1 stores them anew.
"""

import json
import os
from datetime import date
from importlib.metadata import version
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("long")


def stored(name):
    """Return the numbers of the run that was stored under a name."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["numbers"]


def keep(name, numbers, seed, file):
    """Store the numbers of a run, if the option says so; return those that are stored."""
    if os.environ.get("KNOWNMINDS_STORE"):
        content = {
            "date": date.today().isoformat(),
            "version": version("knownminds"),
            "seed": seed,
            "command": f"pytest -m long tests/{Path(file).relative_to(FOLDER.parent).as_posix()}",
            "numbers": numbers,
        }
        text = json.dumps(content, indent=1) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    return stored(name)


def assert_same(numbers, there):
    """Hold numbers against stored ones: another build of a library sums in another order."""
    if isinstance(there, dict):
        assert list(numbers) == list(there)
        numbers, there = list(numbers.values()), list(there.values())
    if isinstance(there, list):
        for one, other in zip(numbers, there, strict=True):
            assert_same(one, other)
    else:
        assert numbers == (there if isinstance(there, str) else pytest.approx(there, rel=1e-6))
