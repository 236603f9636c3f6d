"""What `page` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knownminds.environments.record.tabled_result import TabledResult


@dataclass(frozen=True)
class Site(TabledResult):
    """A page that was written.

    Parameters
    ----------
    environment : name of the experiment
    settings : its settings
    seed : everything random follows from it
    subjects : how many sessions there are; that of subject k is the one at address k of the seed
    trials : how many trials a session has at most
    jspsych : version of jsPsych
    size : of all files, in bytes
    out : where it is
    """

    environment: str
    settings: Mapping[str, Any]
    seed: int
    subjects: int
    trials: int
    jspsych: str
    size: int
    out: str

    def __str__(self) -> str:
        sessions = "a session" if self.subjects == 1 else f"{self.subjects:,} sessions"
        trials = "1 trial" if self.trials == 1 else f"{self.trials:,} trials"
        return (
            f"{self.environment}: {sessions} of at most {trials}, seed {self.seed}, jsPsych "
            f"{self.jspsych}, {self.size / 1e6:.1f} MB\nwritten to {self.out}; open "
            f"{Path(self.out) / 'index.html'}, then knownminds import FILE.json --out trials.csv"
        )
