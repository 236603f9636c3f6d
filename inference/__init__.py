"""From trials to parameters and posteriors.

Point fits need NumPy and numba alone. Functions that sample (`hierarchical`, NUTS) load PyMC at
their first use.
"""

from typing import TYPE_CHECKING, Any

from knownminds.members import Members

from .agent_contract import check_agent
from .analysis import Analysis
from .causes.least_squares_reasoner import leave_one_task_out
from .diagnosis.belief_decisions import BeliefDecisions
from .diagnosis.coherence import Coherence
from .diagnosis.conditional_independence import conditional_independence
from .diagnosis.elicitation_consistency import elicitation_consistency
from .diagnosis.iterated_expectation import iterated_expectation
from .diagnosis.monotone_choice import monotone_choice
from .diagnosis.predictive_gain import predictive_gain
from .fits.cross_validation import Folds, cross_validate
from .fits.identifiability import identifiability
from .fits.model_data import ModelData, Unknowns
from .fits.point import PointFit, maximum_a_posteriori, maximum_likelihood
from .magnitudes.observer_fits import fit_observers
from .measure import Dial, Estimate, FittedMeasure, Measure, SubjectMeasure, parameter_measure
from .posteriors.comparison import LeaveOneOut, leave_one_sequence_out
from .posteriors.posterior import Posterior, posterior
from .questions.next_question import ChosenQuestions, Inquiry, play_chosen
from .questions.stopping import StoppingRule
from .session_measure import session_measure
from .stability import split_scores, split_variance

if TYPE_CHECKING:
    from .groups.group_model import GroupModel, HierarchicalFit, hierarchical, pymc_model
    from .groups.left_out_subjects import predict_left_out
    from .posteriors.arviz_objects import arviz_object, read_posterior, save_posterior

MEASURES: Members[Measure] = Members("measures", lambda value: isinstance(value, Measure))

# PyMC takes seconds to import, so these names are looked up at their first use.
_LATER = {
    "GroupModel": "groups.group_model",
    "HierarchicalFit": "groups.group_model",
    "arviz_object": "posteriors.arviz_objects",
    "hierarchical": "groups.group_model",
    "predict_left_out": "groups.left_out_subjects",
    "pymc_model": "groups.group_model",
    "read_posterior": "posteriors.arviz_objects",
    "save_posterior": "posteriors.arviz_objects",
}

__all__ = [
    "MEASURES",
    "Analysis",
    "BeliefDecisions",
    "ChosenQuestions",
    "Coherence",
    "Dial",
    "Estimate",
    "FittedMeasure",
    "Folds",
    "GroupModel",
    "HierarchicalFit",
    "Inquiry",
    "LeaveOneOut",
    "Measure",
    "ModelData",
    "PointFit",
    "Posterior",
    "StoppingRule",
    "SubjectMeasure",
    "Unknowns",
    "arviz_object",
    "check_agent",
    "conditional_independence",
    "cross_validate",
    "elicitation_consistency",
    "fit_observers",
    "hierarchical",
    "identifiability",
    "iterated_expectation",
    "leave_one_sequence_out",
    "leave_one_task_out",
    "maximum_a_posteriori",
    "maximum_likelihood",
    "monotone_choice",
    "parameter_measure",
    "play_chosen",
    "posterior",
    "predict_left_out",
    "predictive_gain",
    "pymc_model",
    "read_posterior",
    "save_posterior",
    "session_measure",
    "split_scores",
    "split_variance",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


if __name__ != "knownminds.inference":
    raise ImportError(f"import knownminds.inference, not {__name__}")
