"""Differences between two models on every score, once it is sure that they played the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import multipletests

from knownminds.inference.differences import Side, difference
from knownminds.validation.data.scores_of_trials import INFLUENCE
from knownminds.validation.data.trials_of_runs import CONDITIONS
from knownminds.validation.engine.parts import Part
from knownminds.validation.engine.plots import few_digits
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Interval
from knownminds.validation.pages.views import WHO, Cell, Rows, ends

from .paper import CELL, SEVERAL, About, part_of

LEVEL = 0.05
MOST_ROWS = 60  # of the table on the page; the CSV has all
MOST_FIRST = 12  # of the table at its top
WHICH = "Which differs"
WHICH_SHOWS = ("difference", "who is above", "p, Holm")  # what a terminal shows of it
MANY = 12  # differences beyond which, if none is shown, scores come first
ABOVE = "is above"
ALIKE = "no difference shown"
_VALUES = ["value", "standard_error", "freedom", INFLUENCE]
_NUMBERS = (
    "standard_error", "freedom", "low", "high", "p_value", "shared", "correlation", "swaps",
)  # fmt: skip
# Who answers may differ, and which session; all else is a condition.
_COLUMNS = {"reasoning_effort": "effort"}  # of a setting in trials, where it has another name
_SAME = [name for name in CONDITIONS if name not in ("model", "served_model", "session")]


TITLE = "Two models at a time"
TEXT = (
    "Every score of every two models: the difference with its 95% interval, and a verdict by the "
    "p-value after Holm's correction over all differences on this page. Differences of what both "
    "did in the same sessions or contexts are of pairs; r is the correlation of these. Where there "
    "is none, both count as independent, and intervals are too wide if they go together. Models "
    "that did not play a cell under the same conditions are not compared in it. The table has the "
    "first rows, "
    f"differences before the others, by their p-values; of more than {MOST_ROWS} the file has all."
)


def comparison(scores: pd.DataFrame, trials: pd.DataFrame, about: About) -> Part:
    """Return the part that sets every two models side by side on every score.

    Differences are contrasts of pairs where scores say what each session or context does to them,
    and of independent estimates elsewhere, see `difference`. Intervals hold 95% of each by itself.
    p-values are two-sided, and corrected by Holm (1979) over all differences of the page.

    Parameters
    ----------
    scores : One row per participant and score: participant, score, cell, value, standard_error and,
        where errors are estimated, their degrees of freedom and influences.
    """
    conditions = conditions_by_cell(trials)
    for (who, _), values in conditions.items():
        for setting in about.own.get(who, ()):
            values.pop(_COLUMNS.get(setting, setting), None)
    rows = differences(scores, about.models, conditions)
    if rows.empty:
        return Part("differences", TITLE, "There are no two models to compare.")
    apart = rows["verdict"].str.endswith(ABOVE)
    first = in_order(rows)
    counts = pd.DataFrame(
        {
            "comparisons": [len(rows)],
            "differences": [int(apart.sum())],
            ALIKE: [int((rows["verdict"] == ALIKE).sum())],
            "not compared": [int(rows["corrected"].isna().sum())],
        }
    )
    columns: dict[str, Cell] = {
        "models": lambda row: f"{row['one']} - {row['other']}",
        "verdict": "verdict",
        "difference": ends("difference"),
        "r": "correlation",
        "p": "p_value",
        "p, Holm": "corrected",
    }
    shown = (
        rows,
        Rows("Comparisons", {str(name): str(name) for name in counts}, (), of=counts),
        Rows("Two models on a score", columns, ("score",), of=first),
    )
    return part_of("differences", TITLE, TEXT, shown)


def which_differ(part: Part) -> dict[str, pd.DataFrame]:
    """Return the first table of a page: who is above whom, and by how much.

    It has the first rows of `in_order`. Where all models are of one provider, its name is left out.
    """
    rows = part.rows
    if rows.empty:
        return {}
    names = list(dict.fromkeys([*rows["one"], *rows["other"]]))
    providers = {name.partition(":")[0] for name in names if ":" in name}
    alike = len(providers) == 1 and all(":" in name for name in names)
    short = {name: few_digits(name.partition(":")[2] if alike else name) for name in names}
    shown = in_order(rows).head(MOST_FIRST).to_dict("records")
    above = [
        short[row["one"] if row["difference"] > 0 else row["other"]]
        if row["verdict"].endswith(ABOVE)
        else row["verdict"].replace(row["one"], "the first").replace(row["other"], "the second")
        for row in shown
    ]
    pairs = [f"{short[row['one']]} - {short[row['other']]}" for row in shown]
    columns = {
        "score": [row["score"] for row in shown],
        "models": pairs,
        "difference": [
            Interval(*(float(row[end]) for end in ("difference", "low", "high"))) for row in shown
        ],
        "p, Holm": [row["corrected"] for row in shown],
        "who is above": above,
    }
    table = pd.DataFrame(columns)
    title, lines = WHICH, ["score", "models"]
    if len(set(pairs)) == 1:
        title, lines = f"{WHICH}: {pairs[0]}", ["score"]
        table = table.drop(columns="models")
    return {title: table.set_index(lines)}


def first_which_differ(result: Result, part: Part) -> Result:
    """Return a result that begins with which participants differ; `part` says all of it.

    Where nobody is compared, a terminal shows the first estimates.
    """
    if part.rows.empty:
        return result.led_by_estimates()
    if len(part.rows) > MANY and not part.rows["verdict"].str.endswith(ABOVE).any():
        return result.about(counts={"differences": counts_of(part), **result.counts})
    return result.about(
        tables={**which_differ(part), **result.tables},
        shows=WHICH_SHOWS,
        counts={"differences": counts_of(part), **result.counts},
    )


def counts_of(part: Part) -> dict[str, int]:
    """Count the differences that are shown, that are not, and pairs that are not compared."""
    if part.rows.empty:
        return {}
    shown = int(part.rows["verdict"].str.endswith(ABOVE).sum())
    compared = int(part.rows["corrected"].notna().sum())
    return {
        "shown": shown,
        "not shown": compared - shown,
        "not compared": len(part.rows) - compared,
    }


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the first rows: differences that are shown, then others, by their p-values."""
    apart = rows["verdict"].str.endswith(ABOVE)
    order = rows.assign(rank=np.where(apart, 0, np.where(rows["corrected"].isna(), 2, 1)))
    return order.sort_values(["rank", "p_value"], kind="stable").head(MOST_ROWS)


