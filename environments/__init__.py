"""Experiments with a step interface, their words and parsers, and the trial record.

`ENVIRONMENTS` lists every experiment by name; `make` builds one.
"""

from typing import Any

from .answer import ANSWERED, Answer, Outcome, parse_beginning, parse_label, parse_number
from .chance import Chance
from .coins import Coins
from .conformance import check_environment
from .design import Design, session_stream
from .environment import Environment, Observation, Turn
from .instrumental_learning import InstrumentalLearning
from .names import unknown
from .outcome_rates import Rate, outcome_rates, unread_rate
from .prompt import Message, Prompt, Template, load_templates
from .trials import COLUMNS, Trials, schema

ENVIRONMENTS: dict[str, type[Environment]] = {
    "instrumental_learning": InstrumentalLearning,
    "coins": Coins,
}


def make(name: str, **settings: Any) -> Environment:
    """Build an experiment by name; ValueError names the nearest ones if there is none."""
    if name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", name, ENVIRONMENTS))
    return ENVIRONMENTS[name](**settings)


__all__ = [
    "ANSWERED",
    "COLUMNS",
    "ENVIRONMENTS",
    "Answer",
    "Chance",
    "Coins",
    "Design",
    "Environment",
    "InstrumentalLearning",
    "Message",
    "Observation",
    "Outcome",
    "Prompt",
    "Rate",
    "Template",
    "Trials",
    "Turn",
    "check_environment",
    "load_templates",
    "make",
    "outcome_rates",
    "parse_beginning",
    "parse_label",
    "parse_number",
    "schema",
    "session_stream",
    "unknown",
    "unread_rate",
]

if __name__ != "knownminds.environments":
    raise ImportError(f"import knownminds.environments, not {__name__}")
