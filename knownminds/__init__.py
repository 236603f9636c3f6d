"""A testbed of agents whose parameters are known, and the tests that inference must pass on them.

The verbs of the command line are functions here, loaded when they are first used
(`knownminds.recover("two_step", "two_step_reduced")`). What they work with lies on five floors:
`knownminds.environments`, `knownminds.agents` and beside it `knownminds.llm_adapters`,
`knownminds.inference`, `knownminds.validation`.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

VERBS = {
    "audit": "power.audit",
    "benchmark": "benchmarks.asked",
    "best_design": "design.best_design",
    "budget": "costs.budget",
    "calibrate": "calibration.calibration",
    "confuse": "recovery.confusion",
    "export_trials": "data.exchange",
    "feature_regression": "data.feature_regression",
    "fit": "data.fit",
    "import_trials": "data.exchange",
    "look": "costs.looked",
    "page": "people.site",
    "power": "power.power",
    "recover": "recovery.parameter_recovery",
    "referee": "referee.referee",
    "report": "report",
    "reveal": "chance.reveal",
    "run": "costs.asked_run",
    "serve": "costs.serving",
    "score": "benchmarks.scored",
    "simulate": "data.simulate",
}

FLOORS = ("agents", "environments", "inference", "llm_adapters", "validation")
__all__ = ["VERBS", *VERBS]

if not (Path(__file__).parent / "validation").is_dir():
    raise ImportError(
        "knownminds/agents and its four neighbours must be links to the folders beside them; "
        "here they are files. Run 'git config core.symlinks true' and 'git checkout -- knownminds' "
        "(on Windows in developer mode), or install the package with pip."
    )


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # takes longer than the rest of this file

        return version(__name__)
    if name in FLOORS:
        return import_module(f"{__name__}.{name}")
    if name not in VERBS:
        from .members import nearest

        near = nearest(name, [*FLOORS, *VERBS])
        hint = f" Nearest: {', '.join(near)}." if near else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{hint}")
    return getattr(import_module(f"{__name__}.validation.{VERBS[name]}"), name)


def __dir__() -> list[str]:
    return sorted(["__version__", *FLOORS, *VERBS])
