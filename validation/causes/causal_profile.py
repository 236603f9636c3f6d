"""All that answers about a collider tell of each agent in each condition, and of what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
from knownminds.environments.record.result import Result, records
from knownminds.inference import MEASURES
from knownminds.inference.causes.alignment import POOLED, alignment
from knownminds.inference.causes.causal_answers import (
    ROMAN,
    as_published,
    both_directions,
    causal_answers,
    judgements,
)
from knownminds.inference.causes.cell_contrast import CellContrast
from knownminds.inference.causes.domain_differences import DomainDifferences, domain_differences
from knownminds.inference.causes.least_squares_reasoner import (
    PLACES,
    ReasoningConsistency,
    Scoring,
    leave_one_task_out,
)
from knownminds.inference.causes.markov_violation import complies
from knownminds.inference.causes.robustness import Robustness, robustness
from knownminds.validation.pages.page import number

UNIT = "unit"  # an agent in a condition
AGENT_COLUMNS = ("agent", "model", "subject")  # the first of them that a file has tells agents
CONDITION = "condition"
PARAMETERS = ("p", "b", "m1", "m2")
ALL_PARAMETERS = ("p1", "p2", "b", "m1", "m2")
CHOSEN_FROM = (3, 4)  # parameters of the noisy-ORs of which the better one is told; 5 stands beside
CONTRASTS = ("explaining_away", "explaining_away_released", "markov_violation")
# What is compared between conditions.
QUANTITIES = (*PARAMETERS, "r2", "reasoning_consistency", "determinacy", *CONTRASTS)
MOST_LISTED = 6  # names behind a count
MOST_PAIRED = 30  # agents, above which they are not compared two by two


@dataclass(frozen=True)
class CausalProfile(Result):
    """Fits, measures, alignment, and differences between domains, agents and conditions.

    Parameters
    ----------
    agent, conditions
        The columns that tell agents and conditions apart.
    reference
        Where the reference judgements came from; "" if there were none.
    units
        One row per agent and condition: answers and trials without one; the number of parameters
        that predicts left-out tasks better, p, b, m1, m2, mae, rmse and r2 of that noisy-OR;
        reasoning_consistency with its consistency_rmse; determinacy; explaining_away (VII - VI),
        explaining_away_released (VIII - VI), markov_violation and whether it complies; incomplete
        (cells that lack an answer) and note.
    fits
        One row per unit and number of parameters (3, 4, 5): p1, p2, b, m1, m2, loss, mae, rmse, r2,
        reasoning_consistency, consistency_rmse, chosen (whether `units` tells this one, of 3 and
        4), status and note.
    tasks
        One row per unit and task: answers, mean, low and high (95%, t interval over answers),
        fitted (by the noisy-OR) and foretold (by the one fitted without this task), shares of 1.
    alignment, omnibus, pairs
        See `Alignment` and `DomainDifferences`, with the condition; empty where there is none.
    matched
        Omnibus tests of the same, but comparing answers question by question.
    differences, changes
        See `Robustness`; empty where there is a single condition.
    scoring
        "by_cause": m1 and m2 belong to the causes C1 and C2; "pooled": questions about C2 are
        answered by the formula of C1, so that m1 and m2 tell how differently effects and causes
        are judged.
    released
        Whether everything is as in Dettki (2025); see `causal_profile`.
    """

    agent: str
    conditions: tuple[str, ...]
    reference: str
    units: pd.DataFrame
    fits: pd.DataFrame
    tasks: pd.DataFrame
    alignment: pd.DataFrame
    omnibus: pd.DataFrame
    pairs: pd.DataFrame
    matched: pd.DataFrame
    differences: pd.DataFrame
    changes: pd.DataFrame
    scoring: Scoring = "by_cause"
    released: bool = False

    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        return {name: getattr(self, name) for name in TABLES}

    def content(self) -> dict[str, Any]:
        """What `to_dict` tells."""
        return self._named | self.tables()

    def to_json(self) -> str:
        """Return all tables as JSON; what is missing is null."""
        return json.dumps(self._named | {n: records(t) for n, t in self.tables().items()})

    @property
    def _named(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "conditions": list(self.conditions),
            "reference": self.reference,
            "scoring": self.scoring,
            "released": self.released,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> CausalProfile:
        """Make a profile of what `to_dict` gave."""
        # What was saved before there were fits by number of parameters has none.
        tables = {name: pd.DataFrame(content.get(name, [])) for name in TABLES}
        for table in tables.values():
            for name in table:  # a column of numbers that has nothing but gaps
                if name != "complies" and table[name].isna().all():
                    table[name] = table[name].astype(float)
        return cls(
            content["agent"],
            tuple(content["conditions"]),
            content["reference"],
            **tables,
            scoring=content.get("scoring", "by_cause"),
            released=content.get("released", False),
        )

    def __str__(self) -> str:
        """A line per agent and condition, then what differs."""
        lines = []
        if self.released:
            lines.append(
                "As in Dettki (2025): an agent's answers together, of several subjects the means "
                "of each domain, sense and task."
            )
        if self.scoring == "pooled":
            lines.append("Questions about C2 are answered by the formula of C1.")
        for row in self.units.to_dict("records"):
            lines += list(_told(row))
        for row in self.alignment.to_dict("records"):
            if row["status"] == "ok" and row["domain"] == POOLED:
                lines.append(
                    f"alignment with {self.reference} ({row['agent']}): rho "
                    f"{row['rho']:.3f} (95% {row['low']:.3f} to {row['high']:.3f}), "
                    f"{row['items']} items"
                )
        lines += list(_tested(self.omnibus, "")) + list(
            _tested(self.matched, ", question by question")
        )
        for factor in self.conditions:
            lines += list(_changed(self, factor))
        return "\n".join(lines)


TABLES = (
    "units",
    "fits",
    "tasks",
    "alignment",
    "omnibus",
    "pairs",
    "matched",
    "differences",
    "changes",
)


def causal_profile(
    trials: Trials | pd.DataFrame,
    *,
    agent: str | None = None,
    conditions: Sequence[str] | None = None,
    reference: Trials | pd.DataFrame | str | Path | None = None,
    seed: int = 0,
    scoring: Scoring | None = None,
    released: bool = False,
) -> CausalProfile:
    """Read everything off answers about colliders.

    Answers of an agent in a condition are fitted and measured together, whatever their number of
    sessions.

    Parameters
    ----------
    agent
        The column that tells agents apart; the first that there is of agent, model and subject
        if None.
    conditions
        Columns that tell conditions apart, such as content and prompt; "condition", if there is
        such a column, if None.
    reference
        Judgements to be aligned with: trials, a table of means, or a file with either; see
        `reference_means`.
    seed
        Of the bootstrap of the alignment.
    scoring
        See `CausalProfile`; None for "by_cause", or "pooled" if released.
    released
        As in Dettki (2025): an agent that is several subjects has cell means (`as_published`);
        cells of explaining away and the Markov violation hold the questions about both causes; and
        the alignment takes every answer for an item, with the reference mean of its domain, sense
        and task.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    answers = causal_answers(trials)
    agent = agent or next(name for name in AGENT_COLUMNS if name in answers)
    if conditions is None:
        conditions = [CONDITION] if CONDITION in answers else []
    for name in (agent, *conditions):
        if name not in answers:
            raise ValueError(
                f"Agents and conditions are told apart by columns of the trials; there is no "
                f"{name!r} among {', '.join(map(str, answers.columns))}."
            )
    keys = [agent, *(name for name in conditions if name != agent)]
    answers = answers.assign(**{name: answers[name].astype(str) for name in keys})
    unit = answers[keys[0]]
    for name in keys[1:]:
        unit = unit + ", " + answers[name]
    answers[UNIT] = unit
    scoring = scoring or ("pooled" if released else "by_cause")
    read = as_published(answers, answers[UNIT]) if released else answers
    read = read.assign(subject=read[UNIT])
    units, fits, tasks = _units_fits_and_tasks(answers, read, keys, scoring, released)
    aligned, told = pd.DataFrame(), ""
    if reference is not None:
        told = Path(reference).name if isinstance(reference, str | Path) else "the reference"
        table = _read(reference) if isinstance(reference, str | Path) else reference
        aligned = alignment(read, table, UNIT, seed=seed, released=released).table
    tests = list(_domain_tests(read, agent, keys[1:]))
    plain, paired, matched = (
        pd.concat(part, ignore_index=True) if part else pd.DataFrame()
        for part in (
            [found.omnibus.assign(condition=where) for where, found, _ in tests],
            [found.pairs.assign(condition=where) for where, found, _ in tests],
            [other.omnibus.assign(condition=where) for where, _, other in tests],
        )
    )
    differences, changes = pd.DataFrame(), pd.DataFrame()
    varied = [name for name in keys[1:] if units[name].nunique() > 1]
    if varied:
        compared: Robustness = robustness(units, QUANTITIES, varied, agent)
        differences, changes = compared.differences, compared.agents
    return CausalProfile(
        agent, tuple(keys[1:]), told, units, fits, tasks, aligned, plain, paired, matched,
        differences, changes, scoring, released,
    )  # fmt: skip


