"""Decision makers with known parameters.

`AGENTS` lists every model by name. Adding one is a file with its parameters, kernels and class,
and a line here; the contract tests run over this dictionary.
"""

from .agent import Agent
from .contaminants import Contaminants
from .parameters import IDENTITY, LAPSE, POSITIVE, UNIT, Parameter, Parameters, Support, interval
from .perseverator import Perseverator
from .play import play, simulate
from .random_responder import RandomResponder
from .rescorla_wagner import RescorlaWagner, RescorlaWagnerDual
from .win_stay_lose_shift import WinStayLoseShift

AGENTS: dict[str, type[Agent]] = {
    "rescorla_wagner": RescorlaWagner,
    "rescorla_wagner_dual": RescorlaWagnerDual,
    "random_responder": RandomResponder,
    "perseverator": Perseverator,
    "win_stay_lose_shift": WinStayLoseShift,
}

__all__ = [
    "AGENTS",
    "IDENTITY",
    "LAPSE",
    "POSITIVE",
    "UNIT",
    "Agent",
    "Contaminants",
    "Parameter",
    "Parameters",
    "Perseverator",
    "RandomResponder",
    "RescorlaWagner",
    "RescorlaWagnerDual",
    "Support",
    "WinStayLoseShift",
    "interval",
    "play",
    "simulate",
]

if __name__ != "knownminds.agents":
    raise ImportError(f"import knownminds.agents, not {__name__}")
