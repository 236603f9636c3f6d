"""From trials to parameters and posteriors.

Point fits need NumPy and numba alone; what samples (`hierarchical`, NUTS) loads PyMC when it is
first asked for.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from knownminds.environments.chance.outcome_grid import MARKS

from .agent_contract import AgentCheck, check_agent
from .bandits.exploration import Exploration
from .bandits.learning_rate import LearningRate
from .bandits.meta_cognition import MetaCognition
from .bandits.model_basedness import ModelBasedness
from .bandits.optimism_bias import OptimismBias
from .bandits.risk import Risk
from .bandits.temporal_discounting_score import TemporalDiscountingScore
from .bandits.weighting import Weighting
from .causes.determinacy import Determinacy
from .causes.explaining_away import ExplainingAway
from .causes.least_squares_reasoner import (
    LeastSquaresFit,
    ReasoningConsistency,
    least_squares,
    leave_one_task_out,
)
from .causes.markov_violation import MarkovViolation
from .causes.reasoning_consistency import Consistency
from .chance.belief_biases import BeliefBias
from .diagnosis.belief_decisions import BeliefDecisions
from .diagnosis.coherence import (
    Coherence,
    ConditionalIndependence,
    ElicitationConsistency,
    IteratedExpectation,
    MonotoneChoice,
    PredictiveGain,
)
from .diagnosis.conditional_independence import conditional_independence
from .diagnosis.elicitation_consistency import elicitation_consistency
from .diagnosis.iterated_expectation import iterated_expectation
from .diagnosis.monotone_choice import monotone_choice
from .diagnosis.predictive_gain import predictive_gain
from .fits.cross_validation import CrossValidation, Folds, cross_validate
from .fits.identifiability import Identifiability, identifiability
from .fits.model_data import ModelData, Unknowns
from .fits.point import PointFit, maximum_a_posteriori, maximum_likelihood
from .magnitudes.cue_weight import CueEfficiency, CueWeight, CueWeightExcess
from .magnitudes.normalised_error import NormalisedError
from .magnitudes.observer_equivalence import ObserverEquivalence, observer_equivalence
from .magnitudes.observer_fits import ObserverFits, fit_observers
from .magnitudes.regression_to_the_mean import RegressionToTheMean
from .measure import Dial, Estimate, FittedMeasure, Measure, ParameterMeasure, SubjectMeasure
from .posteriors.comparison import (
    LeaveOneOut,
    compare,
    leave_one_sequence_out,
    leave_one_subject_out,
)
from .posteriors.posterior import Posterior, posterior

if TYPE_CHECKING:
    from .posteriors.arviz_objects import arviz_object, read_posterior, save_posterior
    from .posteriors.group_model import GroupModel, HierarchicalFit, hierarchical

# Most of them also as they were published or released.
_BOTH = (False, True)
MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        OptimismBias(),
        LearningRate(),
        Risk(),
        *(Weighting("prior", released) for released in _BOTH),
        *(Weighting("likelihood", released) for released in _BOTH),
        *map(TemporalDiscountingScore, _BOTH),
        *map(ModelBasedness, _BOTH),
        *(Exploration("directed", released) for released in _BOTH),
        *(Exploration("random", released) for released in _BOTH),
        *map(MetaCognition, _BOTH),
        *map(ExplainingAway, _BOTH),
        *map(MarkovViolation, _BOTH),
        *map(Determinacy, _BOTH),
        *map(Consistency, _BOTH),
        NormalisedError(),
        RegressionToTheMean(),
        CueWeight(),
        CueWeightExcess(),
        CueEfficiency(),
        *map(BeliefBias, MARKS),
        *map(partial(ConditionalIndependence, False), _BOTH),
        *map(partial(ConditionalIndependence, True), _BOTH),
        *map(PredictiveGain, _BOTH),
        *map(MonotoneChoice, _BOTH),
        *map(ElicitationConsistency, _BOTH),
        *map(IteratedExpectation, _BOTH),
    )
}

# PyMC takes seconds to import, so these names are looked up when they are first used.
_LATER = {
    "GroupModel": "posteriors.group_model",
    "HierarchicalFit": "posteriors.group_model",
    "arviz_object": "posteriors.arviz_objects",
    "hierarchical": "posteriors.group_model",
    "read_posterior": "posteriors.arviz_objects",
    "save_posterior": "posteriors.arviz_objects",
}

__all__ = [
    "MEASURES",
    "AgentCheck",
    "BeliefBias",
    "BeliefDecisions",
    "Coherence",
    "ConditionalIndependence",
    "Consistency",
    "CrossValidation",
    "CueEfficiency",
    "CueWeight",
    "CueWeightExcess",
    "Determinacy",
    "Dial",
    "ElicitationConsistency",
    "Estimate",
    "ExplainingAway",
    "Exploration",
    "FittedMeasure",
    "Folds",
    "GroupModel",
    "HierarchicalFit",
    "Identifiability",
    "IteratedExpectation",
    "LearningRate",
    "LeastSquaresFit",
    "LeaveOneOut",
    "MarkovViolation",
    "Measure",
    "MetaCognition",
    "ModelBasedness",
    "ModelData",
    "MonotoneChoice",
    "NormalisedError",
    "ObserverEquivalence",
    "ObserverFits",
    "OptimismBias",
    "ParameterMeasure",
    "PointFit",
    "Posterior",
    "PredictiveGain",
    "ReasoningConsistency",
    "RegressionToTheMean",
    "Risk",
    "SubjectMeasure",
    "TemporalDiscountingScore",
    "Unknowns",
    "Weighting",
    "arviz_object",
    "check_agent",
    "compare",
    "conditional_independence",
    "cross_validate",
    "elicitation_consistency",
    "fit_observers",
    "hierarchical",
    "identifiability",
    "iterated_expectation",
    "least_squares",
    "leave_one_sequence_out",
    "leave_one_subject_out",
    "leave_one_task_out",
    "maximum_a_posteriori",
    "maximum_likelihood",
    "monotone_choice",
    "observer_equivalence",
    "posterior",
    "predictive_gain",
    "read_posterior",
    "save_posterior",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


if __name__ != "knownminds.inference":
    raise ImportError(f"import knownminds.inference, not {__name__}")
