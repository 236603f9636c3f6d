"""From trials to parameters and posteriors.

Point fits need NumPy and numba alone; what samples (`hierarchical`, NUTS) loads PyMC when it is
first asked for.
"""

from typing import TYPE_CHECKING, Any

from .belief_biases import BeliefBias
from .belief_decisions import BeliefDecisions
from .coherence import (
    Coherence,
    ConditionalIndependence,
    ElicitationConsistency,
    IteratedExpectation,
    MonotoneChoice,
    PredictiveGain,
)
from .comparison import (
    LeaveOneOut,
    compare,
    leave_one_sequence_out,
    leave_one_subject_out,
)
from .conditional_independence import conditional_independence
from .cross_validation import CrossValidation, Folds, cross_validate
from .cue_weight import CueEfficiency, CueWeight, CueWeightExcess
from .determinacy import Determinacy
from .elicitation_consistency import elicitation_consistency
from .explaining_away import ExplainingAway
from .exploration import Exploration
from .identifiability import Identifiability, identifiability
from .iterated_expectation import iterated_expectation
from .learning_rate import LearningRate
from .least_squares_reasoner import (
    LeastSquaresFit,
    ReasoningConsistency,
    least_squares,
    leave_one_task_out,
)
from .markov_violation import MarkovViolation
from .measures import Estimate, FittedMeasure, Measure, ParameterMeasure, SubjectMeasure
from .meta_cognition import MetaCognition
from .model_basedness import ModelBasedness
from .model_data import ModelData, Unknowns
from .monotone_choice import monotone_choice
from .normalised_error import NormalisedError
from .observer_equivalence import ObserverEquivalence, observer_equivalence
from .observer_fits import ObserverFits, fit_observers
from .optimism_bias import OptimismBias
from .point import PointFit, maximum_a_posteriori, maximum_likelihood
from .posterior import Posterior, posterior
from .predictive_gain import predictive_gain
from .reasoning_consistency import Consistency
from .regression_to_the_mean import RegressionToTheMean
from .risk import Risk
from .temporal_discounting_score import TemporalDiscountingScore
from .weighting import Weighting

if TYPE_CHECKING:
    from .arviz_objects import arviz_object, read_posterior, save_posterior
    from .group_model import GroupModel, HierarchicalFit, hierarchical

MEASURES: dict[str, Measure] = {
    "optimism_bias": OptimismBias(),
    "learning_rate": LearningRate(),
    "risk": Risk(),
    "prior_weighting": Weighting("prior"),
    "prior_weighting_released": Weighting("prior", released=True),
    "likelihood_weighting": Weighting("likelihood"),
    "likelihood_weighting_released": Weighting("likelihood", released=True),
    "temporal_discounting": TemporalDiscountingScore(),
    "temporal_discounting_released": TemporalDiscountingScore(released=True),
    "model_basedness": ModelBasedness(),
    "model_basedness_released": ModelBasedness(released=True),
    "directed_exploration": Exploration("directed"),
    "directed_exploration_released": Exploration("directed", released=True),
    "random_exploration": Exploration("random"),
    "random_exploration_released": Exploration("random", released=True),
    "meta_cognition": MetaCognition(),
    "meta_cognition_released": MetaCognition(released=True),
    "explaining_away": ExplainingAway(),
    "explaining_away_released": ExplainingAway(released=True),
    "markov_violation": MarkovViolation(),
    "markov_violation_released": MarkovViolation(released=True),
    "determinacy": Determinacy(),
    "determinacy_released": Determinacy(released=True),
    "reasoning_consistency": Consistency(),
    "reasoning_consistency_released": Consistency(released=True),
    "normalised_error": NormalisedError(),
    "regression_to_the_mean": RegressionToTheMean(),
    "cue_weight": CueWeight(),
    "cue_weight_excess": CueWeightExcess(),
    "cue_efficiency": CueEfficiency(),
    "first_outcome_bias": BeliefBias("first"),
    "middle_outcome_bias": BeliefBias("middle"),
    "round_outcome_bias": BeliefBias("round"),
    "repeat_outcome_bias": BeliefBias("repeat"),
    "heads_outcome_bias": BeliefBias("heads"),
    "left_outcome_bias": BeliefBias("left"),
    "conditional_independence": ConditionalIndependence(),
    "conditional_independence_released": ConditionalIndependence(released=True),
    "conditional_independence_calibrated": ConditionalIndependence(calibrated=True),
    "conditional_independence_calibrated_released": ConditionalIndependence(
        calibrated=True, released=True
    ),
    "predictive_gain": PredictiveGain(),
    "predictive_gain_released": PredictiveGain(released=True),
    "monotone_choice": MonotoneChoice(),
    "monotone_choice_released": MonotoneChoice(released=True),
    "elicitation_consistency": ElicitationConsistency(),
    "elicitation_consistency_released": ElicitationConsistency(released=True),
    "iterated_expectation": IteratedExpectation(),
    "iterated_expectation_released": IteratedExpectation(released=True),
}

# PyMC takes seconds to import, so these names are looked up when they are first used.
_LATER = {
    "GroupModel": "group_model",
    "HierarchicalFit": "group_model",
    "arviz_object": "arviz_objects",
    "hierarchical": "group_model",
    "read_posterior": "arviz_objects",
    "save_posterior": "arviz_objects",
}

__all__ = [
    "MEASURES",
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
