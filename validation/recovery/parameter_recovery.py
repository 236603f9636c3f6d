"""Parameter recovery: simulate agents whose parameters are known, fit them, and compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import AGENTS, Parameters
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, session_stream
from knownminds.inference.fits.identifiability import identifiability
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import maximum_a_posteriori, maximum_likelihood
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.groups.marginal import marginal
from knownminds.inference.posteriors.posterior import posterior
from knownminds.validation.engine.arguments import (
    check_lapse,
    check_truth,
    chosen_options,
    resolve_environment,
    selection_of,
    several,
)
from knownminds.validation.engine.cells import Cell, CellAnalysis, Population
from knownminds.validation.engine.drawn_groups import checked_correlations
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.group_fits import sample_group
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.population import (
    CHOSEN_PER_BATCH,
    CORRELATED,
    HYPERPRIOR,
    Subjects,
    check_step_loop,
    draw_subjects,
    live,
)
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.engine.verdicts import Verdict

from .questions import Recover
from .recovery_tables import (
    MASSES,
    NOTES,
    SIZES,
    law_table,
    recovered,
    recovery_figures,
    smallest_designs,
    surface_figures,
)

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit

Way = Literal["posterior", "laplace", "mle"]  # what is estimated alone, and its intervals
OF_GROUPS = ("marginal", "hierarchical")  # methods that estimate all of a replicate together
POPULATIONS: Mapping[str, Population] = {
    "prior": Population(),
    "group": HYPERPRIOR,
    "correlated": CORRELATED,
}
NOT_CONVERGED = "not converged"
LARGEST = "Verdicts above are those of the last design, the largest."
# Subjects per batch: half a second with Laplace's intervals, seconds with posteriors.
BATCH, BATCH_WITH_POSTERIORS = 5120, 512

recover = verb(Recover, __name__)


def compute(question: Recover) -> Result:
    """Answer `recover`."""
    grids = {name: several(getattr(question, name)) for name in ("subjects", "sessions", "trials")}
    for name, grid in grids.items():
        if len(grid) == 0:
            raise ValueError(f"A recovery needs at least one number of {name}; got none.")
    cells = tuple(recovery_cell(question, *sizes) for sizes in product(*grids.values()))
    lengths = [cell.make().n_trials for cell in cells[: len(grids["trials"])]]
    options = {**question.option_values(), **grids, "trials": lengths}
    remarks = tuple(_remarks(cell) for cell in cells)
    replicates, seed = question.replicates, question.seed
    study = Study("recover", cells, replicates, seed, "subject", options, remarks)
    check_step_loop(study)
    return run(study, fit_batch, say, question)


def recovery_cell(question: Recover, subjects: int, sessions: int, trials: int | None) -> Cell:
    """Check the options, and write down the design of these sizes."""
    environment = resolve_environment(question.environment, trials)
    model, method = question.agent, question.method
    model.check_plays(environment)
    held = check_truth(model.parameters, question.truth)
    population = POPULATIONS[question.population]
    if known := checked_correlations(model, question.correlation, held):
        if question.population == "correlated":
            raise ValueError(
                "Correlations are drawn, with --population correlated, or given, with "
                "--correlation; got both."
            )
        population = replace(population, correlation=known)
    unknowns = Unknowns.of(model, question.fixed, question.fit_lapse)
    if len(unknowns.parameters) == 0:
        raise ValueError(
            f"Recovery needs a parameter to estimate; {model.name} has none left. Name "
            "another with --model, or hold fewer values."
        )
    if method in OF_GROUPS and subjects < 2:
        raise ValueError(f"A group needs at least 2 subjects; got {subjects}.")
    selection_of(model, question.all_trials)
    analysis = CellAnalysis(
        fixed=dict(question.fixed or {}),
        fit_lapse=question.fit_lapse,
        all_trials=question.all_trials,
        intervals=question.intervals if method == "map" else "laplace",
        **chosen_options(environment, question.questions, question.adaptive),
    )
    return Cell(
        environment.name,
        environment.settings,
        model.name,
        held,
        check_lapse(question.lapse),
        population,
        sessions=sessions,
        subjects=subjects,
        method=method,
        analysis=analysis,
        batch=_batch(subjects, analysis, method),
    )


def _batch(subjects: int, analysis: CellAnalysis, method: str) -> int:
    if method in OF_GROUPS:
        return subjects
    if analysis.questions is not None:
        return CHOSEN_PER_BATCH
    return BATCH_WITH_POSTERIORS if analysis.intervals == "posterior" else BATCH


def _remarks(cell: Cell) -> tuple[str, ...]:
    """Say what a session of the design cannot tell, whatever the estimator."""
    if cell.analysis.questions is not None:  # of which a session has other ones each time
        return ()
    known = identifiability(
        AGENTS[cell.model],
        cell.make(),
        fixed=cell.analysis.fixed,
        lapse=None if cell.analysis.fit_lapse else cell.lapse or None,
        fit_lapse=cell.analysis.fit_lapse,
        all_trials=cell.analysis.all_trials,
    )
    return known.sentences


def fit_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Simulate and fit a batch: the work of a recovery study."""
    cell = study.cells[batch.cell]
    subjects = draw_subjects(study, batch)
    theta = subjects.theta
    model, analysis = AGENTS[cell.model], cell.analysis
    selection = selection_of(model, analysis.all_trials)
    data = live(study, batch, subjects).data(model, selection=selection)
    fixed, lapse = analysis.fixed, analysis.fit_lapse
    unknowns = Unknowns.of(model, fixed, lapse)
    true = theta[:, unknowns.columns]
    if lapse:
        true = np.column_stack([true, np.full(len(true), cell.lapse)])
    if cell.method == "marginal":
        alone = fit_known(data, true, "laplace", fixed, lapse, study.seed, threads)
        return alone.assign(**_group_columns(data, unknowns, subjects))
    if cell.method != "hierarchical":
        way: Way = "mle" if cell.method == "mle" else analysis.intervals
        return fit_known(data, true, way, fixed, lapse, study.seed, threads)
    replicate = int(subjects.replicate[0])
    address = (cell.data_key, replicate)
    together = goes_together(cell) and len(unknowns.parameters) > 1
    fit = sample_group(
        data, fixed, lapse, study.seed, *address, threads=threads, correlated=together
    )
    columns: dict[str, Any] = _pairs_of(fit, subjects, cell) if together else {}
    columns["status"] = "ok" if fit.verdict == "converged" else NOT_CONVERGED
    columns["message"] = "; ".join(fit.reasons)
    z = fit.z_draws.mean(axis=0)
    return _compared(unknowns.parameters, true, fit.estimate, z, fit.interval, columns)


