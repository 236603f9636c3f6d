"""Noisy-ORs, measures, alignment and tests of answers about a collider, by agent and condition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import NoisyOr
from knownminds.agents.parameters import Array
from knownminds.environments import Collider, Trials
from knownminds.environments.causes.causal_graph import TASKS
from knownminds.inference import MEASURES
from knownminds.inference.causes.alignment import alignment
from knownminds.inference.causes.causal_answers import (
    ROMAN,
    as_published,
    both_directions,
    causal_answers,
    judgements,
)
from knownminds.inference.causes.cell_contrast import CellContrast, complies
from knownminds.inference.causes.domain_differences import domain_differences, domain_pairs
from knownminds.inference.causes.least_squares_reasoner import (
    ALL_PARAMETERS,
    ReasoningConsistency,
    Scoring,
    leave_one_task_out,
)
from knownminds.inference.causes.reasoner_intervals import ReasonerIntervals, reasoner_intervals
from knownminds.inference.measure import t_tests

UNIT = "unit"  # an agent in a condition
PARAMETERS = ("p", "b", "m1", "m2")
CHOSEN_FROM = (
    3,
    4,
)  # parameters of the noisy-ORs of which the better one is shown; 5 stands beside
CONTRASTS = ("explaining_away", "explaining_away_released", "markov_violation")
# What is compared between conditions.
QUANTITIES = (*PARAMETERS, "r2", "reasoning_consistency", "determinacy", *CONTRASTS)
MOST_PAIRED = 30  # agents, above which they are not compared two by two


@dataclass(frozen=True)
class CausalProfile:
    """Fits, measures, alignment, and differences between domains and agents.

    Parameters
    ----------
    units : One row per agent and condition: answers and trials without one; the number of
        parameters that predicts left-out tasks better, p, b, m1, m2, loss, mae, rmse and r2 of that
        noisy-OR; reasoning_consistency with its consistency_rmse; determinacy; explaining_away (VII
        - VI), explaining_away_released (VIII - VI), markov_violation and whether it complies;
        incomplete (cells that lack an answer) and note. Each quantity that has an interval has
        NAME_low, NAME_high, NAME_error and NAME_freedom: over stories, or, of contrasts, over
        cells.
    fits : One row per unit and number of parameters (3, 4, 5): p1, p2, b, m1, m2, loss, mae, rmse,
        r2, reasoning_consistency, consistency_rmse, chosen (whether `units` tells this one, of 3
        and 4), status and note.
    tasks : One row per unit and task: answers, mean, low and high (95%, t interval over answers),
        fitted (by the noisy-OR) and foretold (by the one fitted without this task), shares of 1.
    alignment, omnibus, pairs : See `alignment` and `domain_differences`, with the condition; empty
        where there is none. matched_p_adjusted is that of the test that compares answers question
        by question.
    intervals : What units have without each story.
    """

    units: pd.DataFrame
    fits: pd.DataFrame
    tasks: pd.DataFrame
    alignment: pd.DataFrame
    omnibus: pd.DataFrame
    pairs: pd.DataFrame
    intervals: ReasonerIntervals


def causal_profile(
    answers: pd.DataFrame,
    agent: str,
    conditions: Sequence[str],
    *,
    reference: pd.DataFrame | None = None,
    seed: int = 0,
    scoring: Scoring | None = None,
    released: bool = False,
    apart: Sequence[str] = (),
) -> CausalProfile:
    """Read everything off answers about colliders.

    Answers of an agent in a condition are fitted and measured together, whatever their number of
    sessions.

    Parameters
    ----------
    answers : See `causal_answers`.
    agent, conditions : The columns that tell agents and conditions apart.
    reference : Judgements to be aligned with, see `reference_means`.
    seed : Of the bootstrap of the alignment.
    scoring : "by_cause": m1 and m2 belong to the causes C1 and C2; "pooled": questions about C2 are
        answered by the formula of C1, so that m1 and m2 tell how differently effects and causes are
        judged. None for "by_cause", or "pooled" if released.
    released : As in Dettki (2025): an agent that is several subjects has cell means
        (`as_published`); cells of explaining away and the Markov violation hold the questions about
        both causes; and the alignment takes every answer for an item, with the reference mean of
        its domain, sense and task.
    apart : Agents that are no part of the tests of domains and of agents, such as known ones.
    """
    keys = [agent, *conditions]
    unit = answers[keys].astype(str).agg(", ".join, axis=1)
    answers = answers.assign(**{UNIT: unit})
    scoring = scoring or ("pooled" if released else "by_cause")
    read = as_published(answers, answers[UNIT]) if released else answers
    read = read.assign(subject=read[UNIT])
    reasoners = leave_one_task_out(read, parameters=CHOSEN_FROM, scoring=scoring)
    intervals = reasoner_intervals(read, reasoners)
    units = _units(answers, read, keys, reasoners, released)
    order = [intervals.subjects.index(name) for name in units[UNIT]]
    for name in intervals.value:
        units[name] = intervals.value[name][order]
        for end in ("low", "high", "error"):
            units[f"{name}_{end}"] = getattr(intervals, end)[name][order]
        units[f"{name}_freedom"] = [len(intervals.blocks[k]) - 1.0 for k in order]
    aligned = pd.DataFrame()
    if reference is not None:
        aligned = alignment(read, reference, UNIT, seed=seed, released=released)
    tests = list(_domain_tests(read[~read[agent].isin(apart)], agent, conditions))
    omnibus, pairs = (
        pd.concat([part[k] for part in tests], ignore_index=True) if tests else pd.DataFrame()
        for k in range(2)
    )
    fits = _fits(read, reasoners, scoring)
    tasks = _tasks(answers.assign(subject=answers[UNIT]), reasoners, reasoners.theta, scoring)
    return CausalProfile(units, fits, tasks, aligned, omnibus, pairs, intervals)


def _units(
    answers: pd.DataFrame,
    read: pd.DataFrame,
    keys: list[str],
    reasoners: ReasoningConsistency,
    released: bool,
) -> pd.DataFrame:
    """Measure each agent in each condition, from the answers as they are to be read."""
    names = list(reasoners.subjects)
    first = answers.drop_duplicates(UNIT).set_index(UNIT).loc[names]
    rows = pd.DataFrame({UNIT: names, **{k: first[k].to_numpy() for k in keys}})
    given = answers["answer"].notna().groupby(answers[UNIT]).agg(["sum", "size"]).loc[names]
    rows["answers"] = given["sum"].to_numpy(dtype=np.int64)
    rows["missing"] = (given["size"] - given["sum"]).to_numpy(dtype=np.int64)
    rows["parameters"] = reasoners.n_parameters
    theta = reasoners.theta
    for k, name in enumerate(PARAMETERS):
        rows[name] = theta[:, k]
    for name, values in reasoners.residuals.items():
        rows[name] = reasoners.of_chosen(values)
    rows["reasoning_consistency"] = reasoners.value
    rows["consistency_rmse"] = reasoners.of_chosen(reasoners.rmse)
    rows["determinacy"] = theta[:, 2:].mean(axis=1) - theta[:, 1]
    incomplete: dict[str, set[tuple[str, str]]] = {name: set() for name in names}
    for name in CONTRASTS:
        measure = copy(MEASURES[name])
        assert isinstance(measure, CellContrast)
        measure.pooled = released
        contrast, lost = _contrast(measure, read, names)
        for end, values in contrast.items():
            rows[name + end] = values
        for subject, cells in lost.items():
            incomplete[subject] |= cells
    violation = rows["markov_violation"]
    rows["complies"] = [complies(v) if np.isfinite(v) else None for v in violation]
    rows["incomplete"] = [len(incomplete[name]) for name in names]
    rows["note"] = [_note(reasoners, i, incomplete[name]) for i, name in enumerate(names)]
    return rows


def _fits(read: pd.DataFrame, consistency: ReasoningConsistency, scoring: Scoring) -> pd.DataFrame:
    """Return the noisy-ORs with each number of parameters, of which `consistency` has all but 1."""
    rows = []
    for some in (consistency, leave_one_task_out(read, parameters=(5,), scoring=scoring)):
        for f, size in enumerate(some.sizes):
            for i, name in enumerate(some.subjects):
                row: dict[str, Any] = {UNIT: name, "parameters": size}
                row |= dict(zip(ALL_PARAMETERS, some.estimate[i, f].tolist(), strict=True))
                row |= {k: float(values[i, f]) for k, values in some.residuals.items()}
                row |= {"reasoning_consistency": float(some.r2[i, f])}
                row |= {"consistency_rmse": float(some.rmse[i, f])}
                row |= {"chosen": some is consistency and int(consistency.chosen[i]) == f}
                lost = "" if np.isfinite(some.r2[i, f]) else some.reason[i]
                said = "; ".join(part for part in (lost, some.message[f][i]) if part)
                rows.append(row | {"status": some.status[f][i], "note": said})
    order = {name: i for i, name in enumerate(consistency.subjects)}
    rows.sort(key=lambda row: (order[row[UNIT]], row["parameters"]))
    return pd.DataFrame(rows)


def _contrast(
    measure: CellContrast, read: pd.DataFrame, subjects: Sequence[str]
) -> tuple[dict[str, Array], dict[str, set[tuple[str, str]]]]:
    """Return a measure of each subject with its interval, and the cells and tasks without answer.

    The columns are "" (the value), "_low", "_high", "_error" and "_freedom", [N] each.
    """
    ends = ("", "_low", "_high", "_error", "_freedom")
    columns = {end: np.full(len(subjects), np.nan) for end in ends}
    if not read["task"].isin([measure.plus, measure.minus]).any():
        return columns, {}
    cells = measure.by_cell(read)
    by_cell = cells.pivot(index="subject", columns="cell", values="value").reindex(list(subjects))
    tests = t_tests(by_cell.to_numpy(dtype=float), bounds=measure.bounds)
    stats = (tests.mean, tests.low, tests.high, tests.standard_error, tests.n - 1.0)
    columns = dict(zip(ends, stats, strict=True))
    lost: dict[str, set[tuple[str, str]]] = {}
    for task, column in ((measure.plus, "plus"), (measure.minus, "minus")):
        lacking = cells[cells[column].isna()]
        for subject, cell in zip(lacking["subject"], lacking["cell"], strict=True):
            lost.setdefault(subject, set()).add((cell, task))
    return columns, lost


def _note(consistency: ReasoningConsistency, i: int, lost: set[tuple[str, str]]) -> str:
    """Say what is wrong with a unit: why there is no fit, what is open, which cells lack what."""
    said = [consistency.reason[i], consistency.message[max(int(consistency.chosen[i]), 0)][i]]
    named = sorted(f"{task} in {cell}" for cell, task in lost)
    if named:
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        said.append(f"no answer to {', '.join(named[:3])}{more}")
    return "; ".join(part for part in said if part)


def _tasks(
    part: pd.DataFrame, consistency: ReasoningConsistency, theta: Array, scoring: Scoring
) -> pd.DataFrame:
    """Return what each unit answers to each task, and what its noisy-OR does."""
    held = part[part["answer"].notna()]
    grid = pd.MultiIndex.from_product([consistency.subjects, ROMAN], names=["subject", "task"])
    groups = held.groupby(["subject", "task"])["answer"]
    rows = groups.agg(["size", "mean", "sem"]).reindex(grid)
    answers = rows["size"].fillna(0).astype(np.int64)
    half = scipy.stats.t.ppf(0.975, np.maximum(answers - 1, 1)) * rows["sem"]
    by_direction = held.groupby(["subject", "task", "direction"]).size().unstack("direction")
    counts = by_direction.reindex(grid).reindex(columns=["C1", "C2"]).fillna(0).to_numpy()
    predicted = _predictions(theta, scoring).reshape(-1, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        fitted = (predicted * counts).sum(axis=1) / answers.to_numpy()
    columns = {
        UNIT: grid.get_level_values("subject"),
        "task": grid.get_level_values("task"),
        "question": [task.formula for task in TASKS] * len(theta),
        "answers": answers.to_numpy(),
        "mean": rows["mean"].to_numpy(),
        "low": (rows["mean"] - half).to_numpy(),
        "high": (rows["mean"] + half).to_numpy(),
        "fitted": fitted,
        "foretold": consistency.of_chosen(consistency.predicted).ravel(),
    }
    return pd.DataFrame(columns)


def _predictions(theta: Array, scoring: Scoring) -> Array:
    """Return what noisy-ORs p, b, m1, m2 answer to both directions of the tasks, [N, 11, 2]."""
    known = np.isfinite(theta).all(axis=1)
    predicted = np.full((len(theta), len(ROMAN), 2), np.nan)
    full = np.column_stack([theta[known], np.ones(known.sum())])  # their noise plays no part
    for t, task in enumerate(ROMAN):
        predicted[known, t] = judgements(NoisyOr, full, both_directions(task))
    if scoring == "pooled":
        predicted[..., 1] = predicted[..., 0]
    return predicted


def _domain_tests(
    answers: pd.DataFrame, agent: str, conditions: Sequence[str]
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Test domains and agents in each condition, as published and question by question."""
    parts = answers.groupby(list(conditions), sort=False) if conditions else [((), answers)]
    for key, part in parts:
        if max(part[agent].nunique(), part["domain"].nunique()) < 2 or part["answer"].isna().all():
            continue
        where = ", ".join(map(str, key))
        matched = domain_differences(part, agent, matched=True)["p_adjusted"].to_numpy()
        pairs = (
            domain_pairs(part, agent) if part[agent].nunique() <= MOST_PAIRED else pd.DataFrame()
        )
        yield (
            domain_differences(part, agent).assign(condition=where, matched_p_adjusted=matched),
            pairs.assign(condition=where),
        )


def read_reference(file: str | Path) -> pd.DataFrame:
    """Read a reference: a trial file, or a table of means."""
    path = Path(file)
    try:
        table = pd.read_parquet(path.absolute()) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"A reference is a file of trials, or of means; {path.name} cannot be read: {error}. "
            f"A raw file is imported before: knownminds import {path.name} --out people.csv."
        ) from None
    value = next((name for name in ("mean", "response") if name in table), None)
    if value is None:
        raise ValueError(
            "A reference has a column 'mean' or 'response' (0 to 100) beside domain, sense and "
            f"the question; {path.name} has {', '.join(map(str, table.columns))}. "
            f"A raw file is imported before: knownminds import {path.name} --out people.csv."
        )
    environment = Collider()
    rows = table.rename(columns={value: "response"}).assign(outcome="ok")
    rows = rows[rows["response"].notna()]
    rows = rows.assign(subject=rows.get("subject", "reference"))  # of means there are no subjects
    rows["trial"] = np.arange(len(rows))
    return causal_answers(Trials.from_frame(rows, environment=environment))
