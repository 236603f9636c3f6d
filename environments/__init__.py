"""Experiments with a step interface, their words and parsers, and the trial record.

`ENVIRONMENTS` lists every experiment by name; `make` builds one.
"""

from types import ModuleType as _Module
from typing import Any

from knownminds.environments.record.recording import answer_columns as answer_columns
from knownminds.members import Members as _Members
from knownminds.members import unknown as unknown

from .bandits.balloon_risk import BalloonRisk as BalloonRisk
from .bandits.horizon import Horizon as Horizon
from .bandits.instrumental_learning import InstrumentalLearning as InstrumentalLearning
from .bandits.probabilistic_reasoning import ProbabilisticReasoning as ProbabilisticReasoning
from .bandits.restless_bandit import RestlessBandit as RestlessBandit
from .bandits.restless_bandit import correctness as correctness
from .bandits.temporal_discounting import TemporalDiscounting as TemporalDiscounting
from .bandits.two_step import TwoStep as TwoStep
from .causes.collider import Collider as Collider
from .causes.networks import NAMED_GRAPHS as NAMED_GRAPHS
from .causes.networks import CausalNetwork as CausalNetwork
from .chance.chance import Chance as Chance
from .chance.choice import Choice as Choice
from .chance.coins import Coins as Coins
from .chance.context_grid import Context as Context
from .chance.context_grid import ContextGrid as ContextGrid
from .chance.dice import Dice as Dice
from .chance.preference import Preference as Preference
from .chance.scenarios import SCENARIOS as SCENARIOS
from .chance.scenarios import complete_grid as complete_grid
from .chance.scenarios import context_of as context_of
from .chance.scenarios import further as further
from .chance.scenarios import further_grid as further_grid
from .conformance import check_environment as check_environment
from .controls import check_controls as check_controls
from .controls import controlled as controlled
from .design import Design as Design
from .design import session_stream as session_stream
from .diagnosis.diagnosis import Diagnosis as Diagnosis
from .environment import Environment as Environment
from .fields import Field as Field
from .fields import Fields as Fields
from .fields import Number as Number
from .fields import Numbers as Numbers
from .fields import OneOf as OneOf
from .fields import SomeOf as SomeOf
from .fields import Whole as Whole
from .fields import setting as setting
from .formats.reshaped import better_machine as better_machine
from .formats.reshaped import blocks_of_means as blocks_of_means
from .formats.reshaped import games_of_plays as games_of_plays
from .formats.reshaped import pumps_of_balloons as pumps_of_balloons
from .formats.reshaped import stages_of_days as stages_of_days
from .magnitudes.duration import Duration as Duration
from .magnitudes.line_ratio import LineRatio as LineRatio
from .magnitudes.magnitude import CONDITIONS as CONDITIONS
from .magnitudes.magnitude import MODALITIES as MODALITIES
from .magnitudes.magnitude import WINDOWS as WINDOWS
from .magnitudes.magnitude import Magnitude as Magnitude
from .magnitudes.marker_location import MarkerLocation as MarkerLocation
from .magnitudes.maze_distance import MazeDistance as MazeDistance
from .questions import Questions as Questions
from .record.outcome_rates import Rate as Rate
from .record.outcome_rates import outcome_rates as outcome_rates
from .record.outcome_rates import unread_rate as unread_rate
from .record.trial_schema import TrialSchema as TrialSchema
from .record.trial_schema import trial_schema as trial_schema
from .record.trials import COLUMNS as COLUMNS
from .record.trials import SCHEMA_VERSION as SCHEMA_VERSION
from .record.trials import Trials as Trials
from .record.trials import schema as schema
from .replies import Replies as Replies
from .session import ChosenSession as ChosenSession
from .session import PickedQuestion as PickedQuestion
from .session import Session as Session
from .session import check_questions as check_questions
from .turn import Observation as Observation
from .turn import Turn as Turn
from .words.answer import ANSWERED as ANSWERED
from .words.answer import Answer as Answer
from .words.answer import Outcome as Outcome
from .words.answer import parse_beginning as parse_beginning
from .words.answer import parse_label as parse_label
from .words.answer import parse_number as parse_number
from .words.prompt import Message as Message
from .words.prompt import Prompt as Prompt
from .words.prompt import Template as Template
from .words.prompt import load_templates as load_templates
from .words.screen import Screen as Screen
from .world import Payoffs as Payoffs
from .world import Table as Table
from .world import World as World
from .world import follow_world as follow_world

ENVIRONMENTS: _Members[type[Environment]] = _Members(
    "environments", lambda value: isinstance(value, type) and issubclass(value, Environment)
)


def make(name: str, **settings: Any) -> Environment:
    """Build an experiment by name; ValueError names the nearest ones if there is none."""
    if name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", name, ENVIRONMENTS))
    return ENVIRONMENTS[name](**settings)


def environment_of(trials: Trials, name: str) -> Environment:
    """Return the experiment of trials with the settings they were made with.

    Settings are read from the file. For trials from elsewhere they are taken from the columns, as
    far as these show them; all others are as shipped.

    Raises
    ------
    ValueError : If there is no such experiment, or if no setting fits the trials.
    """
    if name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", name, ENVIRONMENTS))
    settings = trials.settings.get(name)
    return (
        ENVIRONMENTS[name].as_played(trials.frame) if settings is None else make(name, **settings)
    )


__all__ = [
    name
    for name, value in tuple(globals().items())
    if not (name.startswith("_") or name == "Any" or isinstance(value, _Module))
]
