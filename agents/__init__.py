"""Decision makers with known parameters.

`AGENTS` lists every model by name. Adding one is a file with its class, a `Model` that is written
once or an `Agent` with kernels of its own, and a line here; the contract tests run over this
dictionary.
"""

from knownminds.environments.world import Payoffs, Table, World

from .agent import Agent, Selection, merging
from .bandits.balloon_pumper import BalloonPumper
from .bandits.belief_learners import LeakyBeta
from .bandits.confident_learners import (
    ChangePointObserver,
    RandomResponderConfidence,
    RescorlaWagnerConfidence,
)
from .bandits.curved_discounters import (
    ConstantSensitivityDiscounter,
    FixedCostDiscounter,
    GeneralisedHyperbolicDiscounter,
    RachlinDiscounter,
)
from .bandits.discounters import (
    ExponentialDiscounter,
    HyperbolicDiscounter,
    QuasiHyperbolicDiscounter,
)
from .bandits.horizon_explorer import HorizonBlind, HorizonExplorer
from .bandits.iowa_learners import (
    ExpectancyValence,
    OutcomeRepresentation,
    ProspectValenceDecay,
    ProspectValenceDelta,
    ValuePlusExploration,
    ValuePlusPerseverance,
)
from .bandits.learners import (
    ActorCritic,
    DecayingRateLearner,
    ForgettingLearner,
    OutcomeSensitivity,
    PearceHall,
    RescorlaWagnerChoiceKernel,
)
from .bandits.mean_variance import MeanVariancePumper
from .bandits.reasoners import ConservativeBayes, ProbabilityNoise
from .bandits.rescorla_wagner import RescorlaWagner, RescorlaWagnerDual
from .bandits.reversal_learners import (
    ExperienceWeightedAttraction,
    FictitiousUpdate,
    FictitiousUpdateDual,
    HiddenStateReversal,
    RewardPunishment,
)
from .bandits.two_step_hybrid import (
    TwoStepHybrid,
    TwoStepModelBased,
    TwoStepModelFree,
    TwoStepReduced,
)
from .bandits.uncertainty_explorers import (
    ThompsonExplorer,
    UncertaintyExplorer,
    UpperConfidenceExplorer,
)
from .bandits.weighted_bayes import WeightedBayes
from .baselines.choice_kernel import ChoiceKernel
from .baselines.perseverator import Perseverator
from .baselines.random_rater import RandomRater
from .baselines.random_responder import RandomResponder
from .baselines.win_stay_lose_shift import WinStayLoseShift
from .causes.associative_reasoner import AssociativeReasoner
from .causes.logistic_collider import LogisticCollider
from .causes.mutation_sampler import MutationSampler
from .causes.noisy_or import NoisyOr, NoisyOrFive, NoisyOrGaussian, NoisyOrPooled, NoisyOrThree
from .chance.belief_sampler import BeliefSampler, BeliefSamplerStated
from .compiler.definition import (
    Law,
    LogitNormal,
    Normal,
    Probabilities,
    positive,
    real,
    unit,
)
from .compiler.model import Model
from .contaminants import Contaminants
from .diagnosis.belief_violators import (
    FrameDependent,
    IncoherentBeliever,
    Misreporter,
    NoisyReporter,
    NonMonotoneDecider,
    OutcomePeeker,
)
from .diagnosis.prospect_utility import ProspectUtility, ProspectUtilityTverskyKahneman
from .diagnosis.random_utility import RandomUtility
from .magnitudes.cue_combiner import (
    CueCombiner,
    CueCombinerEqual,
    CueCombinerOptimal,
)
from .magnitudes.kalman_observer import (
    KalmanObserver,
    KalmanObserverAffine,
    KalmanObserverAffineLog,
    KalmanObserverGain,
    KalmanObserverGainLog,
    KalmanObserverLog,
    KalmanObserverShared,
    KalmanObserverSharedLog,
)
from .magnitudes.linear_observers import (
    LinearObserver,
    LinearObserverLog,
    NoisyBayesObserver,
    StaticBayesObserver,
    StaticBayesObserverAffine,
    StaticBayesObserverAffineLog,
    StaticBayesObserverGain,
    StaticBayesObserverGainLog,
    StaticBayesObserverLog,
    StaticBayesObserverShared,
    StaticBayesObserverSharedLog,
)
from .magnitudes.magnitude_observer import MagnitudeObserver
from .parameters import IDENTITY, LAPSE, POSITIVE, UNIT, Parameter, Parameters, Support, interval
from .play import play, simulate

