"""From trials to parameters and posteriors.

Point fits need NumPy and numba alone; what samples (`hierarchical`, NUTS) loads PyMC when it is
first asked for.
"""

from typing import TYPE_CHECKING, Any

from .comparison import (
    LeaveOneOut,
    compare,
    leave_one_sequence_out,
    leave_one_subject_out,
)
from .cross_validation import CrossValidation, Folds, cross_validate
from .identifiability import Identifiability, identifiability
from .measures import Estimate, FittedMeasure, Measure, ParameterMeasure, SubjectMeasure
from .model_data import ModelData, Unknowns
from .optimism_bias import OptimismBias
from .point import PointFit, maximum_a_posteriori, maximum_likelihood
from .posterior import Posterior, posterior

if TYPE_CHECKING:
    from .group_model import GroupModel, HierarchicalFit, hierarchical

MEASURES: dict[str, Measure] = {
    "optimism_bias": OptimismBias(),
}

# PyMC takes seconds to import, so these names are looked up when they are first used.
_LATER = {
    "GroupModel": "group_model",
    "HierarchicalFit": "group_model",
    "hierarchical": "group_model",
}

__all__ = [
    "MEASURES",
    "CrossValidation",
    "Estimate",
    "FittedMeasure",
    "Folds",
    "GroupModel",
    "HierarchicalFit",
    "Identifiability",
    "LeaveOneOut",
    "Measure",
    "ModelData",
    "OptimismBias",
    "ParameterMeasure",
    "PointFit",
    "Posterior",
    "SubjectMeasure",
    "Unknowns",
    "compare",
    "cross_validate",
    "hierarchical",
    "identifiability",
    "leave_one_sequence_out",
    "leave_one_subject_out",
    "maximum_a_posteriori",
    "maximum_likelihood",
    "posterior",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


if __name__ != "knownminds.inference":
    raise ImportError(f"import knownminds.inference, not {__name__}")
