"""What a table may be: for each experiment whose shape fits, a mapping with its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import ENVIRONMENTS, Environment, make, trial_schema

from .account import Table, Tally
from .mapping import ColumnMap
from .tables import numbers

# What a column is often called; compared without case, blanks and signs.
_CALLED = {
    "subject": ("subjid", "subj", "sub", "participant", "participantid", "pid", "ppid", "person",
                "id", "run", "s", "userid", "worker", "workerid", "prolificpid"),
    "session": ("sess", "visit", "runid"),
    "trial": ("trialnumber", "trialindex", "trialno", "trialnum", "t", "trialid", "row"),
    "block": ("blocknumber", "blocknum"),
    "action": ("choice", "choose", "chosen", "decision", "resp", "key", "keypress", "button",
               "arm", "selected", "pick", "response"),
    "response": ("rating", "estimate", "judgement", "judgment", "answer", "y", "prediction",
                 "slider", "slidervalue", "reproduction", "confidence"),
    "reward": ("outcome", "points", "payoff", "feedback", "win", "won", "score", "gainloss"),
    "context": ("task", "casino", "condition", "stimulus", "pair", "cue"),
    "action1": ("choice1", "level1choice", "firstchoice", "stage1choice", "response1", "step1"),
    "action2": ("choice2", "level2choice", "secondchoice", "stage2choice", "response2", "step2"),
    "state": ("planet", "secondstate", "stage2state", "finalstate"),
    "pumps": ("npumps", "pumpcount", "inflations", "presses"),
    "exploded": ("explosion", "burst", "popped", "explode"),
    "sooner_amount": ("amountsooner", "ssamount", "samount", "immediate", "ss"),
    "later_amount": ("amountlater", "llamount", "lamount", "ll"),
    "sooner_delay": ("delaysooner", "ssdelay"),
    "later_delay": ("delaylater", "lldelay", "delay"),
    "likelihood": ("lh",),
    "value": ("duration", "magnitude", "stimulus", "length", "target"),
    "gain": ("win", "gains"),
    "loss": ("losses", "lose"),
}  # fmt: skip
_SHAPES: dict[str, tuple[str, ...]] = {
    "two_step": ("subject", "action1", "state", "action2", "reward"),
    "balloon_risk": ("subject", "pumps", "exploded"),
}
_ADDED = {"temporal_discounting": ("item", "reward")}  # columns that follow
_BOUNDED = ("action", "response", "context", "ball", "prior", "likelihood", "gain", "loss")
_FEWEST = 0.75  # share of the names of two columns that agree
MOST = 3  # proposals that are shown


@dataclass(frozen=True)
class Proposal:
    """A mapping that may explain a table.

    Parameters
    ----------
    mapping
        Of columns and values.
    reasons
        For each column of ours, in words.
    unused
        Columns of theirs that stay as conditions.
    score
        Mean agreement of the names, 0 to 1.
    """

    mapping: ColumnMap
    reasons: tuple[tuple[str, str], ...]
    unused: tuple[str, ...]
    score: float

    def __str__(self) -> str:
        """Return the proposal as text."""
        width = max(len(name) for name, _ in self.reasons)
        rows = [f"  {name:<{width}}  {reason}" for name, reason in self.reasons]
        kept = f"  kept as conditions: {', '.join(self.unused)}" if self.unused else ""
        return "\n".join([f"As {self.mapping.environment}:", *rows, *([kept] if kept else [])])


def propose(table: Table, environment: str | None = None) -> list[Proposal]:
    """Return mappings for the experiments whose shape fits a table, best first.

    A proposal is to be read: names agree, values lie within what the experiment knows, and of two
    texts the first in the alphabet is taken for 0.

    Parameters
    ----------
    environment
        Only this one.
    """
    names = [environment] if environment else list(ENVIRONMENTS)
    found = [one for name in names if (one := _proposal(table, make(name))) is not None]
    return sorted(found, key=lambda one: -one.score)[:MOST]


def _proposal(table: Table, environment: Environment) -> Proposal | None:
    for wanted in _wanted(environment):
        found = _fitted(table, environment, wanted)
        if found is not None:
            return found
    return None


def _wanted(environment: Environment) -> list[tuple[str, ...]]:
    """Return the columns by which the experiment may be known: theirs in one row, or ours."""
    schema = trial_schema(environment)
    needed = [c.name for c in schema.columns if c.required and c.name != "trial"]
    needed += ["reward"] if environment.feedback and "gain" not in needed else []
    needed = [name for name in needed if name not in _ADDED.get(environment.name, ())]
    shaped = [_SHAPES[environment.name]] if environment.name in _SHAPES else []
    return [*shaped, tuple(dict.fromkeys(needed))]


def _fitted(table: Table, environment: Environment, wanted: Sequence[str]) -> Proposal | None:
    free = list(map(str, table.cells.columns))
    columns: dict[str, str] = {}
    values: dict[str, dict[str, float]] = {}
    units: dict[str, str] = {}
    reasons: list[tuple[str, str]] = []
    scores = []
    ends = {c.name: (c.least, c.most) for c in trial_schema(environment).columns}
    for name in (*wanted, "trial", "session", "block"):
        ranked = sorted(((_alike(name, other), other) for other in free), reverse=True)
        for score, other in ranked:
            if score < _FEWEST:
                continue
            said = _meaning(table, other, name, ends.get(name, (None, None)), environment)
            if said is None:
                continue
            how, told, unit = said
            columns[name] = other
            free.remove(other)
            if told:
                values[name] = told
            if unit:
                units[name] = unit
            called = "is called so" if score == 1 else "is a usual name for it"
            reasons.append((name, f"{other}, which {called}; {how}"))
            scores.append(score)
            break
        else:
            alone = _only(table, free, environment) if name == "action" else None
            if alone is not None:
                other, told = alone
                columns[name], values[name] = other, told
                free.remove(other)
                shown = ", ".join(f"{text} is {k:g}" for text, k in told.items())
                reasons.append((name, f"{other}, the only column of {len(told)} texts: {shown}; "
                                "check that"))  # fmt: skip
                scores.append(0.5)
            elif name in wanted:
                return None
    same = {ours: theirs for ours, theirs in columns.items()}
    mapping = ColumnMap(environment.name, same, values, units)
    return Proposal(
        mapping, tuple(reasons), tuple(free), float(np.mean(scores)) + len(wanted) / 100
    )


def _only(
    table: Table, free: Sequence[str], environment: Environment
) -> tuple[str, dict[str, float]] | None:
    """Return the only column that has as many texts as there are actions; None if not one."""
    found = []
    for column in free:
        texts = sorted(map(str, table.cells[column].dropna().unique()[: environment.n_actions + 1]))
        _, wrong = numbers(table, column, Tally())
        if wrong.all() and len(texts) == environment.n_actions:
            found.append((column, {text: float(k) for k, text in enumerate(texts)}))
    return found[0] if len(found) == 1 else None


def _alike(ours: str, theirs: str) -> float:
    plain = "".join(letter for letter in theirs.lower() if letter.isalnum())
    own = ours.replace("_", "")
    if plain == own:
        return 1.0
    if plain in _CALLED.get(ours, ()):
        return 0.95 - 0.01 * _CALLED[ours].index(plain)
    return SequenceMatcher(None, plain, own).ratio() * 0.9


def _meaning(
    table: Table,
    column: str,
    ours: str,
    ends: tuple[float | None, float | None],
    environment: Environment,
) -> tuple[str, dict[str, float], str] | None:
    """Return what the values of a column are in words, as a mapping and as a unit; None if none."""
    cells = table.cells[column]
    if ours in ("subject", "session"):
        n = cells.nunique()
        return f"{n:,} of them", {}, ""
    given = cells.dropna()
    if not len(given):
        return None
    found, wrong = numbers(table, column, Tally())
    distinct = pd.unique(given)
    if wrong.any():
        options = environment.n_actions if ours in ("action", "action1", "action2") else 2
        if ours in ("response", "trial", "value") or len(distinct) > max(options, 2):
            return None
        told: dict[str, float] = {str(text): float(k) for k, text in enumerate(sorted(distinct))}
        shown = ", ".join(f"{text} is {k:g}" for text, k in told.items())
        return f"its texts in the order of the alphabet: {shown}; check that", told, ""
    low, high = float(np.nanmin(found)), float(np.nanmax(found))
    told_range = f"numbers from {low:g} to {high:g}"
    if ours == "loss" and high <= 0:
        return told_range, {}, "without sign"
    least, most = ends if ours in _BOUNDED else (None, None)
    counted = ours in ("action", "action1", "context") and low == 1 and _whole(found)
    if counted and (most is None or high <= most + 1):
        return f"{told_range}, counted from 1", {}, "from 1"
    if most is not None and high > most:
        if ours == "response" and most == 1 and high <= 100:
            return f"{told_range}, taken for percent", {}, "percent"
        return None
    if least is not None and low < least:
        return None
    return told_range, {}, ""


def _whole(values: np.ndarray[Any, np.dtype[np.float64]]) -> bool:
    known = values[~np.isnan(values)]
    return bool((known % 1 == 0).all())