AGENTS: dict[str, type[Agent]] = {
    "rescorla_wagner": RescorlaWagner,
    "rescorla_wagner_dual": RescorlaWagnerDual,
    "rescorla_wagner_choice_kernel": RescorlaWagnerChoiceKernel,
    "forgetting_learner": ForgettingLearner,
    "pearce_hall": PearceHall,
    "decaying_rate_learner": DecayingRateLearner,
    "outcome_sensitivity": OutcomeSensitivity,
    "actor_critic": ActorCritic,
    "leaky_beta": LeakyBeta,
    "random_responder": RandomResponder,
    "perseverator": Perseverator,
    "choice_kernel": ChoiceKernel,
    "win_stay_lose_shift": WinStayLoseShift,
    "balloon_pumper": BalloonPumper,
    "mean_variance_pumper": MeanVariancePumper,
    "random_rater": RandomRater,
    "weighted_bayes": WeightedBayes,
    "conservative_bayes": ConservativeBayes,
    "probability_noise": ProbabilityNoise,
    "exponential_discounter": ExponentialDiscounter,
    "hyperbolic_discounter": HyperbolicDiscounter,
    "quasi_hyperbolic_discounter": QuasiHyperbolicDiscounter,
    "generalised_hyperbolic_discounter": GeneralisedHyperbolicDiscounter,
    "rachlin_discounter": RachlinDiscounter,
    "constant_sensitivity_discounter": ConstantSensitivityDiscounter,
    "fixed_cost_discounter": FixedCostDiscounter,
    "two_step_hybrid": TwoStepHybrid,
    "two_step_model_free": TwoStepModelFree,
    "two_step_model_based": TwoStepModelBased,
    "two_step_reduced": TwoStepReduced,
    "horizon_explorer": HorizonExplorer,
    "horizon_blind": HorizonBlind,
    "uncertainty_explorer": UncertaintyExplorer,
    "upper_confidence_explorer": UpperConfidenceExplorer,
    "thompson_explorer": ThompsonExplorer,
    "change_point_observer": ChangePointObserver,
    "rescorla_wagner_confidence": RescorlaWagnerConfidence,
    "random_responder_confidence": RandomResponderConfidence,
    "reward_punishment": RewardPunishment,
    "fictitious_update": FictitiousUpdate,
    "fictitious_update_dual": FictitiousUpdateDual,
    "experience_weighted_attraction": ExperienceWeightedAttraction,
    "hidden_state_reversal": HiddenStateReversal,
    "prospect_valence_delta": ProspectValenceDelta,
    "outcome_representation": OutcomeRepresentation,
    "prospect_valence_decay": ProspectValenceDecay,
    "value_plus_exploration": ValuePlusExploration,
    "expectancy_valence": ExpectancyValence,
    "value_plus_perseverance": ValuePlusPerseverance,
    "noisy_or": NoisyOr,
    "noisy_or_three": NoisyOrThree,
    "noisy_or_five": NoisyOrFive,
    "noisy_or_gaussian": NoisyOrGaussian,
    "noisy_or_pooled": NoisyOrPooled,
    "logistic_collider": LogisticCollider,
    "mutation_sampler": MutationSampler,
    "associative_reasoner": AssociativeReasoner,
    "linear_observer": LinearObserver,
    "linear_observer_log": LinearObserverLog,
    "static_bayes_observer": StaticBayesObserver,
    "static_bayes_observer_log": StaticBayesObserverLog,
    "static_bayes_observer_gain": StaticBayesObserverGain,
    "static_bayes_observer_gain_log": StaticBayesObserverGainLog,
    "static_bayes_observer_affine": StaticBayesObserverAffine,
    "static_bayes_observer_affine_log": StaticBayesObserverAffineLog,
    "static_bayes_observer_shared": StaticBayesObserverShared,
    "static_bayes_observer_shared_log": StaticBayesObserverSharedLog,
    "kalman_observer": KalmanObserver,
    "kalman_observer_log": KalmanObserverLog,
    "kalman_observer_gain": KalmanObserverGain,
    "kalman_observer_gain_log": KalmanObserverGainLog,
    "kalman_observer_affine": KalmanObserverAffine,
    "kalman_observer_affine_log": KalmanObserverAffineLog,
    "kalman_observer_shared": KalmanObserverShared,
    "kalman_observer_shared_log": KalmanObserverSharedLog,
    "noisy_bayes_observer": NoisyBayesObserver,
    "cue_combiner": CueCombiner,
    "cue_combiner_equal": CueCombinerEqual,
    "cue_combiner_optimal": CueCombinerOptimal,
    "belief_sampler": BeliefSampler,
    "belief_sampler_stated": BeliefSamplerStated,
    "random_utility": RandomUtility,
    "prospect_utility": ProspectUtility,
    "prospect_utility_tversky_kahneman": ProspectUtilityTverskyKahneman,
    "outcome_peeker": OutcomePeeker,
    "misreporter": Misreporter,
    "noisy_reporter": NoisyReporter,
    "incoherent_believer": IncoherentBeliever,
    "frame_dependent": FrameDependent,
    "non_monotone_decider": NonMonotoneDecider,
}

