"""Experiments with a step interface, their words and parsers, and the trial record.

`ENVIRONMENTS` lists every experiment by name; `make` builds one.
"""

from typing import Any

from .bandits.balloon_risk import BalloonRisk
from .bandits.horizon import Horizon
from .bandits.instrumental_learning import InstrumentalLearning
from .bandits.iowa_gambling import IowaGambling
from .bandits.probabilistic_reasoning import ProbabilisticReasoning
from .bandits.restless_bandit import RestlessBandit, correctness
from .bandits.reversal_learning import ReversalLearning
from .bandits.temporal_discounting import TemporalDiscounting
from .bandits.two_step import TwoStep
from .causes.causal_inference import CausalInference
from .causes.causal_strength import CausalStrength
from .causes.collider import Collider
from .causes.contingency import causal_power, causal_support, delta_p
from .causes.networks import NAMED_GRAPHS, CausalNetwork, connected_graphs
from .chance.chance import Chance
from .chance.choice import Choice
from .chance.coins import Coins
from .chance.counts import Counts
from .chance.dice import Dice
from .chance.linked_coins import LinkedCoins
from .chance.outcome_grid import BrokenOff, Context
from .chance.preference import Preference
from .chance.scenarios import FURTHER, SCENARIOS, complete_grid, context_of, further_grid
from .conformance import check_environment
from .decisions.adjusting_amount import AdjustingAmount
from .decisions.ambiguity import Ambiguity
from .decisions.public_goods import PublicGoods
from .decisions.risky_choice import RiskyChoice
from .decisions.ultimatum import Ultimatum
from .design import Design, session_stream
from .diagnosis.diagnosis import Diagnosis
from .environment import Environment, Observation, Turn, answer_columns
from .fields import Field, Fields, Number, Numbers, OneOf, SomeOf, Whole, setting
from .formats.reshaped import (
    better_machine,
    blocks_of_means,
    games_of_plays,
    pumps_of_balloons,
    stages_of_days,
)
from .magnitudes.cue_conflict import CueConflict
from .magnitudes.duration import Duration
from .magnitudes.line_ratio import LineRatio
from .magnitudes.magnitude import CONDITIONS, MODALITIES, WINDOWS, Magnitude
from .magnitudes.marker_location import MarkerLocation
from .magnitudes.maze_distance import MazeDistance
from .panels import Panel, Rows, panels_of
from .record.outcome_rates import Rate, outcome_rates, unread_rate
from .record.trial_schema import TrialSchema, trial_schema
from .record.trials import COLUMNS, SCHEMA_VERSION, Trials, schema
from .replies import Replies
from .rerun import Rerun
from .session import ChosenSession, Picked, Session, check_questions
from .words.answer import ANSWERED, Answer, Outcome, parse_beginning, parse_label, parse_number
from .words.names import unknown
from .words.prompt import Message, Prompt, Template, load_templates
from .words.screen import Screen
from .world import Payoffs, Table, World

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
    "reversal_learning": ReversalLearning,
    "iowa_gambling": IowaGambling,
    "cue_conflict": CueConflict,
    "causal_inference": CausalInference,
    "causal_strength": CausalStrength,
    "risky_choice": RiskyChoice,
    "ambiguity": Ambiguity,
    "counts": Counts,
    "linked_coins": LinkedCoins,
    "ultimatum": Ultimatum,
    "public_goods": PublicGoods,
    "adjusting_amount": AdjustingAmount,
}


def make(name: str, **settings: Any) -> Environment:
    """Build an experiment by name; ValueError names the nearest ones if there is none."""
    if name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", name, ENVIRONMENTS))
    return ENVIRONMENTS[name](**settings)


def environment_of(trials: Trials, name: str) -> Environment:
    """Return the experiment of trials with the settings they were made with.

    As the file has them; of trials from elsewhere as far as their columns tell, and else as
    shipped.

    Raises
    ------
    ValueError
        If there is no such experiment, or no setting that the trials tell.
    """
    if name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", name, ENVIRONMENTS))
    settings = trials.settings.get(name)
    return (
        ENVIRONMENTS[name].as_played(trials.frame) if settings is None else make(name, **settings)
    )


__all__ = [
    "ANSWERED",
    "COLUMNS",
    "CONDITIONS",
    "ENVIRONMENTS",
    "FURTHER",
    "MODALITIES",
    "NAMED_GRAPHS",
    "SCENARIOS",
    "SCHEMA_VERSION",
    "WINDOWS",
    "AdjustingAmount",
    "Ambiguity",
    "Answer",
    "BalloonRisk",
    "BrokenOff",
    "CausalInference",
    "CausalNetwork",
    "CausalStrength",
    "Chance",
    "Choice",
    "ChosenSession",
    "Coins",
    "Collider",
    "Context",
    "Counts",
    "CueConflict",
    "Design",
    "Diagnosis",
    "Dice",
    "Duration",
    "Environment",
    "Field",
    "Fields",
    "Horizon",
    "InstrumentalLearning",
    "IowaGambling",
    "LineRatio",
    "LinkedCoins",
    "Magnitude",
    "MarkerLocation",
    "MazeDistance",
    "Message",
    "Number",
    "Numbers",
    "Observation",
    "OneOf",
    "Outcome",
    "Panel",
    "Payoffs",
    "Picked",
    "Preference",
    "ProbabilisticReasoning",
    "Prompt",
    "PublicGoods",
    "Rate",
    "Replies",
    "Rerun",
    "RestlessBandit",
    "ReversalLearning",
    "RiskyChoice",
    "Rows",
    "Screen",
    "Session",
    "SomeOf",
    "Table",
    "Template",
    "TemporalDiscounting",
    "TrialSchema",
    "Trials",
    "Turn",
    "TwoStep",
    "Ultimatum",
    "Whole",
    "World",
    "answer_columns",
    "better_machine",
    "blocks_of_means",
    "causal_power",
    "causal_support",
    "check_environment",
    "check_questions",
    "complete_grid",
    "connected_graphs",
    "context_of",
    "correctness",
    "delta_p",
    "environment_of",
    "further_grid",
    "games_of_plays",
    "load_templates",
    "make",
    "outcome_rates",
    "panels_of",
    "parse_beginning",
    "parse_label",
    "parse_number",
    "pumps_of_balloons",
    "schema",
    "session_stream",
    "setting",
    "stages_of_days",
    "trial_schema",
    "unknown",
    "unread_rate",
]

if __name__ != "knownminds.environments":
    raise ImportError(f"import knownminds.environments, not {__name__}")
