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
    pages
        For each class of result, the function that returns its page.
    more
        Function that returns further pages by name; "" if there are none.
    summarise
        Of a study, what makes a result of rows, also of some of them; "" if it needs them all.
    question
        What the command is asked; "" where its function's arguments say so alone.
    """

    file: str
    read: str
    pages: Mapping[str, str]
    more: str = ""
    summarise: str = ""
    question: str = ""

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
    "recover": Kept(
        STUDY,
        "recovery.recovery_surface:read_recovery_or_surface",
        {
            "Recovery": "recovery.recovery_page:recovery_page",
            "RecoverySurface": "recovery.recovery_surface_page:surface_page",
        },
        summarise="recovery.recovery_surface:summarise_found",
        question="recovery.questions:RecoveryQuestion",
    ),
    "confuse": Kept(
        STUDY,
        "recovery.model_recovery:read_confusion",
        {"ModelRecovery": "recovery.model_recovery_page:model_recovery_page"},
        question="recovery.questions:Confuse",
    ),
    "calibrate": Kept(
        STUDY,
        "calibration.calibration:read_calibration",
        {"Calibration": "calibration.calibration_page:calibration_page"},
        summarise="calibration.calibration:summarise",
        question="calibration.questions:Calibrate",
    ),
    "power": Kept(
        STUDY,
        "power.smallest_design:read_power_or_search",
        {
            "Power": "power.power_page:power_page",
            "SmallestDesign": "power.power_page:smallest_design_page",
            "Sequential": "power.sequential_page:sequential_page",
            "ModelPower": "power.model_power_page:model_power_page",
        },
        summarise="power.sequential:summarise_found",
        question="power.questions:PowerQuestion",
    ),
    "design": Kept(
        STUDY,
        "design.best_design:read_best_design",
        {"BestDesign": "design.design_page:design_page"},
        question="design.questions:AskDesign",
    ),
    "audit": Kept(
        STUDY,
        "power.audit:read_audit",
        {
            "Audit": "power.audit_page:audit_page",
            "CoherenceAudit": "diagnosis.coherence_audit_page:coherence_audit_page",
            "ConsistencyAudit": "magnitudes.consistency_audit_page:consistency_audit_page",
            "ShortcutAudit": "power.shortcut_audit_page:shortcut_audit_page",
        },
        summarise="power.audit:summarise_begun",
        question="power.questions:AskAudit",
    ),
    "channel": Kept(
        STUDY,
        "channel.channel_study:read_channel",
        {"Channel": "channel.channel_page:channel_page"},
        summarise="channel.channel_study:summarise",
        question="channel.questions:AskChannel",
    ),
    "fit": Kept(
        "fit.json",
        "data.fit:read_fit",
        {"Fit": "data.fit_page:fit_page"},
        question="data.questions:AskFit",
    ),
    "prior": Kept(
        "prior.json", "data.prior:read_prior", {"PriorPredictive": "data.prior_page:prior_page"}
    ),
    "budget": Kept(
        "budget.json", "costs.budget:read_budget", {"Budget": "costs.budget_page:budget_page"}
    ),
    "score": Kept(
        "measures.json",
        "data.scores_of_trials:read_measured",
        {"Measured": "data.measured_page:measured_page"},
        question="data.questions:AskScore",
    ),
    "phenotype": Kept(
        "phenotype.json",
        "data.phenotype:read_phenotype",
        {"Phenotype": "data.measured_page:phenotype_page"},
    ),
    "score of several runs": Kept(
        "magnitude.json",
        "magnitudes.magnitude_table:read_magnitude",
        {"MagnitudeTable": "magnitudes.magnitude_page:magnitude_page"},
        more="magnitudes.magnitude_task_page:task_pages",
    ),
    "score of beliefs": Kept(
        "beliefs.json",
        "diagnosis.belief_battery:read_battery",
        {"BeliefBattery": "diagnosis.belief_battery_page:battery_page"},
    ),
    "reveal": Kept(
        "revealed.json",
        "chance.revealed:read_revealed",
        {"Revealed": "chance.revealed_page:revealed_page"},
    ),
    "benchmark": Kept(
        "benchmark.json",
        "benchmarks.benchmark:read_benchmark",
        {"BenchmarkResult": "benchmarks.page:benchmark_page"},
    ),
    "run": Kept(
        "ledger.sqlite",
        "knownminds.llm_adapters.runs.runner:read_run",
        {"Run": "costs.run_page:run_page"},
    ),
}
# What `knownminds audit` looks at besides single measures: modules with `audit` and `summarise`.
AUDITS = {
    "coherence": "diagnosis.coherence_audit",
    "consistency": "magnitudes.consistency_audit",
    "shortcuts": "power.shortcut_audit",
}
FILES = {kept.file: kept for kept in STUDIES.values()}  # of studies, any


def kept_as(result: Any) -> Kept:
    """Return the entry of a result."""
    name = type(result).__name__
    return next(kept for kept in STUDIES.values() if name in kept.pages)
