"""Decision makers with known parameters.

`AGENTS` lists every model by name. To add a model, put its name into the `__all__` of its file; a
new file also needs a line here. The contract tests run over this dictionary.
"""

from types import ModuleType as _Module

from knownminds.environments.world import Payoffs as Payoffs
from knownminds.environments.world import Table as Table
from knownminds.environments.world import World as World

from .compiler.definition import Law as Law
from .compiler.definition import LogitNormal as LogitNormal
from .compiler.definition import Normal as Normal
from .compiler.definition import Probabilities as Probabilities
from .compiler.definition import positive as positive
from .compiler.definition import real as real
from .compiler.definition import unit as unit
from .contaminants import Contaminants as Contaminants
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

# The order is that of `AGENTS`. If any model will do, it is the first that plays an experiment.
# isort: off
from .bandits.rescorla_wagner import *
from .bandits.learners import *
from .bandits.belief_learners import *
from .baselines.random_responder import *
from .baselines.perseverator import *
from .baselines.win_stay_lose_shift import *
from .bandits.balloon_pumper import *
from .bandits.weighted_bayes import *
from .bandits.discounters import *
from .bandits.two_step_hybrid import *
from .bandits.horizon_explorer import *
from .bandits.uncertainty_explorers import *
from .bandits.confident_learners import *
from .baselines.random_confidence import *
from .bandits.reversal_learners import *
from .bandits.iowa_learners import *
from .causes.noisy_or import *
from .causes.mutation_sampler import *
from .causes.network_reasoners import *
from .causes.strength_judges import *
from .magnitudes.observers import *
from .magnitudes.kalman_observer import *
from .magnitudes.cue_combiner import *
from .chance.belief_sampler import *
from .diagnosis.deciders import *
from .magnitudes.cue_weighers import *
from .magnitudes.curved_observers import *
from .decisions.risk_takers import *
from .decisions.ambiguity_takers import *
from .chance.weighers import *
from .decisions.sharers import *

# isort: on

AGENTS: dict[str, type[Model]] = {
    model.name: model
    for model in tuple(globals().values())
    if isinstance(model, type) and issubclass(model, Model) and model is not Model
}
__all__ = [
    name
    for name, value in tuple(globals().items())
    if not (name.startswith("_") or isinstance(value, _Module))
]

if __name__ != "knownminds.agents":
    raise ImportError(f"import knownminds.agents, not {__name__}")
