"""A user's data, fitted, and how much these data can say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import Model
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments import (
    ANSWERED,
    ENVIRONMENTS,
    Environment,
    Trials,
    environment_of,
    make,
    outcome_rates,
    unknown,
)
from knownminds.inference.diagnosis.monotone_choice import holm
from knownminds.inference.fits.missing_answers import missing_answer_bounds
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.inference.groups.crossed_levels import units_of
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.groups.marginal import MarginalFit, marginal
from knownminds.inference.magnitudes.observer_misfit import MISFIT, has_cells, misfit_and_nested
from knownminds.inference.posteriors.posterior import Posterior, posterior
from knownminds.validation.engine.arguments import one_of, resolve_model, selection_of, set_to
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.question import command_line, in_one, verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.screen import INTERVALS
from knownminds.validation.engine.study import versions
from knownminds.validation.engine.usual_models import usual_model
from knownminds.validation.engine.verdicts import Verdict, reason
from knownminds.validation.studies import check_same_question

from .cells import check_over, copies_over_cells, told_over_cells, trials_over_cells
from .controls import controls_of_data
from .fit_answer import Fit
from .fit_figures import draw_panels, draw_subjects
from .group_fit import group_fit, rows_of
from .predictive import LEVEL, MOST_ROWS, PredictedAnswers, check_fit, panels_in, replicated_from
from .questions import AskFit
from .rivals import chosen_rivals, compare_rivals
from .support import (
    LEAST_FOR_GROUP,
    MASS,
    SIMULATED,
    Relived,
    reliability,
    support_of,
    unreadable_there,
)
from .trials_of_runs import (
    copied_sessions,
    lacking_trials,
    of_several_servers,
    read_one,
    rows_where,
)

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit

MOST_PREDICTED = 20_000_000  # simulated answers that are kept in it
SAMPLING = {"target_accept": 0.8, "minutes": 15.0}
PARAMETERS, SUBJECTS, STATUSES = "Parameters", "Subjects", "Statuses"
SUPPORT, UNREADABLE = "What these rows support", "Values that cannot be read"
CHECKS, COUNTS = "Predictive checks", "Counts"
OUTCOMES = "Outcomes of the answers"
BOUNDS = "Between which estimates lie, whatever the missing answers"
ABOUT = (
    "Estimates with 90% intervals. Their scale is the range of a parameter; spreads and weights "
    "are on the unconstrained scale, the logit or log of parameters in a range. Statuses: flat, "
    "the trials say next to nothing about a parameter; boundary, the data ask for an infinite "
    "value; failed, no trustworthy estimate.",
)
ABOUT_POINTS = (
    "Group values of map are those of the group's marginal likelihood: subjects are integrated "
    "out, so that the prior of single estimates pulls nothing. In 100 groups of 30 or 50 subjects "
    "of three models 90% intervals of means held the truth in .86 to .98, those of spreads in .74 "
    "to .89: read these as too narrow (recover --method marginal). Where that has no maximum, and "
    "of mle, they are medians over subjects with distribution-free intervals; medians of map "
    "estimates from few trials lie near the prior (take --method hierarchical)."
)
ABOUT_SUPPORT = (
    "What these rows support: simulated agents take the very rows of the data (where sessions end "
    "early, as far as their choices lead) and are fitted; of hierarchical fits each alone, "
    "with the group as its prior. r: correlation of estimate and truth; reliability: share of the "
    "variance between the data's estimates that is not error, from their standard errors; group "
    "mean and sd: of these agents, on the unconstrained scale. Where a "
    "parameter is not recoverable, do not read differences between single subjects off the "
    "estimates."
)
POPULATIONS = {
    "fitted": "Simulated agents are drawn from the group that these estimates show.",
    "prior": "Simulated agents are drawn from the model's priors, as fewer than "
    f"{LEAST_FOR_GROUP} usable subjects show no group.",
}
ABOUT_CHECKS = (
    "Predictive checks: the discrepancy of a panel is the squared Mahalanobis distance of its "
    "means from those of sessions simulated from the fit; p is the share of these at least as far "
    "off as the data. It is corrected for the number of panels (Holm 1979). The fit has seen the "
    "data, so that some wrong models pass. Beyond "
    f"{MOST_ROWS:,} rows, subjects are passed over, evenly from all."
)
ASSUMED = (
    "what other choices would have brought is not in the data, and was simulated with the shipped "
    "settings; tell those of the experiment with --set"
)
DRAWN_FROM = {
    "estimates": "Sessions are simulated from the estimates alone, as if these had no errors.",
    "posterior": "Sessions are simulated from draws of the posterior.",
}
ABOUT_MISSING = (
    "Trials without a readable answer are left out, which is right if what is missing does not "
    "depend on what would have been answered. Bounds are the ends between which an estimate lies "
    "whatever its missing choices would have been; of missing numbers they are not computed."
)
CELL_TESTS = "p of misfit, and of what the observer could do without"
ABOUT_CELL_TESTS = (
    f"Misfit: if its p is below {MISFIT:g}, slopes and spreads of cells are not those of one such "
    "observer; then its parameters describe nobody, and no other test is made. The others say "
    "whether the observer could do without: a small p says no. How often each errs at these sizes, "
    "knownminds audit observer tells; with 12 trials a cell the misfit is often overlooked. A "
    "dash: not tested, as the cells are too few, the fit gave no errors, or there is a misfit."
)
FEW_CELLS = (
    "Whether one observer describes these cells was not tested: each gives a slope and a spread, "
    "and together these must be more than the parameters, of which the fit must give errors."
)
NOT_TESTED = (
    "Whether one set of parameters describes these cells was not tested: the test is that of "
    "bayesian_observer with all parameters free and without lapses."
)
FORESTS = "Each subject's estimate and 90% interval; the group value and its interval behind."
CHECKED = (
    "Predictive checks: lines and points are means of the data; shaded are the middle 90% of "
    "sessions simulated from the fit, with the same trials and subjects."
)


fit = verb(AskFit, __name__)


@dataclass(frozen=True)
class FitTask:
    """What is fitted, and how.

    Parameters
    ----------
    question : The options.
    source : What the data are called.
    agent, environment : Model and experiment; None over the cells of several.
    trials : Those that are fitted, with the subjects of the data.
    rows : The unit of each trial that has parameters of its own.
    within : Columns within subjects.
    data : As the model reads them.
    counts : Trials in all, and subjects without a trial that is fitted.
    notes : Which trials were chosen.
    warnings : What of the data a reader may not expect.
    assumed : Whether what other choices bring follows from settings that nobody told.
    """

    question: AskFit
    source: str
    agent: type[Model]
    environment: Environment | None
    trials: Trials
    rows: pd.Series[Any]
    within: tuple[str, ...]
    data: ModelData
    counts: Mapping[str, int]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    assumed: bool

    @classmethod
    def of(cls, question: AskFit) -> FitTask:
        """Read the data; ValueError if these cannot be fitted so."""
        _check(question)
        if question.over is not None:
            return cls._over_cells(question)
        source, trials = read_one(question.data, question.columns)
        trials, chosen = rows_where(trials, question.where)
        name = question.environment
        agent = resolve_model(question.model or usual_model(_named(trials, name)))
        environment = set_to(_environment_of(trials, name, agent), question.settings)
        chosen_rivals(agent, environment, question.against or (), False)  # a wrong name at once
        told = question.settings or trials.settings.get(environment.name)
        hidden = environment.fields.hidden  # what other choices would have brought, if recorded
        known = hidden and set(hidden) <= set(trials.frame)
        assumed = bool(environment.feedback and not known and not told)
        frame, how = _sessions(trials, question.separate)
        lacking, notes = lacking_trials(environment, trials), (*chosen, *how)
        task = cls._chosen(question, source, agent, environment, frame, assumed, notes)
        return replace(task, warnings=(*task.warnings, *lacking))

    @classmethod
    def _over_cells(cls, question: AskFit) -> FitTask:
        """Read trials of several experiments and conditions, see `trials_over_cells`."""
        check_over(question)
        agent = resolve_model(question.model or "")
        source, trials = trials_over_cells(question, agent)
        trials, chosen = rows_where(trials, question.where)
        how = (*chosen, told_over_cells(trials))
        return cls._chosen(question, source, agent, None, trials.frame, False, how)

    @classmethod
    def _chosen(
        cls, question: AskFit, source: str, agent: type[Model], environment: Environment | None,
        frame: pd.DataFrame, assumed: bool, notes: tuple[str, ...],
    ) -> FitTask:  # fmt: skip
        """Take the trials that the model is fitted to, as it reads them."""
        n_actions = None if environment is None else environment.n_actions
        counts, frame = _selected(frame, agent, question.all_trials)
        trials_of = Trials.from_frame(frame, environment=environment)
        unknowns = Unknowns.of(agent, question.fixed, question.fit_lapse)
        rows, within = rows_of(
            agent, trials_of, question.formula, question.unit, unknowns, question.correlated
        )
        by_rows = trials_of
        if question.unit or within:
            by_rows = Trials.from_frame(frame.assign(subject=rows), environment=environment)
        data = ModelData.read(agent, by_rows, n_actions, all_trials=question.all_trials)
        if not data.n_trials.any():
            each = frame["outcome"].value_counts().items()
            raise ValueError(
                f"A fit needs answers; {source} has {len(frame)} trials and no readable one "
                f"({', '.join(f'{n} {outcome}' for outcome, n in each)}). Check how it was "
                "imported."
            )
        if environment is None:
            copies = copies_over_cells(trials_of)
        else:
            copies = copied_sessions(environment, trials_of)
        return cls(question, source, agent, environment, trials_of, rows, within, data, counts,
                   notes, tuple(copies), assumed)  # fmt: skip

    @property
    def unknowns(self) -> Unknowns:
        """What is estimated."""
        return Unknowns.of(self.agent, self.question.fixed, self.question.fit_lapse)

    @property
    def by_rows(self) -> Trials:
        """The trials, with the unit that has parameters of its own as the subject."""
        frame = self.trials.frame.assign(subject=self.rows)
        return Trials.from_frame(frame, environment=self.environment)

    def option_values(self) -> dict[str, Any]:
        """The options, with the names of what was chosen by default."""
        place = self.environment
        name = None if place is None else place.name
        named = replace(self.question, data=(), model=self.agent.name, environment=name)
        question = named.option_values()
        question.pop("subject_matter")
        data = self.question.data
        if isinstance(data, Trials | str | Path):
            paths = [self.source]
        else:
            paths = [str(path) for path in data]
        shipped = {} if place is None else make(place.name).settings
        played = {k: v for k, v in place.settings.items() if v != shipped[k]} if place else {}
        return {"data": paths, **question, "played": played}

    def command(self) -> str:
        """Return the command line that fits the data again."""
        options = self.option_values()
        del options["played"]
        options |= {
            "columns": in_one(options["columns"] or {}),
            "unit": ",".join(options["unit"] or ()),
            "crossed": ",".join(options["crossed"] or ()),
        }
        return command_line("fit", *options.pop("data"), **options)


@dataclass(frozen=True)
class Estimates:
    """What a fit gives.

    Parameters
    ----------
    subjects : One row each: `NAME`, `NAME_low`, `NAME_high` (90% intervals), status, message,
        n_trials.
    parameters : Group values: rows parameter, estimate, low, high, meaning, and quantity:
        group_mean, spread, weight, correlation, median or subject.
    names : Of the parameters that are estimated.
    fit : Posteriors, or the hierarchical fit; None of maximum likelihood.
    more : Verdicts, tables, figures and notes of a hierarchical fit.
    """

    subjects: pd.DataFrame
    parameters: pd.DataFrame
    names: tuple[str, ...]
    fit: Posterior | HierarchicalFit | None
    more: Result = field(default_factory=lambda: Result(""))


def compute(question: AskFit) -> Fit:
    """Answer `fit`."""
    task = FitTask.of(question)
    if question.left_in is not None:  # before any work
        check_same_question(task.command(), question.left_in)
    if question.tell is not None and question.over is None:
        taken: dict[str, Any] = {"environment": task.environment, "model": task.agent}
        for name in (name for name in taken if getattr(question, name) is None):
            question.tell(f"{name}: {taken[name].name} (name another with --{name})")
    hierarchical = question.method == "hierarchical"
    if hierarchical:
        estimates = Estimates(*group_fit(task.agent, task.trials, question, SAMPLING))
    else:
        estimates = _point_fit(task)
    within_one, predicted = _of_one_experiment(task, estimates)
    controls = controls_of_data(question.data)
    parts = [replace(controls, options={}), estimates.more, *within_one, _missing(task)]
    frame = estimates.subjects
    statuses = frame["status"].value_counts().rename_axis("status").reset_index(name="number")
    parts.append(Result("", tables={STATUSES: statuses, SUBJECTS: frame}))
    counts = {"trials": int(frame["n_trials"].sum()), **task.counts}
    for part in parts:
        counts |= part.options
    listed = pd.DataFrame({"of": list(counts), "number": list(counts.values())})
    values = with_scales(estimates.parameters, task.unknowns.parameters)
    values.attrs[INTERVALS] = MASS
    tables = {PARAMETERS: values, **_merged(parts, "tables"), COUNTS: listed}
    selection = task.agent.selection
    notes = [*ABOUT, *task.notes, *([] if hierarchical else [ABOUT_POINTS])]
    notes += [selection.describe(question.all_trials)] if selection else []
    return Fit(
        title=f"{task.agent.name} fitted to {task.source}",
        verdicts=_merged(parts, "verdicts"),
        tables=tables,
        figures={**_forest(estimates), **_merged([*parts[2:], estimates.more], "figures")},
        notes=[*notes, *(note for part in parts for note in part.notes)],
        counts=_counts(frame, task.by_rows.frame),
        warnings=[
            *task.warnings,
            *(warning for part in within_one for warning in part.warnings),
            *of_several_servers(question.data),
        ],
        attempted=len(frame),
        failed=int((frame["status"] == "failed").sum()),
        options={**task.option_values(), **controls.options},
        facts=_facts(task, estimates),
        command=task.command(),
        versions=versions(),
        posterior=estimates.fit if hierarchical else None,  # type: ignore[arg-type]
        predicted=predicted,
    )


def _facts(task: FitTask, estimates: Estimates) -> dict[str, Any]:
    """Return what a methods section says of the data, the priors and the chains."""
    subjects = estimates.subjects
    facts: dict[str, Any] = {
        "fitted_subjects": int((subjects["n_trials"] > 0).sum()),
        "fitted_trials": int(subjects["n_trials"].sum()),
    }
    priors = []
    for p in task.unknowns.parameters:
        name = p.name if p.support.kind == "identity" else f"{p.support.kind}({p.name})"
        priors.append(f"{name} normal({p.mean:g}, {p.sd:g})")
    if task.question.method == "map":
        facts["priors"] = priors
    if task.question.method == "hierarchical":
        fitted: Any = estimates.fit
        there = fitted.posterior.sizes
        spreads = [f"its spread half-normal({p.group_sd:g})" for p in task.unknowns.parameters]
        facts["group_priors"] = [
            f"mean of {prior}, {spread}" for prior, spread in zip(priors, spreads, strict=True)
        ]
        facts |= {"chains": int(there["chain"]), "draws": int(there["draw"])}
    return facts


def _of_one_experiment(
    task: FitTask, estimates: Estimates
) -> tuple[list[Result], Mapping[str, Any] | None]:
    """Return what these rows support, rivals and checks; over cells, whether one model has them."""
    environment = task.environment
    if environment is None:
        return [_over_cells(task, estimates)], None
    relived = Relived.of(task.trials.frame, environment, task.rows)
    checks, predicted = _checks(task, environment, relived, estimates)
    support = _support(task, environment, relived, estimates)
    return [support, _rivals(task, environment, relived, estimates), checks], predicted


def _over_cells(task: FitTask, estimates: Estimates) -> Result:
    """Test whether an observer of magnitudes describes all cells, and what it could do without."""
    question, data = task.question, task.data
    if not has_cells(task.agent) or question.fixed or question.fit_lapse:
        return Result("", notes=[NOT_TESTED])
    usable = (estimates.subjects["status"] != "failed").to_numpy()
    if not usable.any():
        return Result("")
    tests = misfit_and_nested(
        task.agent, data.repeat(np.flatnonzero(usable)), workers=question.workers
    )
    if tests["p"].isna().all():
        return Result("", notes=[FEW_CELLS])
    table = tests.pivot(index="subject", columns="without", values="p")
    order = dict.fromkeys(tests["without"])
    p = table["misfit"].dropna()
    misfits = (p < MISFIT).sum()
    warning = (
        f"One observer does not describe the cells of {misfits} of {len(p)} tested participants "
        f"(misfit with p below {MISFIT:g}; by chance about {MISFIT * len(p):.2g}). Their "
        "parameters describe nobody; the table of p (--full) names them."
    )
    return Result(
        "",
        warnings=[warning] if misfits else [],
        tables={CELL_TESTS: table.reindex(data.subjects)[list(order)].reset_index()},
        notes=[ABOUT_CELL_TESTS],
    )


def _merged(parts: Sequence[Result], name: str) -> dict[str, Any]:
    return {key: value for part in parts for key, value in getattr(part, name).items()}


def _check(question: AskFit) -> None:
    """Raise ValueError at what does not go together."""
    method = question.method
    if method not in (methods := ("map", "mle", "hierarchical")):
        raise ValueError(unknown("method", method, methods))
    for given, what in (
        (question.formula, "A formula needs"),
        (question.crossed, "Crossed factors need"),
        (question.correlated, "Correlated parameters need"),
        (question.sampling, "Sampling options need"),
    ):
        if given and method != "hierarchical":
            raise ValueError(f"{what} --method hierarchical; got {method}.")
    for name in question.sampling or {}:
        one_of("sampling option", name, SAMPLING)
    minutes = {**SAMPLING, **(question.sampling or {})}["minutes"]
    if not minutes > 0:
        raise ValueError(f"Sampling takes some time: minutes is above 0; got {minutes}.")
    if question.rope and not question.formula:
        raise ValueError(
            "A region of practical equivalence (--rope) is of a contrast; add --formula."
        )


def _selected(
    frame: pd.DataFrame, agent: type[Model], all_trials: bool
) -> tuple[dict[str, int], pd.DataFrame]:
    """Return the rows that are fitted, and what is counted of them; ValueError if none is."""
    selection = selection_of(agent, all_trials)
    if selection is None:
        return {}, frame
    kept = frame[selection.of(frame, agent.name)].reset_index(drop=True)
    if kept.empty:
        raise ValueError(
            f"{agent.name} is fitted to {selection.trials}, trials whose {selection.column!r} is "
            f"{selection.value:g}; got {len(frame)} trials and none of these. Fit all trials "
            "(--all-trials), or check the column."
        )
    without = frame["subject"].nunique() - kept["subject"].nunique()
    counts = {selection.trials: len(kept), "all trials": len(frame)}
    return counts | {"subjects without such trials": without}, kept


def _sessions(trials: Trials, separate: bool) -> tuple[pd.DataFrame, list[str]]:
    """Return the trials, each session a subject if separate, and what became of sessions."""
    frame = trials.frame
    n = frame.drop_duplicates(["subject", "session"]).groupby("subject", sort=False).size()
    if not separate:
        several = n[n > 1]
        whose = several.index[0] if len(several) == 1 else f"{len(several)} subjects"
        more = f"All sessions of a subject have its parameters ({whose}: {several.sum()} sessions)."
        return frame, [f"{more} --separate fits each on its own."] if len(several) else []
    subject = (
        frame["session"].astype(str) if len(n) == 1 else units_of(trials, ("subject", "session"))
    )
    return frame.assign(subject=subject), [
        "Each session is fitted on its own. Few trials draw each estimate to the prior, and so the "
        "mean of all."
    ]


def _environment_of(trials: Trials, name: str | None, model: type[Model]) -> Environment:
    name = _named(trials, name)
    if name is None:
        name = _only_experiment(trials, model)
    one_of("environment", name, ENVIRONMENTS)
    environment = environment_of(trials, name)
    model.check_plays(environment)
    return environment


def _named(trials: Trials, name: str | None) -> str | None:
    """Return the experiment that is named, or else the one that the data name; None if none."""
    if name is not None or "environment" not in trials.frame:
        return name
    names = trials.frame["environment"].dropna().unique()
    if len(names) > 1:
        raise ValueError(
            f"A fit takes one experiment; the data hold {', '.join(names)}. Split the file."
        )
    return str(names[0]) if len(names) else None


def _only_experiment(trials: Trials, model: type[Model]) -> str:
    """Return the only experiment that a model plays, or the one that most columns speak for.

    An experiment that needs no columns is not taken for want of another.
    """
    able = {name: make(name) for name in ENVIRONMENTS}
    able = {name: environment for name, environment in able.items() if model.plays(environment)}
    shown = {name: set(environment.fields.stimulus) for name, environment in able.items()}
    fitting = [name for name in able if shown[name] <= set(trials.frame)]
    most = max((len(shown[name]) for name in fitting), default=0)
    names = [name for name in fitting if 0 < len(shown[name]) == most] or list(able)
    if len(names) != 1:
        raise ValueError(
            f"The data do not name their experiment, and {model.name} plays "
            f"{', '.join(names) or 'none'}. Name it with --environment."
        )
    return names[0]


def _point_fit(task: FitTask) -> Estimates:
    question = task.question
    held: dict[str, Any] = {
        "fixed": question.fixed, "lapse": question.fit_lapse, "workers": question.workers,
    }  # fmt: skip
    intervals = None
    if question.method == "mle":
        point = maximum_likelihood(task.agent, task.data, **held)
        frame = point.to_frame(MASS)
    else:
        intervals = posterior(task.agent, task.data, seed=question.seed, **held)
        point = intervals.fit
        frame = point.to_frame(MASS)
        for k, name in enumerate(point.names):
            frame[f"{name}_low"], frame[f"{name}_high"] = (
                end[:, k] for end in intervals.interval(MASS)
            )
    usable = frame[frame["status"] != "failed"]
    if question.method == "map" and len(usable) > 1 and point.names:
        unknowns, part = task.unknowns, task.data.repeat(usable.index.to_numpy())
        group = marginal(part, unknowns, GroupDesign.plain(unknowns.parameters, part.subjects))
        if not group.message:
            return Estimates(frame, _values_of(group), point.names, intervals)
    rows = []
    for name in point.names:
        values = usable[[name, f"{name}_low", f"{name}_high"]].to_numpy(dtype=float)
        rows.append({"parameter": name, **_median_of(values)})
    return Estimates(frame, pd.DataFrame(rows), point.names, intervals)


def _values_of(group: MarginalFit) -> pd.DataFrame:
    """Return a group's means on the natural scale, and its spreads on the other."""
    k, error = len(group.parameters), np.sqrt(np.diagonal(group.covariance))
    half = scipy.stats.t.ppf(0.5 + MASS / 2, group.freedom) * error
    ends = np.array([group.values, group.values - half, group.values + half])
    means, spreads = group.parameters.constrain(ends[:, :k]), np.exp(ends[:, k : 2 * k])
    names = [*group.parameters.names, *(f"sd({name})" for name in group.parameters.names)]
    meanings = ["group mean"] * k + ["sd of subjects"] * k
    columns = dict(zip(("estimate", "low", "high"), np.hstack([means, spreads]), strict=True))
    quantity = ["group_mean"] * k + ["spread"] * k
    return pd.DataFrame({"parameter": names, **columns, "meaning": meanings, "quantity": quantity})