__all__ = [
    "AGENTS",
    "IDENTITY",
    "LAPSE",
    "POSITIVE",
    "UNIT",
    "ActorCritic",
    "Agent",
    "AssociativeReasoner",
    "BalloonPumper",
    "BeliefSampler",
    "BeliefSamplerStated",
    "ChangePointObserver",
    "ChoiceKernel",
    "ConservativeBayes",
    "ConstantSensitivityDiscounter",
    "Contaminants",
    "CueCombiner",
    "CueCombinerEqual",
    "CueCombinerOptimal",
    "DecayingRateLearner",
    "ExpectancyValence",
    "ExperienceWeightedAttraction",
    "ExponentialDiscounter",
    "FictitiousUpdate",
    "FictitiousUpdateDual",
    "FixedCostDiscounter",
    "ForgettingLearner",
    "FrameDependent",
    "GeneralisedHyperbolicDiscounter",
    "HiddenStateReversal",
    "HorizonBlind",
    "HorizonExplorer",
    "HyperbolicDiscounter",
    "IncoherentBeliever",
    "KalmanObserver",
    "KalmanObserverAffine",
    "KalmanObserverAffineLog",
    "KalmanObserverGain",
    "KalmanObserverGainLog",
    "KalmanObserverLog",
    "KalmanObserverShared",
    "KalmanObserverSharedLog",
    "Law",
    "LeakyBeta",
    "LinearObserver",
    "LinearObserverLog",
    "LogisticCollider",
    "LogitNormal",
    "MagnitudeObserver",
    "MeanVariancePumper",
    "Misreporter",
    "Model",
    "MutationSampler",
    "NoisyBayesObserver",
    "NoisyOr",
    "NoisyOrFive",
    "NoisyOrGaussian",
    "NoisyOrPooled",
    "NoisyOrThree",
    "NoisyReporter",
    "NonMonotoneDecider",
    "Normal",
    "OutcomePeeker",
    "OutcomeRepresentation",
    "OutcomeSensitivity",
    "Parameter",
    "Parameters",
    "Payoffs",
    "PearceHall",
    "Perseverator",
    "Probabilities",
    "ProbabilityNoise",
    "ProspectUtility",
    "ProspectUtilityTverskyKahneman",
    "ProspectValenceDecay",
    "ProspectValenceDelta",
    "QuasiHyperbolicDiscounter",
    "RachlinDiscounter",
    "RandomRater",
    "RandomResponder",
    "RandomResponderConfidence",
    "RandomUtility",
    "RescorlaWagner",
    "RescorlaWagnerChoiceKernel",
    "RescorlaWagnerConfidence",
    "RescorlaWagnerDual",
    "RewardPunishment",
    "Selection",
    "StaticBayesObserver",
    "StaticBayesObserverAffine",
    "StaticBayesObserverAffineLog",
    "StaticBayesObserverGain",
    "StaticBayesObserverGainLog",
    "StaticBayesObserverLog",
    "StaticBayesObserverShared",
    "StaticBayesObserverSharedLog",
    "Support",
    "Table",
    "ThompsonExplorer",
    "TwoStepHybrid",
    "TwoStepModelBased",
    "TwoStepModelFree",
    "TwoStepReduced",
    "UncertaintyExplorer",
    "UpperConfidenceExplorer",
    "ValuePlusExploration",
    "ValuePlusPerseverance",
    "WeightedBayes",
    "WinStayLoseShift",
    "World",
    "interval",
    "merging",
    "play",
    "positive",
    "real",
    "simulate",
    "unit",
]

if __name__ != "knownminds.agents":
    raise ImportError(f"import knownminds.agents, not {__name__}")
