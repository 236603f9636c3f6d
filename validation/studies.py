"""What each command leaves in its folder, and which module reads it."""

from __future__ import annotations

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


# What `audit` looks at besides single measures: modules with `study`, `work` and `say`, and
# OPTIONS, the options that they take besides --set, --replicates and --seed.
AUDITS = {name: place.module for name, place in listed("audits").items()}
