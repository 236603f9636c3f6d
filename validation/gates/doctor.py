"""What is installed, which language models can be asked, and how fast this machine is."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from packaging.requirements import Requirement

from knownminds.agents import AGENTS, play
from knownminds.agents.play import simulate_sessions
from knownminds.environments import make, session_stream
from knownminds.environments.record.result import Result
from knownminds.inference import maximum_a_posteriori
from knownminds.llm_adapters import ADAPTERS

PACKAGE = "knownminds"
DEVELOPERS = ("dev", "docs", "test")  # extras of those who change the code
# Variables that the adapters read a key from, unless told another.
KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "openai": "OPENAI_API_KEY",
}
OWN_KEYS = {"inspect": "the key of the provider that Inspect is to ask"}

PLACE, MODEL = "instrumental_learning", "rescorla_wagner_dual"
SUBJECTS, FITTED, PLAYED = 2000, 200, 5  # of the measurement
SECONDS = 0.2  # that each measurement takes at least


@dataclass(frozen=True)
class Installed:
    """A package that is needed, or of an extra.

    Parameters
    ----------
    extra
        The extra that brings it; empty if every install needs it.
    version
        That is installed; empty if none is.
    state
        "ok", "missing" or "not as needed" (of another version).
    """

    name: str
    extra: str
    version: str
    needed: str
    state: str

    @property
    def remedy(self) -> str:
        """The line that installs it; empty if there is nothing to do."""
        if self.state == "ok":
            return ""
        what = f'"{PACKAGE}[{self.extra}]"' if self.extra else f"--upgrade {PACKAGE}"
        return f"pip install {what}"


@dataclass(frozen=True)
class AdapterState:
    """Whether an adapter can run.

    Parameters
    ----------
    key
        The variable that holds its key; empty if it needs none. What it holds is never looked at
        further than whether it is empty.
    runs
        "yes", "no", or "perhaps" where the key is one that cannot be known from here.
    why
        What is missing, with its remedy.
    """

    name: str
    key: str
    runs: str
    why: str


@dataclass(frozen=True)
class Speed:
    """How fast this machine is: the dual-rate learner in instrumental learning.

    Parameters
    ----------
    simulated, fitted, played
        Trials per second: simulated by the compiled kernel; fitted (MAP), on all cores; lived step
        by step, one call after the other.
    """

    simulated: float
    fitted: float
    played: float

    @property
    def ratio(self) -> float:
        """Trials simulated by the kernel in the time of one that is lived step by step."""
        return self.simulated / self.played


@dataclass(frozen=True)
class Doctor(Result):
    """What `doctor` finds.

    Parameters
    ----------
    cache
        Folder in which compiled kernels are kept, and whether it can be written: if not, every
        process compiles anew.
    speed
        None if it was not measured.
    """

    version: str
    python: str
    system: str
    cores: int
    packages: tuple[Installed, ...]
    adapters: tuple[AdapterState, ...]
    cache: str
    cache_writable: bool
    speed: Speed | None

    @property
    def sound(self) -> bool:
        """Whether all that every install needs is there, and kernels are kept."""
        needed = all(one.state == "ok" for one in self.packages if not one.extra)
        return needed and self.cache_writable

    def __str__(self) -> str:
        """Return what is there as tables."""
        told = [
            f"{PACKAGE} {self.version}, Python {self.python}, {self.system}, {self.cores} cores",
            "",
            *_columns(["package", "version", "needed", ""], self._told_packages("")),
            "",
            *_columns(["extra", "package", "version", "needed", ""], self._told_extras()),
            "",
            *_columns(
                ["adapter", "runs", "key", ""],
                [[one.name, one.runs, one.key or "-", one.why] for one in self.adapters],
            ),
            "",
            "Compiled kernels are kept."
            if self.cache_writable
            else f"Compiled kernels cannot be kept in {self.cache}; every process compiles anew. "
            "Set NUMBA_CACHE_DIR to a folder that can be written.",
        ]
        if self.speed is not None:
            told += [
                f"Speed ({MODEL} in {PLACE}): {self.speed.simulated:,.0f} trials simulated and "
                f"{self.speed.fitted:,.0f} fitted per second; the kernel is "
                f"{self.speed.ratio:,.0f} times as fast as the step loop.",
            ]
        told.append("All that is needed is there." if self.sound else "Something needed is not ok.")
        return "\n".join(told)

    def _told_packages(self, extra: str) -> list[list[str]]:
        return [
            [one.name, one.version or "-", one.needed, one.remedy and f"{one.state}: {one.remedy}"]
            for one in self.packages
            if one.extra == extra
        ]

    def _told_extras(self) -> list[list[str]]:
        extras = dict.fromkeys(one.extra for one in self.packages if one.extra)
        return [[extra, *row] for extra in extras for row in self._told_packages(extra)]

    def to_frame(self) -> pd.DataFrame:
        """Return the packages, one a row."""
        return pd.DataFrame([asdict(one) | {"remedy": one.remedy} for one in self.packages])

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        told: dict[str, Any] = super().content() | {"sound": self.sound}
        told["packages"] = [asdict(one) | {"remedy": one.remedy} for one in self.packages]
        if self.speed is not None:
            told["speed"] = asdict(self.speed) | {"ratio": self.speed.ratio}
        return told


def doctor(*, measure: bool = True) -> Doctor:
    """Look at what is installed, which adapters can run, and how fast this machine is.

    No key is kept or shown, nobody is asked anything, and no adapter is imported.

    Parameters
    ----------
    measure
        Whether to measure the speed, which takes some seconds.
    """
    packages = _packages(importlib.metadata.requires(PACKAGE) or [], _version)
    cache = _cache()
    return Doctor(
        version=importlib.metadata.version(PACKAGE),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count() or 1,
        packages=packages,
        adapters=tuple(_adapter(name, packages, os.environ) for name in ADAPTERS),
        cache=str(cache),
        cache_writable=_can_be_written(cache),
        speed=measure_speed() if measure else None,
    )


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _packages(lines: Sequence[str], version_of: Callable[[str], str]) -> tuple[Installed, ...]:
    """Read what the installed package says it needs, first what every install does."""
    found = []
    for line in lines:
        need = Requirement(line)
        extra = _extra(need)
        if need.name == PACKAGE or extra is None or extra in DEVELOPERS:
            continue
        version = version_of(need.name)
        new = need.specifier.contains(version, prereleases=True) if version else False
        state = "ok" if new else "not as needed" if version else "missing"
        found.append(Installed(need.name, extra, version, str(need.specifier), state))
    return tuple(sorted(found, key=lambda one: (one.extra, one.name)))


def _extra(need: Requirement) -> str | None:
    """Return the extra that a requirement belongs to, "" if to none; None if not to this system."""
    if need.marker is None or need.marker.evaluate({"extra": ""}):
        return ""
    extras = importlib.metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    return next((e for e in extras if need.marker.evaluate({"extra": e})), None)


def _adapter(
    name: str, packages: Sequence[Installed], environment: Mapping[str, str]
) -> AdapterState:
    key = KEYS.get(name, OWN_KEYS.get(name, ""))
    lost = next((one for one in packages if one.extra == name and one.state != "ok"), None)
    if lost is not None:
        return AdapterState(name, key, "no", f"{lost.name} is {lost.state}: {lost.remedy}")
    if name in OWN_KEYS:
        return AdapterState(name, key, "perhaps", "")
    if key and not environment.get(key, "").strip():
        why = f"{key} is not set"
        if name == "openai":
            why += "; a server of your own (--base-url) may need none"
        return AdapterState(name, key, "no", why)
    return AdapterState(name, key, "yes", "")


def _cache() -> Path:
    """Return the folder in which numba keeps what it compiled."""
    kernel: Any = AGENTS[MODEL].log_likelihood
    return Path(kernel.stats.cache_path)


def _can_be_written(folder: Path) -> bool:
    existing = next((p for p in (folder, *folder.parents) if p.exists()), Path("/"))
    try:  # what the system says of it is not always so
        with tempfile.TemporaryFile(dir=existing):
            return True
    except OSError:
        return False


def measure_speed() -> Speed:
    """Measure how many trials are simulated, fitted and lived per second."""
    model, environment = AGENTS[MODEL], make(PLACE)
    theta = model.parameters.draw(session_stream(0, 0), SUBJECTS)
    data = simulate_sessions(model, theta[:FITTED], environment, 0).to_trials()
    some = [model.from_theta(values) for values in theta[:PLAYED]]
    return Speed(
        *(
            n * environment.n_trials / _seconds(work)
            for n, work in (
                (SUBJECTS, lambda: simulate_sessions(model, theta, environment, 0)),
                (FITTED, lambda: maximum_a_posteriori(model, data)),
                (PLAYED, lambda: [play(one, environment, 0, i) for i, one in enumerate(some)]),
            )
        )
    )


def _seconds(work: Callable[[], Any]) -> float:
    """Return the least time that a piece of work takes, after a first time that compiles."""
    work()
    times: list[float] = []
    while sum(times) < SECONDS or len(times) < 2:
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return float(np.min(times))


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Set rows in columns, but for the last, which may be long."""
    width = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head) - 1)]
    return [
        "  ".join(
            [*(f"{cell:<{w}}" for cell, w in zip(row, width, strict=False)), row[-1]]
        ).rstrip()
        for row in (head, *rows)
    ]
