"""Decision makers with known parameters.

`AGENTS` lists every model by name. Adding one is a file with its parameters, kernels and class,
and a line here; the contract tests run over this dictionary.
"""

from .agent import Agent
from .balloon_pumper import BalloonPumper
from .confident_learners import (
    ChangePointObserver,
    RandomResponderConfidence,
    RescorlaWagnerConfidence,
)
from .contaminants import Contaminants
from .discounters import (
    ExponentialDiscounter,
    HyperbolicDiscounter,
    QuasiHyperbolicDiscounter,
)
from .horizon_explorer import HorizonBlind, HorizonExplorer
from .parameters import IDENTITY, LAPSE, POSITIVE, UNIT, Parameter, Parameters, Support, interval
from .perseverator import Perseverator
from .play import play, simulate
from .random_rater import RandomRater
from .random_responder import RandomResponder
from .rescorla_wagner import RescorlaWagner, RescorlaWagnerDual
from .two_step_hybrid import (
    TwoStepHybrid,
    TwoStepModelBased,
    TwoStepModelFree,
    TwoStepReduced,
)
from .weighted_bayes import WeightedBayes
from .win_stay_lose_shift import WinStayLoseShift

AGENTS: dict[str, type[Agent]] = {
    "rescorla_wagner": RescorlaWagner,
    "rescorla_wagner_dual": RescorlaWagnerDual,
    "random_responder": RandomResponder,
    "perseverator": Perseverator,
    "win_stay_lose_shift": WinStayLoseShift,
    "balloon_pumper": BalloonPumper,
    "random_rater": RandomRater,
    "weighted_bayes": WeightedBayes,
    "exponential_discounter": ExponentialDiscounter,
    "hyperbolic_discounter": HyperbolicDiscounter,
    "quasi_hyperbolic_discounter": QuasiHyperbolicDiscounter,
    "two_step_hybrid": TwoStepHybrid,
    "two_step_model_free": TwoStepModelFree,
    "two_step_model_based": TwoStepModelBased,
    "two_step_reduced": TwoStepReduced,
    "horizon_explorer": HorizonExplorer,
    "horizon_blind": HorizonBlind,
    "change_point_observer": ChangePointObserver,
    "rescorla_wagner_confidence": RescorlaWagnerConfidence,
    "random_responder_confidence": RandomResponderConfidence,
}

__all__ = [
    "AGENTS",
    "IDENTITY",
    "LAPSE",
    "POSITIVE",
    "UNIT",
    "Agent",
    "BalloonPumper",
    "ChangePointObserver",
    "Contaminants",
    "ExponentialDiscounter",
    "HorizonBlind",
    "HorizonExplorer",
    "HyperbolicDiscounter",
    "Parameter",
    "Parameters",
    "Perseverator",
    "QuasiHyperbolicDiscounter",
    "RandomRater",
    "RandomResponder",
    "RandomResponderConfidence",
    "RescorlaWagner",
    "RescorlaWagnerConfidence",
    "RescorlaWagnerDual",
    "Support",
    "TwoStepHybrid",
    "TwoStepModelBased",
    "TwoStepModelFree",
    "TwoStepReduced",
    "WeightedBayes",
    "WinStayLoseShift",
    "interval",
    "play",
    "simulate",
]

if __name__ != "knownminds.agents":
    raise ImportError(f"import knownminds.agents, not {__name__}")
