"""What each command leaves in its folder, and which module reads it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from knownminds.members import listed

STUDY = "study.json"
# Studies by command: the module whose `say` makes a result of rows.
STUDIES = {
    "recover": "recovery.parameter_recovery",
    "confuse": "recovery.confusion",
    "calibrate": "calibration.calibration",
    "power": "power.power",
    "design": "design.best_design",
    "audit": "power.audit",
    "simulate": "data.prior",
}
RUN, BENCHMARK = "ledger.sqlite", "benchmark.json"
# By the file that a folder is known by: what it holds, and "module:function" that reads it.
FOLDERS = {
    STUDY: ("study", ""),
    "referee.json": ("answer of the referee", "referee.referee:read_referee"),
    "revealed.json": ("result of reveal", "chance.reveal:read_result"),
    BENCHMARK: ("benchmark", "benchmarks.page:read_result"),
    RUN: ("run", "costs.run_page:read_page"),
}
RESULT = "result.json"  # which all commands leave; fits and scores nothing else
POSTERIOR = "posterior.nc"  # beside the result of a hierarchical fit


def files_in(folder: Path) -> list[str]:
    """Return the files by which a folder is known; the ledger of a benchmark is part of it."""
    there = [name for name in FOLDERS if (folder / name).is_file()]
    return [BENCHMARK] if {BENCHMARK, RUN} <= set(there) else there


def check_own_folder(file: str, command: str, out: Path) -> None:
    """Raise ValueError, before any work, if a folder cannot be written or holds another result.

    Parameters
    ----------
    file : Which the result is in, "ledger.sqlite" for instance; "" for its page alone.
    command : That makes the result: "fit".
    """
    from knownminds.environments.record.folders import check_writable

    check_writable(out)
    if out.is_file():
        raise ValueError(f"A result is left in a folder; {out} is a file. Name another with --out.")
    there = {FOLDERS[other][0] for other in files_in(out) if other != file}
    if not files_in(out) and (asked := _asked_in(out)) and asked[1] != command:
        there = {f"result of `{shlex.join(asked[:2])}`"}
    if there:
        raise ValueError(
            f"Each result needs a folder of its own; {out} holds a {there.pop()}. Name another "
            "with --out."
        )


def check_same_question(command: str, out: Path) -> None:
    """Raise ValueError if a folder holds the answer to another question than a command line's."""
    asked = _asked_in(out)
    if asked and asked != _without_folder(command):
        raise ValueError(
            f"The folder {out} holds the answer to another question ({shlex.join(asked)}; here "
            f"{shlex.join(_without_folder(command))}). Name another with --out."
        )


def _asked_in(folder: Path) -> list[str]:
    """Return the words of the command line that a folder's result answers, if it holds one."""
    file = folder / RESULT
    there = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return _without_folder(str(there.get("command", "")))


def _without_folder(command: str) -> list[str]:
    words = shlex.split(command)
    return [
        word
        for word, before in zip(words, ["", *words], strict=False)
        if not {"--out", "--plugin"} & {word, before}
    ]


# What `audit` looks at besides single measures: modules with `study`, `work` and `say`, and
# OPTIONS, the options that they take besides --set, --replicates and --seed.
AUDITS = {name: place.module for name, place in listed("audits").items()}
