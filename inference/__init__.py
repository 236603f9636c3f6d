"""From trials to parameters and posteriors.

Point fits need NumPy and numba alone; what samples (`hierarchical`, NUTS) loads PyMC when it is
first used.
"""

from typing import TYPE_CHECKING, Any

from knownminds.environments.chance.outcome_grid import MARKS

from .agent_contract import check_agent
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
from .causes.cell_contrast import ExplainingAway, MarkovViolation
from .causes.least_squares_reasoner import leave_one_task_out
from .causes.network_contrasts import (
    DoVersusSee,
    NetworkExplainingAway,
    NetworkMarkovViolation,
)
from .causes.reasoner_measure import Consistency, Determinacy
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
from .fits.cross_validation import Folds, cross_validate
from .fits.identifiability import identifiability
from .fits.model_data import ModelData, Unknowns
from .fits.point import PointFit, maximum_a_posteriori, maximum_likelihood
from .magnitudes.cue_weight import (
    ConflictWeight,
    ConflictWeightExcess,
    CueEfficiency,
    CueWeight,
    CueWeightExcess,
)
from .magnitudes.normalised_error import NormalisedError
from .magnitudes.observer_fits import fit_observers
from .magnitudes.regression_to_the_mean import RegressionToTheMean
from .measure import Dial, Estimate, FittedMeasure, Measure, ParameterMeasure, SubjectMeasure
from .posteriors.comparison import (
    LeaveOneOut,
    leave_one_sequence_out,
)
from .posteriors.posterior import Posterior, posterior
from .questions.next_question import ChosenQuestions, Inquiry, play_chosen
from .questions.stopping import StopBy, StoppingRule
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
        OptimismBias(),
        LearningRate(),
        Risk(),
        *(Weighting(of, released) for of in ("prior", "likelihood") for released in BOTH),
        *map(TemporalDiscountingScore, BOTH),
        *map(ModelBasedness, BOTH),
        *(Exploration(kind, released) for kind in ("directed", "random") for released in BOTH),
        *map(MetaCognition, BOTH),
        PerseverativeErrors(),
        TrialsToCriterion(),
        StayOrShift("win"),
        StayOrShift("loss"),
        *map(NetScore, (None, 1, 2, 3, 4, 5)),
        NetScoreRise(),
        RareLossPreference(),
        Payoff(),
        *(RiskAttitude(likely, loss) for loss in BOTH for likely in BOTH),
        LossAversion(),
        RejectedOffers(),
        GenerousOffers(),
        ConditionalCooperation(),
        AreaUnderCurve(),
        *(kind(released) for kind in (ExplainingAway, MarkovViolation) for released in BOTH),
        *(kind(released) for kind in (Determinacy, Consistency) for released in BOTH),
        DoVersusSee(),
        NetworkMarkovViolation(),
        NetworkExplainingAway(),
        PowerWeight(),
        FrequencyIllusion(),
        NormalisedError(),
        RegressionToTheMean(),
        CueWeight(),
        CueWeightExcess(),
        CueEfficiency(),
        *map(BeliefBias, MARKS),
        *map(IdlePull, ("aside", "independent")),
        *(
            ConditionalIndependence(calibrated, released)
            for calibrated in BOTH
            for released in BOTH
        ),
        *map(PredictiveGain, BOTH),
        *map(MonotoneChoice, BOTH),
        *map(ElicitationConsistency, BOTH),
        *map(IteratedExpectation, BOTH),
        ConflictWeight(),
        ConflictWeightExcess(),
    )
}

# PyMC takes seconds to import, so these names are looked up when they are first used.
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
    "StopBy",
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