def with_scales(values: pd.DataFrame, parameters: Parameters) -> pd.DataFrame:
    """Return group values with the scale of each: a parameter's range, or where spreads lie."""
    if values.empty:  # of a model without parameters
        return values
    known = {row["parameter"]: row for row in parameters.table()}
    scales = []
    for name, quantity in zip(values["parameter"], values["quantity"], strict=True):
        of = next((known[word] for word in re.findall(r"\w+", name) if word in known), None)
        natural = quantity in ("group_mean", "median", "subject")
        word = "(-1, 1)" if quantity == "correlation" else ""
        scales.append(word or ("" if of is None else of["support" if natural else "scale"]))
    told = values.copy()
    told.insert(list(told).index("high") + 1, "scale", scales)
    return told


def _median_of(estimates: Array) -> dict[str, Any]:
    """Return the median with its distribution-free 90% interval, from order statistics.

    Of estimates[n, 3] with the ends of their intervals; one subject has its interval.
    """
    n = len(estimates)
    if n < 2:
        values = estimates[0] if n else np.full(3, np.nan)
        row = dict(zip(("estimate", "low", "high"), values.tolist(), strict=True))
        meaning = "the one subject" if n else "no usable subject"
        return {**row, "meaning": meaning, "quantity": "subject"}
    ordered = np.sort(estimates[:, 0])
    rank = max(int(scipy.stats.binom.ppf((1 - MASS) / 2, n, 0.5)), 1)
    return {
        "estimate": float(np.median(ordered)),
        "low": float(ordered[rank - 1]),
        "high": float(ordered[n - rank]),
        "meaning": "median subject",
        "quantity": "median",
    }


