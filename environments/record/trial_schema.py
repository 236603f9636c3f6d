"""The published schema of the trial record: a table to read and a JSON Schema to check with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from knownminds.environments.design import session_stream
from knownminds.environments.environment import Environment
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.recording import answer_columns
from knownminds.environments.session import Session
from knownminds.environments.words.answer import ANSWERED

from .trials import COLUMNS, SCHEMA_VERSION, Column, Kind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: dict[Kind, str] = {"string": "string", "int": "integer", "float": "number"}
_ALWAYS = ("subject", "session", "trial", "outcome")  # a checked record has these in every row
_ROLES = {
    "stimulus": "stimulus of the experiment; must be there",
    "wording": "how the trial was put into words; matters for nothing else",
    "hidden": "recorded and never shown",
    "feedback": "what the action brought beside the reward; must be there",
}


@dataclass(frozen=True)
class TrialSchema:
    """The columns of trials, in general or of one experiment.

    Parameters
    ----------
    columns : in the order in which files have them
    environment : name of the experiment; "" for all
    answers : the columns that hold the experiment's answers
    version : version of the schema
    example : a row as a session has it, by column; only for a named experiment
    """

    columns: tuple[Column, ...]
    environment: str = ""
    answers: tuple[str, ...] = ("action", "response")
    version: int = SCHEMA_VERSION
    example: Mapping[str, Any] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """One row per column: name, kind, required, unit, least, most, values, description."""
        return pd.DataFrame([asdict(column) for column in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON Schema (2020-12) of the rows of a checked record, `Trials.to_json`.

        Besides the keywords of the standard it has `unit` and `version`.
        """
        missing = {name: {"type": "null"} for name in self.answers}
        given = [{"required": [name], "not": {"properties": {name: none}}}
                 for name, none in missing.items()]  # fmt: skip
        required = [c.name for c in self.columns if c.required or c.name in _ALWAYS]
        row = {
            "type": "object",
            "properties": {column.name: _property(column) for column in self.columns},
            "required": required,
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
            "if": {"properties": {"outcome": {"enum": list(ANSWERED)}}},
            "then": {"anyOf": given},
            "else": {"properties": missing},
        }
        return {
            "$schema": DIALECT,
            "title": f"Trials of {self.environment or 'any experiment'}",
            "description": "One row per trial. Columns beyond these are conditions and stimuli.",
            "version": self.version,
            "type": "array",
            "minItems": 1,
            "items": row,
            **({"examples": [[dict(self.example)]]} if self.example else {}),
        }

    def to_json(self) -> str:
        """Return the JSON Schema as text."""
        return json.dumps(self.to_dict(), indent=2)

    @property
    def title(self) -> str:
        """Whose columns these are."""
        return f"Trials of {self.environment or 'any experiment'}, schema {self.version}"

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """Head and rows of a table: column, type, required, range, unit, meaning."""
        return [
            ("column", "type", "required", "range", "unit", "meaning"),
            *((c.name, c.kind, "yes" if c.required else "", _range(c), c.unit, c.description)
              for c in self.columns),
        ]  # fmt: skip

    @property
    def row(self) -> str:
        """The example in words; "" if there is none."""
        cells = [f"{name}={'' if value is None else value}" for name, value in self.example.items()]
        return "for example: " + ", ".join(cells) if cells else ""

    def __str__(self) -> str:
        """Return a table, and an example."""
        widths = [max(map(len, column)) for column in zip(*self.cells, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in self.cells]
        return "\n".join([self.title, *lines, *(["", self.row] if self.row else [])])


def trial_schema(environment: Environment | None = None) -> TrialSchema:
    """Return the schema of trials, with the stimuli and ranges of an experiment if one is named."""
    if environment is None:
        return TrialSchema(COLUMNS)
    extra: list[Column] = []
    for own_field in environment.fields:
        least, most = own_field.bounds(environment)
        whole = isinstance(least, int) and isinstance(most, int)
        extra.append(
            Column(
                own_field.name,
                "int" if whole else "float",
                own_field.role in ("stimulus", "feedback"),
                f"{own_field.help}; {_ROLES[own_field.role]}"
                if own_field.help
                else _ROLES[own_field.role],
                own_field.unit,
                least=float(least) if np.isfinite(least) else None,
                most=float(most) if np.isfinite(most) else None,
            )
        )
    extra = [column for column in extra if column.name not in {c.name for c in COLUMNS}]
    low, high = environment.response_range
    answers = answer_columns(environment)
    columns: list[Column] = []
    for column in COLUMNS:
        if column.name == "action" and "action" in answers:
            column = replace(column, most=environment.n_actions - 1)
        if column.name == "response" and "response" in answers:
            column = replace(column, least=float(low), most=float(high))
        if column.name in answers:
            column = replace(column, required=True)
        columns += [column, *extra] if column.name == "trial" else [column]
    return TrialSchema(tuple(columns), environment.name, answers, example=_example(environment))


def _example(environment: Environment) -> dict[str, Any]:
    """Return the first trial of a session in which every answer is the first possible one."""
    session = Session(environment, environment.draw(session_stream(0)))
    observation = session.seen
    low, _ = environment.response_range
    given_kind = environment.given
    if given_kind == "either":
        shown = {name: np.array([observation[name]]) for name in environment.fields.stimulus}
        given_kind = np.asarray(environment.asks(shown)).ravel()[0]
    answers: dict[str, Any] = {"action": 0, "response": float(low)}
    given: dict[str, Any] = {
        name: value for name, value in answers.items() if given_kind in (name, "both")
    }
    stimuli = {name: _plain(observation[name]) for name in environment.fields.stimulus}
    turn = session.take((0, float(low)) if given_kind == "both" else given[given_kind])
    given |= {} if turn.reward is None else {"reward": _plain(turn.reward)}
    given |= {name: _plain(value) for name, value in turn.brought.items()}
    paid = ["reward"] if environment.feedback else []
    given = {**dict.fromkeys((*answer_columns(environment), *paid)), **given}
    return {"subject": "1", "session": "0", "trial": 0, **stimuli, **given, "outcome": "ok"}


def _plain(value: Any) -> Any:
    number = float(value)
    return int(number) if number.is_integer() else round(number, 6)


def _property(column: Column) -> dict[str, Any]:
    always = column.name in _ALWAYS
    kind = _TYPES[column.kind]
    entry: dict[str, Any] = {"type": kind if always else [kind, "null"]}
    if column.values:
        entry["enum"] = list(column.values) if always else [*column.values, None]
    if column.least is not None:
        entry["minimum"] = column.least
    if column.most is not None:
        entry["maximum"] = column.most
    if column.unit:
        entry["unit"] = column.unit
    return entry | {"description": column.description}


def _range(column: Column) -> str:
    if column.values:
        return ", ".join(column.values)
    if column.least is None and column.most is None:
        return ""
    low = "" if column.least is None else f"{column.least:g}"
    high = "" if column.most is None else f"{column.most:g}"
    return f"{low} to {high}" if high else f"from {low}"
