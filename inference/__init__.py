"""From trials to parameters and posteriors.

Point fits need NumPy and numba alone; what samples (`hierarchical`, NUTS) loads PyMC when it is
first asked for.
"""

from typing import TYPE_CHECKING, Any

from .agent_contract import AgentCheck, check_agent
from .bandits.deck_measures import NetScore, NetScoreRise, Payoff, RareLossPreference
from .bandits.exploration import Exploration
from .bandits.learning_rate import LearningRate
from .bandits.meta_cognition import MetaCognition
from .bandits.model_basedness import ModelBasedness
from .bandits.optimism_bias import OptimismBias
from .bandits.reversal_measures import PerseverativeErrors, StayOrShift, TrialsToCriterion
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
from .causes.network_contrasts import (
    DoVersusSee,
    NetworkExplainingAway,
    NetworkMarkovViolation,
)
from .causes.reasoning_consistency import Consistency
from .causes.strength_contrasts import FrequencyIllusion, PowerWeight
from .chance.belief_biases import BeliefBias
from .chance.idle_evidence import IdlePull
from .decisions.ladders import AreaUnderCurve, area_under_curve, indifference_points
from .decisions.risk_attitudes import LossAversion, RiskAttitude
from .decisions.sharing import ConditionalCooperation, GenerousOffers, RejectedOffers
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
from .magnitudes.conflict_weight import ConflictWeight, ConflictWeightExcess
from .magnitudes.cue_weight import CueEfficiency, CueWeight, CueWeightExcess
from .magnitudes.normalised_error import NormalisedError
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
from .questions.next_question import ChosenQuestions, Inquiry, play_chosen
from .questions.stopping import StopBy, StoppingRule
from .session_measure import SessionMeasure
from .stability import VarianceSplit, split_scores, split_variance

if TYPE_CHECKING:
    from .posteriors.arviz_objects import arviz_object, read_posterior, save_posterior
    from .posteriors.group_model import GroupModel, HierarchicalFit, hierarchical, pymc_model

# Written out, since shells complete these names without importing anything.
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
    "perseverative_errors": PerseverativeErrors(),
    "trials_to_criterion": TrialsToCriterion(),
    "win_stay": StayOrShift("win"),
    "lose_shift": StayOrShift("loss"),
    "net_score": NetScore(),
    "net_score_block_1": NetScore(1),
    "net_score_block_2": NetScore(2),
    "net_score_block_3": NetScore(3),
    "net_score_block_4": NetScore(4),
    "net_score_block_5": NetScore(5),
    "net_score_rise": NetScoreRise(),
    "rare_loss_preference": RareLossPreference(),
    "payoff": Payoff(),
    "risk_seeking_rare_gains": RiskAttitude(),
    "risk_seeking_likely_gains": RiskAttitude(likely=True),
    "risk_seeking_rare_losses": RiskAttitude(loss=True),
    "risk_seeking_likely_losses": RiskAttitude(likely=True, loss=True),
    "loss_aversion": LossAversion(),
    "low_offers_rejected": RejectedOffers(),
    "generous_offers": GenerousOffers(),
    "conditional_cooperation": ConditionalCooperation(),
    "area_under_curve": AreaUnderCurve(),
    "explaining_away": ExplainingAway(),
    "explaining_away_released": ExplainingAway(released=True),
    "markov_violation": MarkovViolation(),
    "markov_violation_released": MarkovViolation(released=True),
    "determinacy": Determinacy(),
    "determinacy_released": Determinacy(released=True),
    "reasoning_consistency": Consistency(),
    "reasoning_consistency_released": Consistency(released=True),
    "do_versus_see": DoVersusSee(),
    "network_markov_violation": NetworkMarkovViolation(),
    "network_explaining_away": NetworkExplainingAway(),
    "power_weight": PowerWeight(),
    "frequency_illusion": FrequencyIllusion(),
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
    "idle_fact_pull": IdlePull("aside"),
    "idle_count_pull": IdlePull("independent"),
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
    "conflict_weight": ConflictWeight(),
    "conflict_weight_excess": ConflictWeightExcess(),
}

# PyMC takes seconds to import, so these names are looked up when they are first used.
_LATER = {
    "GroupModel": "posteriors.group_model",
    "HierarchicalFit": "posteriors.group_model",
    "arviz_object": "posteriors.arviz_objects",
    "hierarchical": "posteriors.group_model",
    "pymc_model": "posteriors.group_model",
    "read_posterior": "posteriors.arviz_objects",
    "save_posterior": "posteriors.arviz_objects",
}

__all__ = [
    "MEASURES",
    "AgentCheck",
    "AreaUnderCurve",
    "BeliefBias",
    "BeliefDecisions",
    "ChosenQuestions",
    "Coherence",
    "ConditionalCooperation",
    "ConditionalIndependence",
    "ConflictWeight",
    "ConflictWeightExcess",
    "Consistency",
    "CrossValidation",
    "CueEfficiency",
    "CueWeight",
    "CueWeightExcess",
    "Determinacy",
    "Dial",
    "DoVersusSee",
    "ElicitationConsistency",
    "Estimate",
    "ExplainingAway",
    "Exploration",
    "FittedMeasure",
    "Folds",
    "FrequencyIllusion",
    "GenerousOffers",
    "GroupModel",
    "HierarchicalFit",
    "Identifiability",
    "IdlePull",
    "Inquiry",
    "IteratedExpectation",
    "LearningRate",
    "LeastSquaresFit",
    "LeaveOneOut",
    "LossAversion",
    "MarkovViolation",
    "Measure",
    "MetaCognition",
    "ModelBasedness",
    "ModelData",
    "MonotoneChoice",
    "NetScore",
    "NetScoreRise",
    "NetworkExplainingAway",
    "NetworkMarkovViolation",
    "NormalisedError",
    "ObserverFits",
    "OptimismBias",
    "ParameterMeasure",
    "Payoff",
    "PerseverativeErrors",
    "PointFit",
    "Posterior",
    "PowerWeight",
    "PredictiveGain",
    "RareLossPreference",
    "ReasoningConsistency",
    "RegressionToTheMean",
    "RejectedOffers",
    "Risk",
    "RiskAttitude",
    "SessionMeasure",
    "StayOrShift",
    "StopBy",
    "StoppingRule",
    "SubjectMeasure",
    "TemporalDiscountingScore",
    "TrialsToCriterion",
    "Unknowns",
    "VarianceSplit",
    "Weighting",
    "area_under_curve",
    "arviz_object",
    "check_agent",
    "compare",
    "conditional_independence",
    "cross_validate",
    "elicitation_consistency",
    "fit_observers",
    "hierarchical",
    "identifiability",
    "indifference_points",
    "iterated_expectation",
    "least_squares",
    "leave_one_sequence_out",
    "leave_one_subject_out",
    "leave_one_task_out",
    "maximum_a_posteriori",
    "maximum_likelihood",
    "monotone_choice",
    "play_chosen",
    "posterior",
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
