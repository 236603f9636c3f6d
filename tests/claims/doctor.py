"""Sentences of `doctor`.

Facts: a `SimpleNamespace` with `content` (what --json prints) and `environment` (the variables).
"""

from __future__ import annotations

import importlib.metadata
import tempfile
from pathlib import Path

from packaging.requirements import Requirement

from claims import Claim, Report


def writable(folder):
    """Try it, where the folder or the first one above it that there is can be written."""
    place = Path(folder)
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            return True
    except OSError:
        return False


def satisfied():
    """Whether every requirement without an extra is installed as needed."""
    for line in importlib.metadata.requires("knownminds"):
        need = Requirement(line)
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(need.name)
        except importlib.metadata.PackageNotFoundError:
            return False
        if not need.specifier.contains(version, prereleases=True):
            return False
    return True


def _kept(facts, words):
    assert writable(facts.content["cache"])


def _not_kept(facts, words):
    assert words["folder"] == facts.content["cache"]
    assert not writable(words["folder"])


def _speed(facts, words):
    speed = facts.content["speed"]
    told = {name: float(words[name].replace(",", "")) for name in ("simulated", "fitted", "ratio")}
    assert abs(told["simulated"] - speed["simulated"]) <= 0.5
    assert abs(told["fitted"] - speed["fitted"]) <= 0.5
    assert abs(told["ratio"] - speed["simulated"] / speed["played"]) <= 0.5


def _sound(facts, words):
    assert satisfied()
    assert writable(facts.content["cache"])


def _unsound(facts, words):
    missing = [p for p in facts.content["packages"] if not p["extra"] and p["state"] != "ok"]
    assert missing or not writable(facts.content["cache"])


def _no_key(facts, words):
    assert not facts.environment.get(words["key"], "").strip()


TRIED = "a file that is written there"
REPORT = Report(
    "doctor",
    sources=("validation/gates/doctor.py",),
    sentences=(
        Claim("Compiled kernels are kept.", TRIED, _kept),
        Claim(
            "Compiled kernels cannot be kept in {folder}; every process compiles anew. Set "
            "NUMBA_CACHE_DIR to a folder that can be written.",
            TRIED,
            _not_kept,
        ),
        Claim(
            "Speed ({model} in {place}): {simulated} trials simulated and {fitted} fitted per "
            "second; the kernel is {ratio} times as fast as the step loop.",
            "the rates in the JSON",
            _speed,
        ),
        Claim(
            "All that is needed is there.",
            f"the package's requirements, one by one; {TRIED}",
            _sound,
        ),
        Claim("Something needed is not ok.", f"the packages in the JSON; {TRIED}", _unsound),
        Claim("{key} is not set", "the variables", _no_key),
    ),
)
