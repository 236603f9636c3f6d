"""Experiments with a step interface, their words and parsers, and the trial record.

`ENVIRONMENTS` lists every experiment by name; `make` builds one.
"""

from typing import Any

from .answer import Answer, Outcome, parse_beginning, parse_label, parse_number
from .chance import Chance
from .coins import Coins
from .conformance import check_environment
from .design import Design, session_stream
from .environment import Environment, Observation, Turn
from .instrumental_learning import InstrumentalLearning
from .names import unknown
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
    "Template",
    "Trials",
    "Turn",
    "check_environment",
    "load_templates",
    "make",
    "parse_beginning",
    "parse_label",
    "parse_number",
    "schema",
    "session_stream",
    "unknown",
]

if __name__ != "knownminds.environments":
    raise ImportError(f"import knownminds.environments, not {__name__}")