def goes_together(cell: Cell) -> bool:
    """Whether the parameters of a cell's subjects go together."""
    return bool(cell.population.correlated or cell.population.correlation)


def unknowns_of(cell: Cell) -> Unknowns:
    """Return what is estimated in a cell."""
    return Unknowns.of(AGENTS[cell.model], cell.analysis.fixed, cell.analysis.fit_lapse)


def _group_columns(data: ModelData, unknowns: Unknowns, subjects: Subjects) -> dict[str, float]:
    """Return truth, estimate and 90% interval of each mean and spread of a group."""
    names = [name for name in unknowns.parameters.names if name in data.model.parameters.names]
    group = marginal(data, unknowns, GroupDesign.plain(unknowns.parameters, data.subjects))
    k, error = len(unknowns.parameters), np.sqrt(np.diagonal(group.covariance))
    half = scipy.stats.t.ppf(0.95, group.freedom) * error
    ends = np.array([group.values, group.values - half, group.values + half])
    if group.message:
        ends = np.full_like(ends, np.nan)
    columns: dict[str, float] = {}
    for position, name in enumerate(names):
        column = data.model.parameters.index(name)
        for what, true, (value, low, high) in (
            (f"mean({name})", subjects.group_mean[0, column], ends[:, position]),
            (f"sd({name})", subjects.group_sd[0, column], np.exp(ends[:, k + position])),
        ):
            columns |= {f"true {what}": float(true), what: float(value)}
            columns |= {f"low {what}": float(low), f"high {what}": float(high)}
    return columns


def _pairs_of(fit: HierarchicalFit, subjects: Subjects, cell: Cell) -> dict[str, float]:
    """Return truth, estimate and 90% interval of each correlation of a group."""
    correlations: dict[str, float] = {}
    known = cell.population.correlation
    for pair in fit.pairs:
        drawn = subjects.terms.get(f"cor({pair})")
        truth = known.get(pair, 0.0) if drawn is None else float(drawn[0])
        values = fit.posterior["correlation"].sel(pair=pair).to_numpy()
        low, high = np.quantile(values, [0.05, 0.95])
        correlations |= {f"true cor({pair})": truth, f"cor({pair})": float(values.mean())}
        correlations |= {f"low cor({pair})": float(low), f"high cor({pair})": float(high)}
    return correlations


def fit_known(
    data: ModelData,
    true: Array,
    way: Way,
    fixed: Mapping[str, float] | None,
    lapse: bool,
    seed: int,
    threads: int | None,
) -> pd.DataFrame:
    """Fit each subject alone; return status, message, truth, estimate and interval ends of each.

    Parameters
    ----------
    true : What is estimated, on the natural scale, [N, K]; the lapse rate last where it is.
    way : "mle", or "map" with intervals from each subject's "posterior" or by "laplace".
    """
    unknowns = Unknowns.of(data.model, fixed, lapse)
    intervals = None
    if way == "posterior":
        intervals = posterior(
            data.model, data, fixed=fixed, lapse=lapse, seed=seed, workers=threads
        )
        point = intervals.fit
    else:
        fitter = maximum_likelihood if way == "mle" else maximum_a_posteriori
        point = fitter(data.model, data, fixed=fixed, lapse=lapse, workers=threads)
    interval, status, message = point.interval, list(point.status), list(point.message)
    if intervals is not None:
        interval = intervals.interval
        for i, (before, after) in enumerate(zip(point.status, intervals.status, strict=True)):
            if after == "failed" != before:
                status[i], message[i] = after, "the posterior's importance weights are poor"
    columns = {"status": status, "message": message}
    return _compared(unknowns.parameters, true, point.estimate, point.z, interval, columns)


