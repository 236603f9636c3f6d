"""Decision makers with known parameters.

`AGENTS` has every model by name. A shipped one is a line of `knownminds/members.toml`, and a public
name here, if the `__all__` of its file has it. The contract tests run over the lists.
"""

from types import ModuleType as _Module

from knownminds.environments.world import Payoffs as Payoffs
from knownminds.environments.world import Table as Table
from knownminds.environments.world import World as World
from knownminds.members import Members as _Members

from .bandits.balloon_pumper import *
from .bandits.belief_learners import *
from .bandits.confident_learners import *
from .bandits.discounters import *
from .bandits.horizon_explorer import *
from .bandits.learners import *
from .bandits.rescorla_wagner import *
from .bandits.two_step_hybrid import *
from .bandits.uncertainty_explorers import *
from .bandits.weighted_bayes import *
from .baselines.perseverator import *
from .baselines.random_confidence import *
from .baselines.random_responder import *
from .baselines.win_stay_lose_shift import *
from .causes.mutation_sampler import *
from .causes.noisy_or import *
from .chance.belief_sampler import *
from .compiler.definition import Law as Law
from .compiler.definition import LogitNormal as LogitNormal
from .compiler.definition import Normal as Normal
from .compiler.definition import Probabilities as Probabilities
from .compiler.definition import positive as positive
from .compiler.definition import real as real
from .compiler.definition import unit as unit
from .contaminants import Contaminants as Contaminants
from .diagnosis.deciders import *
from .magnitudes.cue_combiner import *
from .magnitudes.kalman_observer import *
from .magnitudes.observers import *
from .model import Model as Model
from .model import Selection as Selection
from .parameters import IDENTITY as IDENTITY
from .parameters import LAPSE as LAPSE
from .parameters import POSITIVE as POSITIVE
from .parameters import UNIT as UNIT
from .parameters import Parameter as Parameter
from .parameters import Parameters as Parameters
from .parameters import Support as Support
from .parameters import interval as interval
from .play import play as play
from .play import simulate as simulate
from .variants import holding as holding

AGENTS: _Members[type[Model]] = _Members(
    "models", lambda value: isinstance(value, type) and issubclass(value, Model)
)
__all__ = [
    name
    for name, value in tuple(globals().items())
    if not (name.startswith("_") or isinstance(value, _Module))
]

if __name__ != "knownminds.agents":
    raise ImportError(f"import knownminds.agents, not {__name__}")
