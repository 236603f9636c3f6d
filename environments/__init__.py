"""Experiments with a step interface, their words and parsers, and the trial record.

`ENVIRONMENTS` lists every experiment by name; `make` builds one.
"""

from typing import Any

from .bandits.balloon_risk import BalloonRisk
from .bandits.horizon import Horizon
from .bandits.instrumental_learning import InstrumentalLearning
from .bandits.probabilistic_reasoning import ProbabilisticReasoning
from .bandits.restless_bandit import RestlessBandit, correctness
from .bandits.temporal_discounting import TemporalDiscounting
from .bandits.two_step import TwoStep, stages_of_days
from .causes.collider import Collider
from .chance.chance import Chance
from .chance.choice import Choice
from .chance.coins import Coins
from .chance.dice import Dice
from .chance.outcome_grid import BrokenOff, Context
from .chance.preference import Preference
from .chance.scenarios import SCENARIOS, complete_grid, context_of
from .conformance import check_environment
from .design import Design, session_stream
from .diagnosis.diagnosis import Diagnosis
from .environment import Environment, Observation, Turn
from .magnitudes.duration import Duration
from .magnitudes.line_ratio import LineRatio
from .magnitudes.magnitude import CONDITIONS, MODALITIES, WINDOWS, Magnitude
from .magnitudes.marker_location import MarkerLocation
from .magnitudes.maze_distance import MazeDistance
from .record.outcome_rates import Rate, outcome_rates, unread_rate
from .record.trial_schema import TrialSchema, trial_schema
from .record.trials import COLUMNS, SCHEMA_VERSION, Trials, schema
from .session import Session
from .words.answer import ANSWERED, Answer, Outcome, parse_beginning, parse_label, parse_number
from .words.names import unknown
from .words.prompt import Message, Prompt, Template, load_templates

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
    "Session",
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
