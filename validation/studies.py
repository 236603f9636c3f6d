"""What each command leaves in its folder: one entry per kind, which loads what it names on use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

STUDY = "study.json"


@dataclass(frozen=True)
class Kept:
    """A kind of result that is kept in a folder; parts are named "room.module:name".

    Parameters
    ----------
    file
        By which its folder is known; that of all studies is the same and names the command.
    read
        Function that reads the folder.
    say
        Of a study, the function that makes a `Result` of its rows.
    """

    file: str
    read: str = ""
    say: str = ""

    @property
    def is_study(self) -> bool:
        """Whether it is made of batches that a study names."""
        return self.file == STUDY

    @property
    def room(self) -> str:
        """The room of validation that computes it."""
        return self.read.partition(".")[0]


def load(name: str) -> Any:
    """Return what "room.module:name" names; "" is None, a whole path is one of another floor."""
    if not name:
        return None
    module, _, own = name.partition(":")
    floor = "" if module.startswith("knownminds.") else "knownminds.validation."
    return getattr(import_module(floor + module), own)


STUDIES: Mapping[str, Kept] = {
    "recover": Kept(STUDY, say="recovery.parameter_recovery:say"),
    "confuse": Kept(STUDY, say="recovery.model_recovery:say"),
    "calibrate": Kept(STUDY, say="calibration.calibration:say"),
    "power": Kept(STUDY, "power.power_study:read_power"),
    "design": Kept(STUDY, "design.best_design:read_best_design"),
    "audit": Kept(STUDY, say="power.audit:say"),
    "channel": Kept(STUDY, say="channel.channel_study:say"),
    "fit": Kept("fit.json", "data.fit:read_fit"),
    "prior": Kept(STUDY, say="data.prior:say"),
    "score": Kept("measures.json", "data.scores_of_trials:read_score"),
    "score of a paper": Kept("paper_score.json", "benchmarks.scored:read_result"),
    "reveal": Kept("revealed.json", "chance.revealed:read_result"),
    "benchmark": Kept("benchmark.json", "benchmarks.page:read_result"),
    "run": Kept("ledger.sqlite", "costs.run_page:read_page"),
}
# What `knownminds audit` looks at besides single measures: modules with `study`, `work` and `say`,
# and OPTIONS, the options that they take besides --set, --replicates and --seed.
AUDITS = {
    "coherence": "diagnosis.coherence_audit",
    "consistency": "magnitudes.consistency_audit",
    "shortcuts": "power.shortcut_audit",
}
FILES = {kept.file: kept for kept in STUDIES.values()}  # of studies, any
