"""From trials to parameters and posteriors.

Point fits need NumPy and numba alone. Functions that sample (`hierarchical`, NUTS) load PyMC at
their first use.
"""

from typing import TYPE_CHECKING, Any

from .agent_contract import check_agent
from .analysis import Analysis
from .bandits.deck_measures import DECK_MEASURES
from .bandits.exploration import exploration
from .bandits.learning_rates import LEARNING_RATE, OPTIMISM_BIAS
from .bandits.meta_cognition import meta_cognition
from .bandits.model_basedness import model_basedness
from .bandits.reversal_measures import perseverative_errors, stay_or_shift, trials_to_criterion
from .bandits.risk import risk
from .bandits.temporal_discounting_score import temporal_discounting
from .bandits.weighting import weighting
from .causes.cell_contrast import explaining_away, markov_violation
from .causes.least_squares_reasoner import leave_one_task_out
from .causes.network_contrasts import (
    DO_VERSUS_SEE,
    NETWORK_EXPLAINING_AWAY,
    NETWORK_MARKOV_VIOLATION,
)
from .causes.reasoner_measure import determinacy, reasoning_consistency
from .causes.strength_contrasts import frequency_illusion, power_weight
from .chance.belief_biases import OUTCOME_BIASES
from .chance.idle_evidence import IDLE_PULLS
from .decisions.ladders import area_of_gains, area_under_curve, indifference_points
from .decisions.risk_attitudes import LOSS_AVERSION, risk_attitude
from .decisions.sharing import conditional_cooperation, generous_offers, low_offers_rejected
from .diagnosis.belief_decisions import BeliefDecisions
from .diagnosis.coherence import COHERENCE, Coherence
from .diagnosis.conditional_independence import conditional_independence
from .diagnosis.elicitation_consistency import elicitation_consistency
from .diagnosis.iterated_expectation import iterated_expectation
from .diagnosis.monotone_choice import monotone_choice
from .diagnosis.predictive_gain import predictive_gain
from .fits.cross_validation import Folds, cross_validate
from .fits.identifiability import identifiability
from .fits.model_data import ModelData, Unknowns
from .fits.point import PointFit, maximum_a_posteriori, maximum_likelihood
from .magnitudes.cue_weight import CUE_MEASURES
from .magnitudes.normalised_error import NORMALISED_ERROR
from .magnitudes.observer_fits import fit_observers
from .magnitudes.regression_to_the_mean import REGRESSION_TO_THE_MEAN
from .measure import Dial, Estimate, FittedMeasure, Measure, ParameterMeasure, SubjectMeasure
from .posteriors.comparison import LeaveOneOut, leave_one_sequence_out
from .posteriors.posterior import Posterior, posterior
from .questions.next_question import ChosenQuestions, Inquiry, play_chosen
from .questions.stopping import StoppingRule
from .session_measure import SessionMeasure
from .stability import split_scores, split_variance

if TYPE_CHECKING:
    from .posteriors.arviz_objects import arviz_object, read_posterior, save_posterior
    from .posteriors.group_model import GroupModel, HierarchicalFit, hierarchical, pymc_model
    from .posteriors.left_out_subjects import predict_left_out

BOTH = (False, True)  # the measure, and its released form

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        OPTIMISM_BIAS,
        LEARNING_RATE,
        risk,
        *(weighting(of, released) for of in ("prior", "likelihood") for released in BOTH),
        *map(temporal_discounting, BOTH),
        *map(model_basedness, BOTH),
        *(exploration(kind, released) for kind in ("directed", "random") for released in BOTH),
        *map(meta_cognition, BOTH),
        perseverative_errors,
        trials_to_criterion,
        stay_or_shift("win"),
        stay_or_shift("loss"),
        *DECK_MEASURES,
        *(risk_attitude(likely, loss) for loss in BOTH for likely in BOTH),
        LOSS_AVERSION,
        low_offers_rejected,
        generous_offers,
        conditional_cooperation,
        area_of_gains,
        *(kind(released) for kind in (explaining_away, markov_violation) for released in BOTH),
        *(kind(released) for kind in (determinacy, reasoning_consistency) for released in BOTH),
        DO_VERSUS_SEE,
        NETWORK_MARKOV_VIOLATION,
        NETWORK_EXPLAINING_AWAY,
        power_weight,
        frequency_illusion,
        NORMALISED_ERROR,
        REGRESSION_TO_THE_MEAN,
        *CUE_MEASURES,
        *OUTCOME_BIASES,
        *IDLE_PULLS,
        *COHERENCE,
    )
}

# PyMC takes seconds to import, so these names are looked up at their first use.
_LATER = {
    "GroupModel": "posteriors.group_model",
    "HierarchicalFit": "posteriors.group_model",
    "arviz_object": "posteriors.arviz_objects",
    "hierarchical": "posteriors.group_model",
    "predict_left_out": "posteriors.left_out_subjects",
    "pymc_model": "posteriors.group_model",
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
    "ParameterMeasure",
    "PointFit",
    "Posterior",
    "SessionMeasure",
    "StoppingRule",
    "SubjectMeasure",
    "Unknowns",
    "area_under_curve",
    "arviz_object",
    "check_agent",
    "conditional_independence",
    "cross_validate",
    "elicitation_consistency",
    "fit_observers",
    "hierarchical",
    "identifiability",
    "indifference_points",
    "iterated_expectation",
    "leave_one_sequence_out",
    "leave_one_task_out",
    "maximum_a_posteriori",
    "maximum_likelihood",
    "monotone_choice",
    "play_chosen",
    "posterior",
    "predict_left_out",
    "predictive_gain",
    "pymc_model",
    "read_posterior",
    "save_posterior",
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
