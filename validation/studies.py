"""What each command leaves in its folder, and which module reads it."""

from __future__ import annotations

from pathlib import Path

STUDY = "study.json"
# Studies by command: the module whose `say` makes a result of rows.
STUDIES = {
    "recover": "recovery.parameter_recovery",
    "confuse": "recovery.model_recovery",
    "calibrate": "calibration.calibration",
    "power": "power.power_study",
    "design": "design.best_design",
    "audit": "power.audit",
    "simulate": "data.prior",
}
# By the file that a folder is known by: what it holds, and "module:function" that reads it.
FOLDERS = {
    STUDY: ("study", ""),
    "referee.json": ("answer of the referee", "referee.referee:read_referee"),
    "revealed.json": ("result of reveal", "chance.revealed:read_result"),
    "benchmark.json": ("benchmark", "benchmarks.page:read_result"),
    "ledger.sqlite": ("run", "costs.run_page:read_page"),
}
RESULT = "result.json"  # which all commands leave; fits and scores nothing else


def files_in(folder: Path) -> list[str]:
    """Return the files by which a folder is known."""
    return [name for name in FOLDERS if (folder / name).is_file()]


# What `audit` looks at besides single measures: modules with `study`, `work` and `say`, and
# OPTIONS, the options that they take besides --set, --replicates and --seed.
AUDITS = {
    "channel": "channel.channel_study",
    "coherence": "diagnosis.coherence_audit",
    "consistency": "magnitudes.consistency_audit",
    "shortcuts": "power.shortcut_audit",
}