def _compared(
    parameters: Parameters,
    true: Array,
    estimate: Array,
    z: Array,
    interval: Callable[[float], tuple[Array, Array]],
    columns: dict[str, Any],
) -> pd.DataFrame:
    """Set truth beside estimate and interval ends; `columns` are those that come first."""
    ends = {mass: interval(mass) for mass in MASSES}
    with np.errstate(divide="ignore"):
        z_true = parameters.unconstrain(true)
    for k, name in enumerate(parameters.names):
        columns |= {f"true_{name}": true[:, k], name: estimate[:, k]}
        columns |= {f"z_true_{name}": z_true[:, k], f"z_{name}": z[:, k]}
        for mass, (low, high) in ends.items():
            columns[f"low_{mass * 100:g}_{name}"] = low[:, k]
            columns[f"high_{mass * 100:g}_{name}"] = high[:, k]
    return pd.DataFrame(columns)


def shuffled(trials: Trials, seed: int = 0) -> Trials:
    """Permute (action, reward) pairs within each session (and stage): a negative control.

    Frequencies stay, the order that carries learning goes; what is recovered from it is not
    learning. Stimuli stay where they were.
    """
    rng = session_stream(seed)
    frame = trials.to_frame()
    order = np.arange(len(frame))
    keys: list[Any] = ["subject", "session", *(["stage"] if "stage" in frame else [])]
    if {"action", "response"} <= set(frame):
        acts, tells = frame["action"].notna(), frame["response"].notna()
        if acts.any() and not (acts & tells).any():  # each trial needs the one or the other
            keys.append(acts)
    for rows in frame.groupby(keys, sort=False).indices.values():
        order[rows] = rng.permutation(rows)
    moved = [c for c in ("action", "response", "reward", "outcome") if c in frame]
    frame[moved] = frame[moved].iloc[order].reset_index(drop=True)
    return Trials.from_frame(frame)


def say(rows: Rows) -> Result:
    """Score the rows of a study, each design by itself."""
    study, first = rows.study, rows.study.cells[0]
    grid = len(study.cells) > 1
    # Subjects who are fitted one by one make a single recovery longer. A group's size belongs to
    # the design, and so it does where designs are compared: there it is replicates.
    alone = first.method not in OF_GROUPS and study.replicates == len(study.cells) == 1
    tables: dict[str, list[pd.DataFrame]] = {}
    verdicts: dict[tuple[int, ...], dict[str, Verdict]] = {}
    for number, cell in enumerate(study.cells):
        frame = rows.of(number)
        if (frame["status"] == "failed").all():  # also without any row
            continue
        scored = recovered(
            frame,
            unknowns_of(cell).parameters,
            clustered=cell.method in OF_GROUPS and study.replicates > 1,
            unit="subject" if alone else "replicate",
            size=1 if alone else cell.subjects,
        )
        size = (cell.subjects, cell.sessions, cell.make().n_trials)
        verdicts[size] = scored.verdicts
        remarks = study.remarks[number] if study.remarks else ()
        parts = scored.tables | {
            "Correlations over subjects": law_table(frame, ["cor"], "pair").drop(
                columns="without", errors="ignore"
            ),
            "Groups, on the unconstrained scale": law_table(frame, ["mean", "sd"], "of"),
            "What one session cannot tell": pd.DataFrame({"remark": remarks}),
        }
        sizes = dict(zip(SIZES, size, strict=True)) if grid else {}
        for title, part in parts.items():
            tables.setdefault(title, []).append(part.assign(**sizes))
    whole = {title: pd.concat(parts, ignore_index=True) for title, parts in tables.items()}
    figures: dict[str, Drawing] = {}
    if whole:
        figures = surface_figures(whole) if grid else recovery_figures(rows.frame, whole)
    if whole and grid:
        whole = {"From which design on": smallest_designs(whole["Estimates"]), **whole}
    selection = AGENTS[first.model].selection
    fitted = [] if selection is None else [selection.describe(first.analysis.all_trials)]
    return rows.result(
        f"Can {first.model} be recovered from {first.environment}?",
        verdicts=verdicts[max(verdicts)] if verdicts else {},
        tables={title: _named(table, grid) for title, table in whole.items()},
        shows=() if grid else ("r", "bias", "rmse", "n"),
        figures=figures,
        notes=[*fitted, *NOTES, *([LARGEST] if grid else [])],
    )


def _named(table: pd.DataFrame, grid: bool) -> pd.DataFrame:
    """Let the rows of a table be named by parameter and, in a grid, by design."""
    names = [name for name in ("parameter", "pair", *(SIZES if grid else ())) if name in table]
    return table.set_index(names) if names else table
