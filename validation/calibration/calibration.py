"""Simulation-based calibration: whether posteriors are as wide, and where, they ought to be."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import session_stream, unknown
from knownminds.environments.record.text_table import text_table
from knownminds.inference.fits.model_data import Unknowns
from knownminds.inference.posteriors.posterior import posterior
from knownminds.validation.engine.arguments import (
    check_truth,
    chosen_options,
    one_of,
    resolve_environment,
    resolve_model,
)
from knownminds.validation.engine.engine import read, run
from knownminds.validation.engine.group_fits import sample_group
from knownminds.validation.engine.group_law import COLUMN, design_of_sessions
from knownminds.validation.engine.population import (
    CHOSEN_PER_BATCH,
    HYPERPRIOR,
    Subjects,
    check_step_loop,
    design_of,
    draw_subjects,
    live,
)
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.sensitivity import replicates_for
from knownminds.validation.engine.study import Batch, Cell, Rows, Study
from knownminds.validation.engine.verdicts import MOST_FAILURES

from .around import around_options, truths_around, with_observed
from .questions import Calibrate
from .rank_uniformity import Uniformity, judge, rank_of

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit
    from knownminds.inference.groups.formulas import GroupDesign

METHODS = ("map", "hierarchical")
N_RANKS = 99  # draws the truth is ranked among: 100 equally likely ranks
LEVEL = 0.05  # of the whole family of quantities
REPLICATES_PER_BATCH = 128
_TIES = 2**31  # last part of the address of the numbers that break ties
LOG_LIKELIHOOD = "log_likelihood"


@dataclass(frozen=True)
class Calibration(Reported):
    """The outcome of a calibration study.

    Parameters
    ----------
    quantities
        By name: how uniform the ranks of the truth among the posterior's draws are. Parameters
        (for groups "NAME" is the group's mean, "sd(NAME)" its spread and "subject NAME" the first
        subject's), and the log-likelihood of the data.
    attempted, failed, statuses
        Replicates; those without ranks; all by status.
    """

    study: Study
    quantities: Mapping[str, Uniformity]
    attempted: int
    failed: int
    statuses: Mapping[str, int]
    notes: tuple[str, ...]
    seconds: float
    versions: Mapping[str, str]

    @property
    def cell(self) -> Cell:
        """Design and method."""
        return self.study.cells[0]

    @property
    def calibrated(self) -> bool:
        """Whether every quantity is, and at most 5% of the posteriors failed or stopped short."""
        unsound = self.attempted - self.statuses.get("ok", 0)
        words = {found.word for found in self.quantities.values()}
        return words == {"calibrated"} and unsound <= MOST_FAILURES * self.attempted

    @property
    def about_truths(self) -> list[str]:
        """A sentence on where truths come from, if not from the prior."""
        if "around" not in self.cell.options:
            return []
        file = self.cell.options["around"]["file"]
        return [
            f"Truths are drawn from the posteriors given {file}, and ranked given it and more data."
        ]

    @property
    def missed(self) -> list[str]:
        """A sentence on how many replicates notice smaller errors, where any are noticed."""
        ranked = self.attempted - self.failed
        if not any(found.seen_shift > 0 for found in self.quantities.values()):
            return []
        return [
            "Posteriors half as far off (of widths: half on the logarithmic scale) are noticed "
            f"with the same chance by about {replicates_for(0.5, 1.0, ranked):,} replicates."
        ]

    def __getitem__(self, name: str) -> Uniformity:
        """Return what was found about a quantity."""
        if name not in self.quantities:
            raise ValueError(unknown("quantity", name, self.quantities))
        return self.quantities[name]

    def to_frame(self) -> pd.DataFrame:
        """One row per quantity."""
        rows = [{"quantity": name, **found.to_dict()} for name, found in self.quantities.items()]
        return pd.DataFrame(rows)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        told = {name: found.to_dict() for name, found in self.quantities.items()}
        return {
            "environment": self.cell.environment,
            "settings": dict(self.cell.settings),
            "model": self.cell.model,
            "method": self.cell.method,
            "subjects": self.cell.subjects,
            "sessions": self.cell.sessions,
            "replicates": self.study.replicates,
            "ranks": N_RANKS,
            "seed": self.study.seed,
            "attempted": self.attempted,
            "failed": self.failed,
            "statuses": dict(self.statuses),
            "notes": list(self.notes),
            "calibrated": self.calibrated,
            "parameters": {
                name: {"verdict": values.pop("word"), **values} for name, values in told.items()
            },
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """One line per quantity, then the counts and the reasons."""
        c = self.cell
        what = "a group's posterior" if c.method == "hierarchical" else "single posteriors"
        lines = [f"calibration of {what} of {c.model} in {c.environment}"]
        lines += self.about_truths
        rows = []
        for name, found in self.quantities.items():
            band = {True: "inside", False: "outside", None: "-"}[found.inside_band]
            numbers = ((found.mean, 3), (found.spread, 2), (found.p_value, 3))
            values = (*(f"{x:.{k}f}" if isfinite(x) else "-" for x, k in numbers), band)
            rows.append((name, *values, found.word))
        lines += text_table(
            ("", "mean rank", "spread", "p", "95% band", "verdict"), rows, words=True
        )
        counts = ", ".join(f"{n} {status}" for status, n in self.statuses.items())
        lines.append(f"{self.attempted} replicates: {counts} (uniform: mean .5, spread 1)")
        lines += [f"{name}: {' '.join(found.reasons)}" for name, found in self.quantities.items()]
        return "\n".join([*lines, *self.missed, *self.notes])


calibrate = verb(Calibrate, __name__)


def compute(question: Calibrate) -> Calibration:
    """Answer what `calibrate` is asked."""
    environment = resolve_environment(question.environment, question.trials)
    agent, method = resolve_model(question.model), question.method
    agent.check_plays(environment)
    one_of("method", method, METHODS)
    held = check_truth(agent.parameters, question.fixed)
    unknowns = Unknowns.of(agent, held)
    if len(unknowns.parameters) == 0:
        raise ValueError(f"Calibration needs a parameter to estimate; {agent.name} has none left.")
    grouped = method == "hierarchical"
    size = (20 if grouped else 1) if question.subjects is None else question.subjects
    if grouped and size < 2:
        raise ValueError(f"A hierarchical fit needs at least 2 subjects; got {size}.")
    if not grouped and size != 1:
        raise ValueError(
            f"Single posteriors have 1 subject each; got {size}. Raise --replicates, or use "
            "--method hierarchical."
        )
    if question.around is not None and (grouped or question.questions is not None):
        raise ValueError(
            "Around a data set single posteriors are calibrated, from whole sessions; got "
            f"{'the method hierarchical' if grouped else '--questions'}. Leave it out."
        )
    law = _law(question, unknowns, size) if grouped else {}
    chosen = chosen_options(environment, question.questions, question.adaptive)
    cell = Cell(
        environment.name,
        environment.settings,
        agent.name,
        held,
        law=law,
        sessions=question.sessions,
        subjects=size,
        method=method,
        options={
            "fixed": held,
            **chosen,
            **around_options(question.around, environment, agent),
            **({"control": True} if question.control else {}),
        },
        batch=1 if grouped else CHOSEN_PER_BATCH if chosen else REPLICATES_PER_BATCH,
    )
    asked = question.asked() | {
        "subjects": size if grouped else None,
        "trials": environment.n_trials,
    }
    asked["fix"] = held
    asked["around"] = None if question.around is None else str(question.around)
    for name in ("correlated", "formula", "control"):  # not named where they were not asked for
        asked[name] = asked[name] or None
    if not grouped and (question.correlated or question.formula):
        raise ValueError(
            f"What goes together is that of a group: --method hierarchical; got {method}."
        )
    seed = question.seed
    study = Study("calibrate", (cell,), question.replicates, seed, "replicate", asked)
    check_step_loop(study)
    return run(study, rank_batch, summarise, **question.running)


def _law(question: Calibrate, unknowns: Unknowns, size: int) -> dict[str, Any]:
    """Check and return the law that groups are drawn from."""
    law: dict[str, Any] = dict(HYPERPRIOR)
    if question.control and not (question.correlated or question.formula):
        raise ValueError(
            "A control leaves out of the fit what goes together; nothing does. Add --correlated or "
            "--formula."
        )
    parameters = unknowns.parameters
    if question.correlated:
        if len(parameters) < 2 and not question.formula:
            raise ValueError(
                f"Correlations are between two parameters or more; {parameters.names[0]} alone is "
                "free. Leave --correlated out."
            )
        law["correlated"] = True
    if question.formula and question.questions is not None:
        raise ValueError("Questions are chosen for parameters that stay; leave --formula out.")
    if question.formula:
        law["formula"] = list(question.formula)
        agent = resolve_model(question.model)
        design_of_sessions(
            law["formula"], agent, parameters, size, question.sessions, question.correlated
        )
    return law


def read_calibration(folder: str | os.PathLike[str]) -> Calibration:
    """Read a finished calibration study from its folder; nothing is computed anew."""
    return read(folder, "calibrate", summarise)


def rank_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Rank the truth among posterior draws: one row per replicate, a column per quantity."""
    cell = study.cells[batch.cell]
    if cell.method == "hierarchical":
        rows = [
            _rank_group(study, Batch(batch.cell, j, j + 1), threads)
            for j in range(batch.first, batch.last)
        ]
        return pd.DataFrame(rows)
    return _rank_singles(study, batch, threads)


def _rank_singles(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    cell = study.cells[batch.cell]
    model, fixed = AGENTS[cell.model], cell.options["fixed"]
    unknowns = Unknowns.of(model, fixed)
    subjects = draw_subjects(study, batch)
    around, sound = "around" in cell.options, [""] * len(batch)
    if around:
        subjects, sound = truths_around(study, batch, subjects)
    lived = live(study, batch, subjects)
    data = with_observed(study, batch, lived) if around else lived.data(model)
    own = posterior(model, data, fixed=fixed, seed=study.seed, workers=threads)
    true = subjects.theta[:, unknowns.columns]
    names = [*unknowns.parameters.names, LOG_LIKELIHOOD]
    rngs = [_own_stream(study, cell, j) for j in range(batch.first, batch.last)]
    # All subjects' draws rest on one low-discrepancy set; ranks need draws of their own.
    chosen = np.stack([rng.choice(len(own.z_draws), N_RANKS, replace=False) for rng in rngs], 1)
    draws = own.draws[chosen, np.arange(len(rngs))]
    likely = np.stack([unknowns.log_likelihood(data, theta)[0] for theta in draws])
    likely_true, _ = unknowns.log_likelihood(data, true)
    rows = []
    for i, rng in enumerate(rngs):
        row: dict[str, Any] = {"status": "ok", "message": ""}
        if "failed" in (own.status[i], sound[i]):
            row = {"status": "failed", "message": "no trustworthy draws of the posterior"}
        else:
            truth = np.append(true[i], likely_true[i])
            row |= _ranks(names, truth, np.column_stack([draws[:, i], likely[:, i]]), rng)
        rows.append(row)
    return pd.DataFrame(rows)


def _rank_group(study: Study, batch: Batch, threads: int | None) -> dict[str, Any]:
    cell = study.cells[batch.cell]
    model, fixed = AGENTS[cell.model], cell.options["fixed"]
    unknowns = Unknowns.of(model, fixed)
    subjects = draw_subjects(study, batch)
    several = bool(cell.law.get("formula"))
    data = live(study, batch, subjects).data(model, apart=several)
    place = (cell.data_key, batch.first)
    control = cell.options.get("control", False)
    fit = sample_group(
        data,
        fixed,
        False,
        study.seed,
        *place,
        threads=threads,
        correlated=bool(cell.law.get("correlated")) and not control,
        design=_design(cell, unknowns, control),
    )
    columns = unknowns.columns
    true = subjects.theta[:, columns]
    if subjects.of_session is not None:
        true = subjects.of_session[:, :, columns].reshape(-1, len(columns))
    names = fit.names
    draws = [_group_draws(fit, "group_mean"), _group_draws(fit, "group_sd"), fit.draws[:, 0]]
    truth = [subjects.group_mean[0, columns], subjects.group_sd[0, columns], true[0]]
    thin = ((np.arange(N_RANKS) + 0.5) * len(fit.draws) / N_RANKS).astype(int)
    likely = [float(unknowns.log_likelihood(data, fit.draws[s])[0].sum()) for s in thin]
    truth.append(np.array([unknowns.log_likelihood(data, true)[0].sum()]))
    told = [*names, *(f"sd({n})" for n in names), *(f"subject {n}" for n in names), LOG_LIKELIHOOD]
    drawn = np.column_stack([*(d[thin] for d in draws), likely])
    more = _together(fit, thin, subjects, unknowns, cell)
    if more:
        told += list(more)
        truth.append(np.array([own for own, _ in more.values()]))
        drawn = np.column_stack([drawn, *(values for _, values in more.values())])
    ranks = _ranks(told, np.concatenate(truth), drawn, _own_stream(study, cell, batch.first))
    converged = fit.verdict == "converged"
    return {
        "status": "ok" if converged else "not converged",
        "message": "; ".join(fit.reasons),
        **ranks,
    }


def _design(cell: Cell, unknowns: Unknowns, control: bool) -> GroupDesign | None:
    """Return the design that a group is fitted with; of a control one that moves all alike."""
    found = design_of(cell, unknowns.parameters, cell.subjects)
    if found is None or not control:
        return found
    alike = [f"{term.parameter} ~ {term.fixed} + (1 | subject)" for term in found.terms]
    return design_of_sessions(
        alike, AGENTS[cell.model], unknowns.parameters, cell.subjects, cell.sessions, False
    )


def _together(
    fit: HierarchicalFit, thin: Array, subjects: Subjects, unknowns: Unknowns, cell: Cell
) -> dict[str, tuple[float, Array]]:
    """Return truth and draws of what goes together: terms of the fit, and what is seen of it.

    What is seen of a correlation is that between the subjects' own parameters, of the first
    session; and of how far effects spread, the spread of the subjects' own changes. A fit without
    these has them as well.
    """
    draws = {name: values for name, values, _ in fit.terms()} if subjects.terms else {}
    found = {
        name: (float(value[0]), draws[name][thin])
        for name, value in subjects.terms.items()
        if name in draws
    }
    n = cell.subjects
    if subjects.of_session is not None:
        found |= _seen_changes(fit, thin, subjects, unknowns)
    if not cell.law.get("correlated"):
        return found
    own = unknowns.parameters.unconstrain(subjects.theta[:, unknowns.columns])
    drawn = fit.z_draws[thin, :n]
    for a, b in combinations(range(len(fit.names)), 2):
        truth = float(np.corrcoef(own[:, a], own[:, b])[0, 1])
        values = np.array([np.corrcoef(z[:, a], z[:, b])[0, 1] for z in drawn])
        found[f"seen cor({fit.names[a]}, {fit.names[b]})"] = truth, values
    return found


def _seen_changes(
    fit: HierarchicalFit, thin: Array, subjects: Subjects, unknowns: Unknowns
) -> dict[str, tuple[float, Array]]:
    """Return truth and draws of how far subjects' changes from first to last session spread."""
    assert subjects.of_session is not None
    own = unknowns.parameters.unconstrain(subjects.of_session[:, :, unknowns.columns])
    n = own.shape[1]
    drawn = fit.z_draws[thin, -n:] - fit.z_draws[thin, :n]
    found = {}
    for k, name in enumerate(fit.names):
        changes = own[-1, :, k] - own[0, :, k]
        if np.ptp(changes) > 0:
            found[f"seen sd({name} ~ {COLUMN})"] = float(changes.std()), drawn[:, :, k].std(axis=1)
    return found


def _group_draws(fit: HierarchicalFit, name: str) -> Array:
    draws = fit.posterior[name].transpose("chain", "draw", "parameter").to_numpy()
    return np.asarray(draws.reshape(-1, draws.shape[-1]))


def _own_stream(study: Study, cell: Cell, replicate: int) -> np.random.Generator:
    return session_stream(study.seed, cell.data_key, replicate, _TIES)


def _ranks(
    names: list[str], truth: Array, draws: Array, rng: np.random.Generator
) -> dict[str, int]:
    ranks = rank_of(truth, draws, N_RANKS, rng)
    return {f"rank {name}": int(rank) for name, rank in zip(names, ranks, strict=True)}


def summarise(rows: Rows) -> Calibration:
    """Judge the ranks of a finished study."""
    statuses: dict[str, int] = {}
    messages: dict[str, int] = {}
    ranks: dict[str, list[Array]] = {}
    seconds = 0.0
    for table in rows.tables():
        seconds += float(table["seconds"].sum())
        for counts, column in ((statuses, table["status"]), (messages, table["message"])):
            for value, n in column.value_counts().items():
                counts[str(value)] = counts.get(str(value), 0) + int(n)
        usable = table[table["status"] != "failed"]
        for name in usable.columns:
            if name.startswith("rank "):
                ranks.setdefault(name.removeprefix("rank "), []).append(usable[name].to_numpy())
    attempted = rows.study.units(0)
    unsound = attempted - statuses.get("ok", 0)
    judged = {
        name: judge(np.concatenate(found).astype(int), N_RANKS, LEVEL / len(ranks))
        for name, found in ranks.items()
    }
    notes = [f"{n} of {attempted}: {text}" for text, n in messages.items() if text][:3]
    if unsound > MOST_FAILURES * attempted:
        notes.insert(
            0,
            f"{unsound} of {attempted} posteriors failed or did not converge, more than "
            f"{MOST_FAILURES:.0%}: the ranks of the others do not speak for all.",
        )
    return Calibration(
        study=rows.study,
        quantities=judged,
        attempted=attempted,
        failed=statuses.get("failed", 0),
        statuses=statuses,
        notes=tuple(notes),
        seconds=seconds,
        versions=rows.versions,
    )