def _units_fits_and_tasks(
    answers: pd.DataFrame, read: pd.DataFrame, keys: list[str], scoring: Scoring, released: bool
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Fit and measure each agent in each condition, from the answers as they are to be read."""
    found = leave_one_task_out(read, parameters=CHOSEN_FROM, scoring=scoring)
    first = answers.drop_duplicates(UNIT).set_index(UNIT).loc[list(found.subjects)]
    rows = pd.DataFrame({UNIT: found.subjects, **{k: first[k].to_numpy() for k in keys}})
    given = answers["answer"].notna().groupby(answers[UNIT]).agg(["sum", "size"])
    given = given.loc[list(found.subjects)]
    rows["answers"] = given["sum"].to_numpy(dtype=np.int64)
    rows["missing"] = (given["size"] - given["sum"]).to_numpy(dtype=np.int64)
    rows["parameters"] = found.n_parameters
    theta = _theta(found)
    for k, name in enumerate(PARAMETERS):
        rows[name] = theta[:, k]
    for name in ("mae", "rmse", "r2"):
        rows[name] = found.of_chosen([getattr(fit, name) for fit in found.fits])
    rows["reasoning_consistency"], rows["consistency_rmse"] = found.value, found.error
    rows["determinacy"] = theta[:, 2:].mean(axis=1) - theta[:, 1]
    incomplete: dict[str, set[tuple[str, str]]] = {name: set() for name in found.subjects}
    for name in CONTRASTS:
        measure = MEASURES[name]
        assert isinstance(measure, CellContrast)
        measure = copy(measure)
        measure.pooled = released
        rows[name], lost = _contrast(measure, read, found.subjects)
        for subject, cells in lost.items():
            incomplete[subject] |= cells
    violation = rows["markov_violation"]
    rows["complies"] = [complies(v) if np.isfinite(v) else None for v in violation]
    rows["incomplete"] = [len(incomplete[name]) for name in found.subjects]
    rows["note"] = [_note(found, i, incomplete[name]) for i, name in enumerate(found.subjects)]
    own = answers.assign(subject=answers[UNIT])
    return rows, _fits(read, found, scoring), _tasks(own, found, theta, scoring)


def _fits(read: pd.DataFrame, found: ReasoningConsistency, scoring: Scoring) -> pd.DataFrame:
    """Return the noisy-ORs with each number of parameters, of which `found` has all but one."""
    rows = []
    for some in (found, leave_one_task_out(read, parameters=(5,), scoring=scoring)):
        for f, fit in enumerate(some.fits):
            size = len(fit.names)
            full = fit.estimate[:, list(PLACES[size])]
            for i, name in enumerate(some.subjects):
                row: dict[str, Any] = {UNIT: name, "parameters": size}
                row |= dict(zip(ALL_PARAMETERS, full[i].tolist(), strict=True))
                row |= {k: float(getattr(fit, k)[i]) for k in ("loss", "mae", "rmse", "r2")}
                row |= {"reasoning_consistency": float(some.r2[i, f])}
                row |= {"consistency_rmse": float(some.rmse[i, f])}
                row |= {"chosen": some is found and int(found.chosen[i]) == f}
                lost = "" if np.isfinite(some.r2[i, f]) else some.reason[i]
                said = "; ".join(part for part in (lost, fit.message[i]) if part)
                rows.append(row | {"status": fit.status[i], "note": said})
    order = {name: i for i, name in enumerate(found.subjects)}
    rows.sort(key=lambda row: (order[row[UNIT]], row["parameters"]))
    return pd.DataFrame(rows)


def _contrast(
    measure: CellContrast, own: pd.DataFrame, subjects: Sequence[str]
) -> tuple[list[float], dict[str, set[tuple[str, str]]]]:
    """Return a measure of each subject, and the cells and tasks that lack an answer."""
    if not own["task"].isin([measure.plus, measure.minus]).any():
        return [np.nan] * len(subjects), {}
    cells = measure.by_cell(own)
    value = dict(zip(cells.subjects, measure.over_cells(cells).value.tolist(), strict=True))
    lost: dict[str, set[tuple[str, str]]] = {}
    for subject, cell, task in cells.gaps():
        lost.setdefault(subject, set()).add((cell, task))
    return [value.get(name, np.nan) for name in subjects], lost


def _theta(found: ReasoningConsistency) -> Array:
    """Return p, b, m1 and m2 of the chosen fits, [N, 4]."""
    p = found.of_chosen([fit.estimate[:, fit.names.index("p")] for fit in found.fits])
    return np.column_stack([p, found.strengths])


def _note(found: ReasoningConsistency, i: int, lost: set[tuple[str, str]]) -> str:
    """Say what is wrong with a unit: why there is no fit, what is open, which cells lack what."""
    said = [found.reason[i], found.fits[max(int(found.chosen[i]), 0)].message[i]]
    named = sorted(f"{task} in {cell}" for cell, task in lost)
    if named:
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        said.append(f"no answer to {', '.join(named[:3])}{more}")
    return "; ".join(part for part in said if part)


def _tasks(
    own: pd.DataFrame, found: ReasoningConsistency, theta: Array, scoring: Scoring
) -> pd.DataFrame:
    """Return what each unit answers to each task, and what its noisy-OR does."""
    held = own[own["answer"].notna()]
    answer = held["answer"].to_numpy(dtype=float)
    subject = pd.Index(found.subjects).get_indexer(pd.Index(held["subject"]))
    task = pd.Index(ROMAN).get_indexer(pd.Index(held["task"]))
    second = (held["direction"] == "C2").to_numpy()
    n, side = len(theta), (subject * len(ROMAN) + task) * 2 + second
    counts = np.bincount(side, minlength=n * len(ROMAN) * 2).reshape(n, len(ROMAN), 2)
    answers, cell = counts.sum(axis=2), side // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(cell, answer, answers.size).reshape(answers.shape) / answers
        off = answer - mean.ravel()[cell]
        squares = np.bincount(cell, off**2, answers.size).reshape(answers.shape)
        error = np.sqrt(squares / (answers - 1) / answers)
        half = scipy.stats.t.ppf(0.975, np.maximum(answers - 1, 1)) * np.where(
            answers > 1, error, np.nan
        )
        fitted = (_predictions(theta, scoring) * counts).sum(axis=2) / answers
    foretold = found.of_chosen(list(np.moveaxis(found.predicted, 1, 0)))
    columns = {
        UNIT: np.repeat(np.array(found.subjects, dtype=object), len(ROMAN)),
        "task": list(ROMAN) * n,
        "question": [task.formula for task in TASKS] * n,
        "answers": answers.ravel(),
        "mean": mean.ravel(),
        "low": (mean - half).ravel(),
        "high": (mean + half).ravel(),
        "fitted": fitted.ravel(),
        "foretold": foretold.ravel(),
    }
    return pd.DataFrame(columns)


def _predictions(theta: Array, scoring: Scoring) -> Array:
    """Return what noisy-ORs p, b, m1, m2 answer to both directions of the tasks, [N, 11, 2]."""
    known = np.isfinite(theta).all(axis=1)
    told = np.full((len(theta), len(ROMAN), 2), np.nan)
    full = np.column_stack([theta[known], np.ones(known.sum())])  # their noise plays no part
    for t, task in enumerate(ROMAN):
        told[known, t] = judgements(NoisyOr, full, both_directions(task))
    if scoring == "pooled":
        told[..., 1] = told[..., 0]
    return told


def _domain_tests(
    answers: pd.DataFrame, agent: str, conditions: Sequence[str]
) -> Iterator[tuple[str, DomainDifferences, DomainDifferences]]:
    """Test domains and agents in each condition, as published and question by question."""
    parts = answers.groupby(list(conditions), sort=False) if conditions else [((), answers)]
    for key, part in parts:
        if max(part[agent].nunique(), part["domain"].nunique()) < 2 or part["answer"].isna().all():
            continue
        where = ", ".join(map(str, key))
        pairs = part[agent].nunique() <= MOST_PAIRED
        found = domain_differences(part, agent, pairs=pairs)
        other = domain_differences(part, agent, matched=True, pairs=False)
        yield where, found, other


def _read(file: str | Path) -> pd.DataFrame:
    """Read a reference: a trial file, or a table of means."""
    path = Path(file)
    try:
        table = pd.read_parquet(path.absolute()) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"The reference {path.name} cannot be read: {error}") from None
    value = next((name for name in ("mean", "response") if name in table), None)
    if value is None:
        raise ValueError(
            "A reference has a column 'mean' or 'response' (0 to 100) beside domain, sense and "
            f"what was asked; {path.name} has {', '.join(map(str, table.columns))}."
        )
    environment = Collider()
    rows = table.rename(columns={value: "response"}).assign(outcome="ok")
    rows = rows[rows["response"].notna()].assign(subject="reference")
    rows["trial"] = np.arange(len(rows))
    return causal_answers(Trials.from_frame(rows, environment=environment))


def _told(row: Mapping[Any, Any]) -> Iterator[str]:
    """Write down the fit and the measures of a unit, a line for each."""
    shown = {k: number(v) if isinstance(v, float) else v for k, v in row.items()}
    if np.isfinite(row["reasoning_consistency"]):
        yield (
            f"{row[UNIT]}: {row['parameters']} parameters, p {shown['p']}, b {shown['b']}, "
            f"m1 {shown['m1']}, m2 {shown['m2']}, MAE {shown['mae']}, RMSE {shown['rmse']}, R2 "
            f"{shown['r2']}; consistency {shown['reasoning_consistency']}, determinacy "
            f"{shown['determinacy']}"
        )
    else:
        yield f"{row[UNIT]}: no noisy-OR is told, {row['note']}"
    yield (
        f"{row[UNIT]}: explaining away {shown['explaining_away']} (VIII - VI: "
        f"{shown['explaining_away_released']}), Markov violation {shown['markov_violation']} "
        f"({complying(row['complies'])}); {row['answers']} answers, {row['missing']} missing"
    )


def complying(complies: Any) -> str:
    """Say in a word whether a Markov violation passes for none."""
    if not isinstance(complies, bool | np.bool_):
        return "not known"
    return "complies" if complies else "violates"


def _tested(table: pd.DataFrame, how: str) -> Iterator[str]:
    """Count the tests of each family and condition that find a difference."""
    if len(table) == 0:
        return
    for (condition, family), part in table.groupby(["condition", "family"], sort=False):
        made = part[part["status"] == "ok"]
        hit = made[made["p_adjusted"] < 0.05]
        what = f"{family}{f' ({condition})' if condition else ''}{how}"
        if not len(made):
            yield f"{what}: no test could be made"
        elif 0 < len(hit) <= MOST_LISTED:
            yield (
                f"{what}: {len(hit)} of {len(made)} tests reject at 5% after adjustment: "
                f"{', '.join(hit['of'])}"
            )
        else:
            yield f"{what}: {len(hit)} of {len(made)} tests reject at 5% after adjustment"


def _changed(profile: CausalProfile, factor: str) -> Iterator[str]:
    """Say what changes most and least along a factor, where some change more than others."""
    table = profile.differences
    if len(table) == 0 or not (table["factor"] == factor).any():
        return
    own = table[(table["factor"] == factor) & table["size"].notna()]
    yield from _ends(factor, own.groupby("quantity", sort=False)["size"].mean())
    agents = profile.changes[profile.changes["factor"] == factor]
    yield from _ends(factor, agents.set_index("agent")["change"])


def _ends(factor: str, size: pd.Series[float]) -> Iterator[str]:
    """Name the ends of an order, unless all are at the same place in it."""
    if len(size) and size.max() > size.min():
        yield f"{factor}: {size.idxmax()} changes most, {size.idxmin()} least"