def _forest(estimates: Estimates) -> dict[str, Drawing]:
    if not estimates.names:
        return {}
    group = estimates.parameters.set_index("parameter")
    parts = []
    for name in estimates.names:
        rows = estimates.subjects[["subject", name, f"{name}_low", f"{name}_high", "status"]]
        rows = rows.set_axis(["subject", "estimate", "low", "high", "status"], axis=1)
        value = group.loc[name]
        parts.append(
            rows.assign(
                parameter=name, group=value["estimate"], group_low=value["low"],
                group_high=value["high"], meaning=value["meaning"],
            )
        )  # fmt: skip
    return {FORESTS: Drawing(pd.concat(parts, ignore_index=True), draw_subjects)}


def _counts(subjects: pd.DataFrame, trials: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Count fits by status, and answers by outcome."""
    of = {"fits": subjects["status"], "answers": trials["outcome"]}
    return {
        name: {str(status): int(n) for status, n in column.value_counts().items()}
        for name, column in of.items()
    }


def _support(
    task: FitTask, environment: Environment, relived: Relived, fitted: Estimates
) -> Result:
    """Return what the rows support, see `support_of`."""
    question = task.question
    if not fitted.names or not (fitted.subjects["status"] != "failed").any():
        return Result("")
    scores, group, population = support_of(
        relived,
        environment,
        task.data,
        question.method,
        fitted.fit,
        fixed=question.fixed,
        fit_lapse=question.fit_lapse,
        seed=question.seed,
    )
    estimates = scores.tables["Estimates"].set_index("parameter")
    intervals = scores.tables["Intervals"].set_index("parameter")
    names = list(fitted.names)
    table = pd.DataFrame({
        "parameter": names,
        "verdict": [scores.verdicts[name].word for name in names],
        "r": [estimates["r"][name] for name in names],
        "90% covers": [intervals["90% covers"][name] for name in names],
        "reliability": [
            reliability(fitted.subjects, name, task.agent, question.fit_lapse, question.method)
            for name in names
        ],
        "group_mean": group.mean,
        "group_sd": group.sd,
    })  # fmt: skip
    unreadable = unreadable_there(scores, task.unknowns.parameters, fitted.subjects)
    return Result(
        "",
        verdicts={name: scores.verdicts[name] for name in names},
        tables={SUPPORT: table, UNREADABLE: unreadable},
        notes=[ABOUT_SUPPORT, POPULATIONS[population]],
        options={"simulated agents": SIMULATED},
    )


def _checks(
    task: FitTask, environment: Environment, relived: Relived, estimates: Estimates
) -> tuple[Result, Mapping[str, Any] | None]:
    """Return whether sessions simulated from the fit look like the data, and their answers."""
    hierarchical = task.question.method == "hierarchical"
    if estimates.fit is None:
        draws = estimates.subjects[list(estimates.names)].to_numpy(dtype=float)[None]
    else:
        draws = estimates.fit.draws
    usable = np.isfinite(draws).all(axis=(0, 2))
    if not hierarchical:
        usable &= (estimates.subjects["status"] != "failed").to_numpy()
    made = replicated_from(
        relived, environment, task.unknowns, task.agent, draws, usable, task.question.seed
    )
    frame = task.trials.frame
    gathered = None
    if hierarchical and len(frame) * len(made.theta) <= MOST_PREDICTED:
        gathered = PredictedAnswers(made, len(frame))
    checked = check_fit(frame, made, gathered)
    predicted = None if gathered is None else gathered.answers
    if not len(checked):
        return Result(""), predicted
    panels = panels_in(checked)
    panels["p, Holm"] = holm(panels["p"].to_numpy(dtype=float))
    missed = {
        str(title): Verdict(
            "not judged" if task.assumed else "not reproduced",
            (
                reason("p by Holm", panel["p, Holm"], np.nan, LEVEL),
                f"discrepancy {panel['discrepancy']:.1f}, usual {panel['usual']:.1f}",
                *([ASSUMED] if task.assumed else []),
            ),
        )
        for title, panel in panels.iterrows()
        if panel["p, Holm"] <= LEVEL
    }
    shown = panels[["means", "discrepancy", "usual", "p", "p, Holm"]].reset_index()
    return Result(
        "",
        verdicts=missed,
        tables={CHECKS: shown},
        figures={CHECKED: Drawing(checked, draw_panels)},
        notes=[ABOUT_CHECKS, DRAWN_FROM["estimates" if estimates.fit is None else "posterior"]],
        options={"times simulated": len(made.theta), "subjects simulated": len(made.units)},
    ), predicted


def _rivals(
    task: FitTask, environment: Environment, relived: Relived, estimates: Estimates
) -> Result:
    """Return how rivals predict subjects that are left out, if rivals are named."""
    question = task.question
    if not (question.against or question.rivals) or not (estimates.subjects["n_trials"] > 0).any():
        return Result("")
    trials = task.trials
    if question.unit or task.within:
        names = units_of(trials, question.unit or ("subject",))
        relived = Relived.of(trials.frame, environment, names)
        named = trials.frame.assign(subject=names)
        trials = Trials.from_frame(named, environment=environment)
    return compare_rivals(task.agent, trials, relived, environment, question)


def _missing(task: FitTask) -> Result:
    """Count the outcomes of answers, and bound what those that are missing could change."""
    question, trials = task.question, task.by_rows
    if trials.frame["outcome"].isin(ANSWERED).all():
        return Result("")
    rates = pd.DataFrame([vars(rate) for rate in outcome_rates(trials)])
    tables = {OUTCOMES: rates[["outcome", "count", "of", "share", "low", "high"]]}
    if task.agent.given == "action":
        bounds = missing_answer_bounds(
            task.agent,
            trials,
            method="mle" if question.method == "mle" else "map",
            fixed=question.fixed,
            lapse=question.fit_lapse,
            n_actions=task.data.n_actions,
            workers=question.workers,
        ).to_frame(MASS)
        ends = [str(c) for c in bounds if str(c).endswith(("_lowest", "_highest"))]
        rows = bounds.loc[bounds["n_missing"] > 0, ["subject", "n_missing", *ends]]
        tables[BOUNDS] = rows.reset_index(drop=True)
    return Result("", tables=tables, notes=[ABOUT_MISSING])