def differences(
    scores: pd.DataFrame, models: Sequence[str], conditions: dict[tuple[str, str], dict[str, Any]]
) -> pd.DataFrame:
    """Return one row per score and two models, with its corrected verdict."""
    rows: list[dict[str, Any]] = []
    for (score, cell), part in scores.groupby(["score", "cell"], sort=False):
        values = part.drop_duplicates(WHO).set_index(WHO).reindex(columns=_VALUES)
        held = {str(who): side_of(*row) for who, *row in values.itertuples()}
        for one, other in combinations([m for m in models if m in held], 2):
            a, b = held[one], held[other]
            gap = difference(a, b)
            why = unequal(conditions, one, other, str(cell))
            if not why and not np.isfinite(gap.value):
                why = "no value of " + (one if not np.isfinite(a.value) else other)
            if not why and not gap.standard_error > 0:
                why = _without_error(part, gap.standard_error, one, other)
            row = {"score": score, "cell": cell, "one": one, "other": other}
            row |= {"difference": gap.value, **dict.fromkeys(_NUMBERS, np.nan)}
            row |= {} if why else {name: getattr(gap, name) for name in _NUMBERS}
            rows.append({**row, "verdict": f"not compared: {why}" if why else ""})
    table = pd.DataFrame(rows)
    if table.empty:
        return table
    tested = table["p_value"].notna().to_numpy()
    corrected = np.full(len(table), np.nan)
    if tested.any():
        corrected[tested] = multipletests(table["p_value"][tested], LEVEL, method="holm")[1]
    above = np.where(table["difference"] > 0, table["one"], table["other"])
    word = np.where(corrected < LEVEL, [f"{name} {ABOVE}" for name in above], ALIKE)
    table["corrected"] = corrected
    table["verdict"] = np.where(tested, word, table["verdict"])
    return table


def _without_error(part: pd.DataFrame, error: float, one: str, other: str) -> str:
    """Say why a difference has no error, as far as the rows of a score tell."""
    if error == 0:
        return "no error, as values do not vary"
    told = part.get("note", pd.Series("", part.index))[part[WHO].isin((one, other))]
    texts = (str(text).removeprefix("no interval: ") for text in told if text)
    return next(texts, "no standard error")


def side_of(value: float, error: float, freedom: float, influence: Any) -> Side:
    """Return a score; degrees of freedom that it lacks are infinite, and influences unknown."""
    known = influence if isinstance(influence, Mapping) else {}
    return Side(float(value), float(error), float(freedom) if freedom > 0 else np.inf, known)


def conditions_by_cell(trials: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Return by participant and cell which values each condition has."""
    kept = [name for name in _SAME if name in trials]
    groups = trials.groupby([WHO, CELL], sort=False, observed=True)
    number = groups.ngroup().to_numpy()
    pairs = trials[[WHO, CELL]][~groups.cumcount().astype(bool).to_numpy()]
    keys = [(str(who), str(cell)) for who, cell in pairs.to_numpy().tolist()]
    values: list[dict[str, set[str]]] = [{name: set() for name in kept} for _ in keys]
    for name in kept:
        code, names = pd.factorize(trials[name])  # -1 where it is empty
        there = code >= 0
        for one in np.unique(number[there] * max(len(names), 1) + code[there]).tolist():
            values[one // len(names)][name].add(str(names[one % len(names)]))
    return {
        key: {name: tuple(sorted(some)) for name, some in kept_values.items()}
        for key, kept_values in zip(keys, values, strict=True)
    }


def unequal(
    conditions: dict[tuple[str, str], dict[str, Any]], one: str, other: str, cell: str
) -> str:
    """Say which condition differs between two models in a cell; "" if none does.

    A score that hangs on several cells names all of them, joined by `SEVERAL`.
    """
    for single in cell.split(SEVERAL):
        a, b = conditions.get((one, single)), conditions.get((other, single))
        if a is None or b is None:
            return f"{one if a is None else other} has not played {single}"
        for name in a:
            if name in b and a[name] != b[name]:  # what is one's own is no condition
                texts = [", ".join(values[name]) or "none" for values in (a, b)]
                return f"{name} differs ({texts[0]} and {texts[1]})"
    return ""
