"""Experiments with a step interface, their words and parsers, and the trial record.

`ENVIRONMENTS` lists every experiment by name; `make` builds one.
"""

from typing import Any

from .answer import ANSWERED, Answer, Outcome, parse_beginning, parse_label, parse_number
from .balloon_risk import BalloonRisk
from .broken_off import BrokenOff, Context
from .chance import Chance
from .choice import Choice
from .coins import Coins
from .collider import Collider
from .conformance import check_environment
from .design import Design, session_stream
from .diagnosis import Diagnosis
from .dice import Dice
from .duration import Duration
from .environment import Environment, Observation, Turn
from .horizon import Horizon
from .instrumental_learning import InstrumentalLearning
from .line_ratio import LineRatio
from .magnitude import CONDITIONS, MODALITIES, WINDOWS, Magnitude
from .marker_location import MarkerLocation
from .maze_distance import MazeDistance
from .names import unknown
from .outcome_rates import Rate, outcome_rates, unread_rate
from .preference import Preference
from .probabilistic_reasoning import ProbabilisticReasoning
from .prompt import Message, Prompt, Template, load_templates
from .restless_bandit import RestlessBandit, correctness
from .scenarios import SCENARIOS, complete_grid, context_of
from .temporal_discounting import TemporalDiscounting
from .trial_schema import TrialSchema, trial_schema
from .trials import COLUMNS, SCHEMA_VERSION, Trials, schema
from .two_step import TwoStep, stages_of_days

ENVIRONMENTS: dict[str, type[Environment]] = {
    "instrumental_learning": InstrumentalLearning,
    "coins": Coins,
    "dice": Dice,
    "choice": Choice,
    "preference": Preference,
    "collider": Collider,
    "marker_location": MarkerLocation,
    "line_ratio": LineRatio,
    "maze_distance": MazeDistance,
    "duration": Duration,
    "balloon_risk": BalloonRisk,
    "horizon": Horizon,
    "probabilistic_reasoning": ProbabilisticReasoning,
    "temporal_discounting": TemporalDiscounting,
    "diagnosis": Diagnosis,
    "two_step": TwoStep,
    "restless_bandit": RestlessBandit,
}


def make(name: str, **settings: Any) -> Environment:
    """Build an experiment by name; ValueError names the nearest ones if there is none."""
    if name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", name, ENVIRONMENTS))
    return ENVIRONMENTS[name](**settings)


__all__ = [
    "ANSWERED",
    "COLUMNS",
    "CONDITIONS",
    "ENVIRONMENTS",
    "MODALITIES",
    "SCENARIOS",
    "SCHEMA_VERSION",
    "WINDOWS",
    "Answer",
    "BalloonRisk",
    "BrokenOff",
    "Chance",
    "Choice",
    "Coins",
    "Collider",
    "Context",
    "Design",
    "Diagnosis",
    "Dice",
    "Duration",
    "Environment",
    "Horizon",
    "InstrumentalLearning",
    "LineRatio",
    "Magnitude",
    "MarkerLocation",
    "MazeDistance",
    "Message",
    "Observation",
    "Outcome",
    "Preference",
    "ProbabilisticReasoning",
    "Prompt",
    "Rate",
    "RestlessBandit",
    "Template",
    "TemporalDiscounting",
    "TrialSchema",
    "Trials",
    "Turn",
    "TwoStep",
    "check_environment",
    "complete_grid",
    "context_of",
    "correctness",
    "load_templates",
    "make",
    "outcome_rates",
    "parse_beginning",
    "parse_label",
    "parse_number",
    "schema",
    "session_stream",
    "stages_of_days",
    "trial_schema",
    "unknown",
    "unread_rate",
]

if __name__ != "knownminds.environments":
    raise ImportError(f"import knownminds.environments, not {__name__}")
