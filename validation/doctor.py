"""What is installed, and which language models can be reached."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from packaging.requirements import Requirement

from knownminds.agents import AGENTS
from knownminds.llm_adapters import ADAPTERS, HOSTS
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.verdicts import Verdict
from knownminds.validation.questions import Doctor

PACKAGE = "knownminds"
COMPLETE = "complete"  # the verdict on an install that lacks nothing
DEVELOPERS = ("dev", "docs", "test")  # extras of those who change the code
# Variables that the adapters read a key from, unless another is named.
KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    **{name: host.key_variable for name, host in HOSTS.items() if host.key_variable},
}
NOTES = (
    f'An extra is installed by pip install "{PACKAGE}[EXTRA]". No key is kept or shown; a server '
    "of your own (--base-url) may need none, and inspect reads those of its providers.",
)


def compute(question: Doctor) -> Result:
    """Look at what is installed, and which adapters can run; no adapter is imported."""
    packages = _packages(importlib.metadata.requires(PACKAGE) or [], _version)
    wrong = packages[packages["state"] != "ok"].reset_index()
    lacks = [f"{row.package} is {row.state}" for row in wrong.itertuples() if not row.extra]
    kernel: Any = AGENTS["rescorla_wagner"].kernel(2, False)
    if not _can_be_written(cache := Path(kernel.stats.cache_path)):
        lacks.append(f"compiled kernels cannot be kept in {cache}; set NUMBA_CACHE_DIR")
    adapters = []
    for name in ADAPTERS:
        key = KEYS.get(name, "")
        row = {"adapter": name, "key": key or "-"}
        row["key is set"] = "yes" if os.environ.get(key, "").strip() else "no" if key else "-"
        adapters.append(row | {"missing": ", ".join(wrong["package"][wrong["extra"] == name])})
    version, python = importlib.metadata.version(PACKAGE), platform.python_version()
    return Result(
        f"{PACKAGE} {version}, Python {python}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores",
        verdicts={"what is needed": Verdict("not complete" if lacks else COMPLETE, tuple(lacks))},
        tables={"Packages": packages, "Adapters": pd.DataFrame(adapters).set_index("adapter")},
        notes=NOTES,
        exit_code=1 if lacks else 0,
    )


def _version(name: str) -> str:
    return next((one.version for one in importlib.metadata.distributions(name=name)), "")


def _packages(lines: Sequence[str], version_of: Callable[[str], str]) -> pd.DataFrame:
    """Read what the installed package says it needs, first what every install does."""
    rows = []
    for need in map(Requirement, lines):
        extra = _extra(need)
        if need.name == PACKAGE or extra is None or extra in DEVELOPERS:
            continue
        version = version_of(need.name)
        fits = bool(version) and need.specifier.contains(version, prereleases=True)
        state = "ok" if fits else "not as needed" if version else "missing"
        rows.append((extra, need.name, version or "-", str(need.specifier), state))
    columns = ["extra", "package", "installed", "needed", "state"]
    return pd.DataFrame(sorted(rows), columns=columns).set_index(["package", "extra"])


def _extra(need: Requirement) -> str | None:
    """Return the extra that a requirement belongs to, "" if to none; None if not to this system."""
    if need.marker is None or need.marker.evaluate({"extra": ""}):
        return ""
    extras = importlib.metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    return next((e for e in extras if need.marker.evaluate({"extra": e})), None)


def _can_be_written(folder: Path) -> bool:
    existing = next((p for p in (folder, *folder.parents) if p.exists()), Path("/"))
    try:  # what the system says of it is not always so
        with tempfile.TemporaryFile(dir=existing):
            return True
    except OSError:
        return False
