"""Parameter recovery: simulate known minds, fit them, and set truth beside estimate."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import AGENTS, Parameters, Support
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, session_stream, unknown
from knownminds.environments.record.text_table import text_table
from knownminds.inference.fits.identifiability import identifiability
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import maximum_a_posteriori, maximum_likelihood
from knownminds.inference.posteriors.posterior import posterior
from knownminds.validation.engine.arguments import (
    check_lapse,
    check_truth,
    chosen_options,
    one_of,
    resolve_environment,
    resolve_model,
    selection_of,
)
from knownminds.validation.engine.engine import read, run
from knownminds.validation.engine.group_fits import sample_group
from knownminds.validation.engine.group_law import checked_correlations
from knownminds.validation.engine.monte_carlo import Agreement, Coverage, Score
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
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.sensitivity import (
    Distances,
    WouldHaveFound,
    found_difference,
    replicates_for,
)
from knownminds.validation.engine.study import Batch, Cell, Rows, Study, Thinned
from knownminds.validation.engine.verdicts import LEAST_FITS, Verdict, judge_recovery, judge_region

from .questions import Recover, RecoveryQuestion
from .readable_range import ByTruth, Stretch, about_stretch, unreadable

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit

Method = Literal["map", "mle", "hierarchical"]
Way = Literal["posterior", "laplace", "mle"]  # what is estimated alone, and its intervals
METHODS = ("map", "mle", "hierarchical")
INTERVALS = ("posterior", "laplace")
POPULATIONS: Mapping[str, Mapping[str, Any]] = {
    "prior": {},
    "group": HYPERPRIOR,
    "correlated": CORRELATED,
}
MASSES = (0.5, 0.8, 0.9, 0.95)
NOT_CONVERGED = "not converged"
# Subjects per batch: a quarter of a second with Laplace's intervals, seconds with posteriors.
BATCH, BATCH_WITH_POSTERIORS = 2048, 512
ROWS_KEPT = 20_000
REGIONS = 3


@dataclass(frozen=True)
class ParameterScores:
    """How one parameter was recovered; bias, RMSE, r and intervals are on the natural scale.

    Parameters
    ----------
    bias, rmse
        Mean and root mean square of estimate - truth.
    r, concordance
        Pearson correlation; concordance correlation (Lin 1989), which counts bias as well.
    coverage, width
        Share of the intervals of each mass that hold the truth (a missing interval does not),
        and their mean width.
    shrinkage
        1 - slope of estimate on truth, both on the unconstrained scale: 0 none, 1 complete.
    verdict
        See `verdicts`.
    regions
        The same for thirds of the prior, from low true values to high ones.
    unreadable
        True values at which the parameter cannot be read, see `readable_range`.
    would_have_found
        Errors that so many fits would have found with a chance of 80%; None where that cannot be
        told.
    """

    name: str
    n: int
    bias: Score
    rmse: Score
    r: Score
    concordance: Score
    coverage: Mapping[str, Score]
    width: Mapping[str, Score]
    shrinkage: Score
    verdict: Verdict
    regions: tuple[RegionScores, ...]
    unreadable: tuple[Stretch, ...] = ()
    would_have_found: WouldHaveFound | None = None


@dataclass(frozen=True)
class RegionScores:
    """How a parameter was recovered where its true value lies in a stretch of the prior.

    Parameters
    ----------
    low, high
        Ends of the stretch on the natural scale.
    relative_error
        Root mean square error on the unconstrained scale, in standard deviations of the prior.
    relative_width
        Mean width of the 90% intervals on the unconstrained scale over that of the prior's own; an
        interval that is missing, or wider than the prior's, counts as 1: it says nothing.
    """

    low: float
    high: float
    n: int
    bias: Score
    relative_error: Score
    relative_width: Score
    coverage: Score
    verdict: Verdict


@dataclass(frozen=True)
class CorrelationScores:
    """How the correlation of two parameters over subjects came back, a value for each replicate.

    Parameters
    ----------
    name
        The pair, "alpha, beta".
    n
        Replicates with an estimate.
    bias, rmse, r
        Mean and root mean square of estimate - truth, and their correlation where the truth varies.
    coverage
        Share of the 90% intervals that hold the truth.
    """

    name: str
    n: int
    bias: Score
    rmse: Score
    r: Score
    coverage: Score

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and Monte-Carlo errors."""
        told: dict[str, Any] = {"n": self.n}
        for name in ("bias", "rmse", "r", "coverage"):
            score: Score = getattr(self, name)
            told[name], told[f"{name}_error"] = score.value, score.error
        return told


@dataclass(frozen=True)
class Recovery(Reported):
    """The outcome of a recovery study.

    Parameters
    ----------
    rows
        Attempted subjects, of more than 20,000 only every k-th (the parts in the study's folder
        hold all): `true_NAME`, `NAME` (estimate), `z_true_NAME`, `z_NAME`, `low_90_NAME`, ... ,
        status, message.
    attempted, failed, statuses
        Subjects; those without an estimate (left out of all but the counts); all by status.
    seconds
        Computing time, summed over processes and over the runs of a resumed study.
    identifiability
        What a single session cannot tell, or hardly can, by its expected Fisher information.
    correlations
        Of hierarchical fits of subjects whose parameters go together: how each pair came back.
    """

    study: Study
    cell: Cell
    parameters: tuple[ParameterScores, ...]
    attempted: int
    failed: int
    statuses: Mapping[str, int]
    notes: tuple[str, ...]
    seconds: float
    versions: Mapping[str, str]
    rows: pd.DataFrame = field(repr=False)
    identifiability: tuple[str, ...] = ()
    correlations: tuple[CorrelationScores, ...] = ()

    def __getitem__(self, name: str) -> ParameterScores:
        """Return the scores of a parameter."""
        for scores in self.parameters:
            if scores.name == name:
                return scores
        raise ValueError(unknown("parameter", name, [s.name for s in self.parameters]))

    @property
    def missed(self) -> list[str]:
        """Sentences on what the study could have missed, one for each parameter."""
        return [
            s.would_have_found.sentence(s.name)
            for s in self.parameters
            if s.would_have_found is not None
        ]

    def to_frame(self) -> pd.DataFrame:
        """One row per parameter: each score and, as NAME_error, its Monte-Carlo error."""
        rows = []
        for s in self.parameters:
            row: dict[str, Any] = {"parameter": s.name, "n": s.n}
            for name, score in _flat(s).items():
                row[name], row[f"{name}_error"] = score.value, score.error
            rows.append(row | {"verdict": s.verdict.word, "reasons": " ".join(s.verdict.reasons)})
        return pd.DataFrame(rows)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        parameters = {}
        for s in self.parameters:
            values: dict[str, Any] = {}
            errors: dict[str, Any] = {}
            for name in ("bias", "rmse", "r", "concordance", "shrinkage"):
                score = getattr(s, name)
                values[name], errors[name] = score.value, score.error
            for name in ("coverage", "width"):
                by_mass: Mapping[str, Score] = getattr(s, name)
                values[name] = {mass: score.value for mass, score in by_mass.items()}
                errors[name] = {mass: score.error for mass, score in by_mass.items()}
            parameters[s.name] = {
                "n": s.n,
                **values,
                **s.verdict.to_dict(),
                "regions": [
                    {
                        "low": region.low,
                        "high": region.high,
                        "n": region.n,
                        "bias": region.bias.value,
                        "relative_error": region.relative_error.value,
                        "relative_width": region.relative_width.value,
                        "relative_width_error": region.relative_width.error,
                        "coverage_90": region.coverage.value,
                        **region.verdict.to_dict(),
                    }
                    for region in s.regions
                ],
                "unreadable": s.unreadable,
                "monte_carlo_error": errors,
                "would_have_found": None
                if s.would_have_found is None
                else asdict(s.would_have_found),
            }
        return {
            "environment": self.cell.environment,
            "settings": dict(self.cell.settings),
            "model": self.cell.model,
            "method": self.cell.method,
            "options": dict(self.cell.options),
            "truth": dict(self.cell.truth),
            "lapse": self.cell.lapse,
            "population": population_of(self.cell),
            **({"correlation": told} if (told := self.cell.law.get("correlation")) else {}),
            "subjects": self.cell.subjects,
            "replicates": self.study.replicates,
            "sessions": self.cell.sessions,
            "seed": self.study.seed,
            "attempted": self.attempted,
            "failed": self.failed,
            "statuses": dict(self.statuses),
            "notes": list(self.notes),
            "identifiability": list(self.identifiability),
            "parameters": parameters,
            "correlations": {one.name: one.to_dict() for one in self.correlations},
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """One line per parameter, then the counts and the reasons."""
        c, s = self.cell, self.study
        lines = [f"recovery of {c.model} in {c.environment}, {c.method}, {c.subjects} subjects"]
        if s.replicates > 1:
            lines[0] += f" x {s.replicates} replicates"
        head = ("parameter", "bias", "RMSE", "r", "concordance", "90% cov.", "verdict")
        rows = [
            (p.name, p.bias, p.rmse, p.r, p.concordance, p.coverage["90"], p.verdict.word)
            for p in self.parameters
        ]
        lines += text_table(head, rows, words=True)
        counts = ", ".join(f"{n} {status}" for status, n in self.statuses.items())
        lines.append(f"{self.attempted} attempted: {counts} (Monte-Carlo errors in parentheses)")
        lines += [f"one session: {sentence}" for sentence in self.identifiability]
        lines += about_unreadable(self)
        for pair in self.correlations:
            told = f"bias {pair.bias}, RMSE {pair.rmse}, r {pair.r}, 90% cov. {pair.coverage}"
            lines.append(f"cor({pair.name}) in {pair.n} replicates: {told}")
        lines += self.missed
        return "\n".join([*lines, *self.notes])


def about_unreadable(found: Recovery) -> list[str]:
    """Say at which true values parameters cannot be read."""
    return [about_stretch(p.name, stretch) for p in found.parameters for stretch in p.unreadable]


def _flat(s: ParameterScores) -> dict[str, Score]:
    flat = {n: getattr(s, n) for n in ("bias", "rmse", "r", "concordance", "shrinkage")}
    flat |= {f"coverage_{mass}": score for mass, score in s.coverage.items()}
    return flat | {f"width_{mass}": score for mass, score in s.width.items()}


recover = verb(Recover, __name__)


def compute(question: Recover) -> Recovery:
    """Answer what `recover` is asked."""
    cell = recovery_cell(question, question.subjects, question.sessions, question.trials)
    study = recovery_study((cell,), question, {"trials": cell.make().n_trials})
    return run(study, fit_batch, summarise, **question.running)


def read_recovery(folder: str | os.PathLike[str]) -> Recovery:
    """Read a finished recovery study from its folder; nothing is computed anew."""
    return read(folder, "recover", summarise)


def recovery_cell(
    question: RecoveryQuestion[Any], subjects: int, sessions: int, trials: int | None
) -> Cell:
    """Check what is asked, and write down the design of these sizes."""
    environment = resolve_environment(question.environment, trials)
    model, method = resolve_model(question.model), question.method
    model.check_plays(environment)
    one_of("method", method, METHODS)
    one_of("intervals", question.intervals, INTERVALS)
    one_of("population", question.population, POPULATIONS)
    held = check_truth(model.parameters, question.truth)
    law = dict(POPULATIONS[question.population])
    if known := checked_correlations(model, question.correlation, held):
        if question.population == "correlated":
            raise ValueError(
                "Correlations are drawn, with --population correlated, or given, with "
                "--correlation; got both."
            )
        law["correlation"] = known
    unknowns = Unknowns.of(model, question.fixed, question.fit_lapse)
    if len(unknowns.parameters) == 0:
        raise ValueError(f"Recovery needs a parameter to estimate; {model.name} has none left.")
    if method == "hierarchical" and subjects < 2:
        raise ValueError(f"A hierarchical fit needs at least 2 subjects; got {subjects}.")
    selection_of(model, question.all_trials)
    options: dict[str, Any] = {
        "fixed": dict(question.fixed or {}),
        "fit_lapse": question.fit_lapse,
        "all_trials": question.all_trials,
    }
    if method == "map":
        options["intervals"] = question.intervals
    options |= chosen_options(environment, question.questions, question.adaptive)
    return Cell(
        environment.name,
        environment.settings,
        model.name,
        held,
        check_lapse(question.lapse),
        law,
        sessions=sessions,
        subjects=subjects,
        method=method,
        options=options,
        batch=_batch(subjects, options, method),
    )


def _batch(subjects: int, options: Mapping[str, Any], method: Method) -> int:
    if method == "hierarchical":
        return subjects
    if "questions" in options:
        return CHOSEN_PER_BATCH
    return BATCH_WITH_POSTERIORS if options.get("intervals") == "posterior" else BATCH


def _remarks(cell: Cell) -> tuple[str, ...]:
    """Say what a session of the design cannot tell, whatever the estimator."""
    if "questions" in cell.options:  # of which a session has other ones each time
        return ()
    known = identifiability(
        AGENTS[cell.model],
        cell.make(),
        fixed=cell.options["fixed"],
        lapse=None if cell.options["fit_lapse"] else cell.lapse or None,
        fit_lapse=cell.options["fit_lapse"],
        all_trials=cell.options.get("all_trials", True),
    )
    return known.sentences


def recovery_study(
    cells: tuple[Cell, ...], question: RecoveryQuestion[Any], sizes: Mapping[str, Any]
) -> Study:
    """Return the study of these cells, checked against the step interface."""
    asked = {**question.asked(), **sizes}
    remarks = tuple(_remarks(one) for one in cells)
    seed = question.seed
    study = Study("recover", cells, question.replicates, seed, "subject", asked, remarks)
    check_step_loop(study)
    return study


def fit_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Simulate and fit a batch: the work of a recovery study."""
    cell = study.cells[batch.cell]
    subjects = draw_subjects(study, batch)
    theta = subjects.theta
    model, options = AGENTS[cell.model], cell.options
    selection = selection_of(model, options["all_trials"])
    data = live(study, batch, subjects).data(model, selection=selection)
    fixed, lapse = options["fixed"], options["fit_lapse"]
    unknowns = Unknowns.of(model, fixed, lapse)
    true = theta[:, unknowns.columns]
    if lapse:
        true = np.column_stack([true, np.full(len(true), cell.lapse)])
    if cell.method != "hierarchical":
        way: Way = "mle" if cell.method == "mle" else options["intervals"]
        return fit_known(data, true, way, fixed, lapse, study.seed, threads)
    replicate = int(subjects.replicate[0])
    place = (cell.data_key, replicate)
    together = goes_together(cell) and len(unknowns.parameters) > 1
    fit = sample_group(data, fixed, lapse, study.seed, *place, threads=threads, correlated=together)
    columns: dict[str, Any] = _pairs_of(fit, subjects, cell) if together else {}
    columns["status"] = "ok" if fit.verdict == "converged" else NOT_CONVERGED
    columns["message"] = "; ".join(fit.reasons)
    z = fit.z_draws.mean(axis=0)
    return _compared(unknowns.parameters, true, fit.estimate, z, fit.interval, columns)


def goes_together(cell: Cell) -> bool:
    """Whether the parameters of a cell's subjects go together."""
    return bool(cell.law.get("correlated") or cell.law.get("correlation"))


def population_of(cell: Cell) -> str:
    """Name the population that a cell's subjects come from."""
    if cell.law.get("correlated"):
        return "correlated"
    return "group" if "group" in cell.law else "prior"


def _pairs_of(fit: HierarchicalFit, subjects: Subjects, cell: Cell) -> dict[str, float]:
    """Return truth, estimate and 90% interval of each correlation of a group."""
    found: dict[str, float] = {}
    known: Mapping[str, float] = cell.law.get("correlation", {})
    for pair in fit.pairs:
        drawn = subjects.terms.get(f"cor({pair})")
        truth = known.get(pair, 0.0) if drawn is None else float(drawn[0])
        values = fit.posterior["correlation"].sel(pair=pair).to_numpy()
        low, high = np.quantile(values, [0.05, 0.95])
        found |= {f"true cor({pair})": truth, f"cor({pair})": float(values.mean())}
        found |= {f"low cor({pair})": float(low), f"high cor({pair})": float(high)}
    return found


@dataclass
class _Pairs:
    """What is gathered about correlations while the parts go by."""

    agreement: dict[str, Agreement] = field(default_factory=dict)
    coverage: dict[str, Coverage] = field(default_factory=dict)

    def add(self, usable: pd.DataFrame) -> None:
        """Take in subjects, of which each replicate has the same values."""
        first = usable.drop_duplicates("replicate")
        for name in (str(c) for c in usable if str(c).startswith("true cor(")):
            pair = name.removeprefix("true ")
            truth, value = (first[c].to_numpy(dtype=float) for c in (name, pair))
            ends = [
                first[f"{end} {pair}"].to_numpy(dtype=float)[:, None] for end in ("low", "high")
            ]
            self.agreement.setdefault(pair, Agreement()).add(truth, value)
            self.coverage.setdefault(pair, Coverage((0.9,))).add(truth, *ends)

    def scores(self) -> tuple[CorrelationScores, ...]:
        """Score each pair."""
        return tuple(
            CorrelationScores(
                pair.removeprefix("cor(").removesuffix(")"),
                found.n,
                found.bias,
                found.root_mean_square,
                found.correlation,
                self.coverage[pair].shares["90"],
            )
            for pair, found in self.agreement.items()
        )


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
    true
        What is estimated, on the natural scale, [N, K]; the lapse rate last where it is.
    way
        "mle", or "map" with intervals from each subject's "posterior" or by "laplace".
    """
    unknowns = Unknowns.of(data.model, fixed, lapse)
    own = None
    if way == "posterior":
        own = posterior(data.model, data, fixed=fixed, lapse=lapse, seed=seed, workers=threads)
        point = own.fit
    else:
        fitter = maximum_likelihood if way == "mle" else maximum_a_posteriori
        point = fitter(data.model, data, fixed=fixed, lapse=lapse, workers=threads)
    interval, status, message = point.interval, list(point.status), list(point.message)
    if own is not None:
        interval = own.interval
        for i, (before, after) in enumerate(zip(point.status, own.status, strict=True)):
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
        if acts.any() and not (acts & tells).any():  # each trial asked for the one or the other
            keys.append(acts)
    for rows in frame.groupby(keys, sort=False).indices.values():
        order[rows] = rng.permutation(rows)
    moved = [c for c in ("action", "response", "reward", "outcome") if c in frame]
    frame[moved] = frame[moved].iloc[order].reset_index(drop=True)
    return Trials.from_frame(frame)


def summarise(rows: Rows, cell: int = 0) -> Recovery:
    """Score the rows of a cell of a finished study."""
    study, design = rows.study, rows.study.cells[cell]
    options = design.options
    model = AGENTS[design.model]
    parameters = Unknowns.of(model, options["fixed"], options["fit_lapse"]).parameters
    clustered = design.method == "hierarchical" and study.replicates > 1
    gathered = [_Gathered.of(parameters, k, clustered) for k in range(len(parameters))]
    again = _Again.of(study, design)
    pairs = _Pairs()
    counts: dict[str, int] = {}
    messages: dict[str, int] = {}
    seconds = 0.0
    kept = Thinned(study.units(cell), ROWS_KEPT)
    for table in rows.tables(cell=cell):
        kept.add(table)
        _count(counts, table["status"])
        unsound = table["status"].isin(["failed", NOT_CONVERGED])
        _count(messages, table.loc[unsound, "message"])
        seconds += float(table["seconds"].sum())
        usable = table[table["status"] != "failed"]
        with np.errstate(over="ignore", invalid="ignore"):  # runaways of maximum likelihood
            for one in gathered:
                one.add(usable)
        pairs.add(usable)
    attempted, failed = study.units(cell), counts.get("failed", 0)
    unsound_share = (failed + counts.get(NOT_CONVERGED, 0)) / attempted
    worst = sorted(messages.items(), key=lambda item: -item[1])[:3]
    notes = [f"{n} of {attempted}: {message}" for message, n in worst]
    if model.selection is not None:
        notes.insert(0, model.selection.told(options.get("all_trials", True)))
    return Recovery(
        study=study,
        cell=design,
        parameters=_scored(gathered, unsound_share, attempted, again),
        attempted=attempted,
        failed=failed,
        statuses=counts,
        notes=tuple(notes),
        seconds=seconds,
        versions=rows.versions,
        rows=kept.frame,
        identifiability=study.remarks[cell],
        correlations=pairs.scores(),
    )


def scores_of(rows: pd.DataFrame, parameters: Parameters) -> tuple[ParameterScores, ...]:
    """Score subjects that `fit_known` fitted, each its own replicate."""
    unsound = float((rows["status"] == "failed").mean())
    usable = rows[rows["status"] != "failed"].assign(replicate=0)
    gathered = [_Gathered.of(parameters, k, clustered=False) for k in range(len(parameters))]
    with np.errstate(over="ignore", invalid="ignore"):  # runaways of maximum likelihood
        for one in gathered:
            one.add(usable)
        return _scored(gathered, unsound, len(rows), _Again("subject", 1))


def _scored(
    gathered: Sequence[_Gathered], unsound: float, attempted: int, again: _Again
) -> tuple[ParameterScores, ...]:
    """Score each parameter; where one cannot be read is judged over all of them together."""
    lost = unreadable([one.by_truth for one in gathered])
    return tuple(
        replace(one.scores(unsound, attempted, again), unreadable=stretches)
        for one, stretches in zip(gathered, lost, strict=True)
    )


def _count(counts: dict[str, int], values: pd.Series[Any]) -> None:
    for value, n in values.value_counts().items():
        counts[str(value)] = counts.get(str(value), 0) + int(n)


@dataclass(frozen=True)
class _Again:
    """What more can be simulated where a verdict is open, and how many fits one of it brings.

    Subjects who are fitted one by one make a single recovery longer. A group's size belongs to the
    design, and so it does where designs are compared: there it is replicates.
    """

    unit: str
    size: int

    @classmethod
    def of(cls, study: Study, cell: Cell) -> _Again:
        alone = cell.method != "hierarchical" and study.replicates == len(study.cells) == 1
        return cls("subject", 1) if alone else cls("replicate", cell.subjects)


@dataclass
class _Gathered:
    """All that is gathered about one parameter while the parts go by."""

    name: str
    support: Support
    edges: Array  # of the regions, on the unconstrained scale
    natural: Array  # the same on the natural scale
    sd: float  # of the prior
    agreement: Agreement
    on_z: Agreement
    coverage: Coverage
    regions: list[tuple[Agreement, Agreement, Agreement, Coverage]]
    by_truth: ByTruth
    distances: Distances

    @classmethod
    def of(cls, parameters: Parameters, k: int, clustered: bool) -> _Gathered:
        parameter = list(parameters)[k]
        inner = parameter.mean + parameter.sd * scipy.stats.norm.ppf(
            np.arange(1, REGIONS) / REGIONS
        )
        edges = np.concatenate([[-np.inf], inner, [np.inf]])
        support = parameter.support
        natural = np.concatenate([[support.lower], support.constrain(inner), [support.upper]])

        def fresh() -> tuple[Agreement, Agreement, Agreement, Coverage]:
            three = (Agreement(clustered) for _ in range(3))
            return (*three, Coverage((0.9,), clustered))  # type: ignore[return-value]

        return cls(
            parameter.name,
            support,
            edges,
            natural,
            parameter.sd,
            Agreement(clustered),
            Agreement(clustered),
            Coverage(MASSES, clustered),
            [fresh() for _ in range(REGIONS)],
            ByTruth(support, parameter.mean, parameter.sd, clustered),
            Distances(),
        )

    def add(self, usable: pd.DataFrame) -> None:
        name = self.name
        if len(usable) == 0:
            return
        cluster = usable["replicate"].to_numpy()

        def column(prefix: str) -> Array:
            return usable[f"{prefix}{name}"].to_numpy(dtype=float)

        true, estimate = column("true_"), column("")
        z_true, z = column("z_true_"), column("z_")
        low = np.column_stack([column(f"low_{mass * 100:g}_") for mass in MASSES])
        high = np.column_stack([column(f"high_{mass * 100:g}_") for mass in MASSES])
        self.agreement.add(true, estimate, cluster)
        self.on_z.add(z_true, z, cluster)
        self.coverage.add(true, low, high, cluster)
        ninety = MASSES.index(0.9)
        lower, upper = low[:, ninety], high[:, ninety]
        self.distances.add(true, lower, upper)
        with np.errstate(invalid="ignore"):
            span = self.support.unconstrain(upper) - self.support.unconstrain(lower)
        width = span / (2 * scipy.stats.norm.ppf(0.95) * self.sd)
        width = np.where(width < 1, width, 1.0)
        self.by_truth.add(z_true, width, cluster)
        region = np.searchsorted(self.edges[1:-1], z_true, side="right")
        for k, (natural, on_z, widths, coverage) in enumerate(self.regions):
            here = region == k
            natural.add(true[here], estimate[here], cluster[here])
            on_z.add(z_true[here], z[here], cluster[here])
            widths.add(np.zeros(here.sum()), width[here], cluster[here])
            coverage.add(true[here], lower[here, None], upper[here, None], cluster[here])

    def scores(self, unsound: float, attempted: int, again: _Again) -> ParameterScores:
        shares, r = self.coverage.shares, self.agreement.correlation
        verdict = judge_recovery(
            r.value,
            shares["90"].value,
            shares["90"].error,
            n=self.agreement.n,
            r_error=r.error,
            failed=unsound,
            attempted=attempted,
            varies=self.agreement.truth_varies,
            finite=self.agreement.finite,
            unit=again.unit,
            size=again.size,
        )
        return ParameterScores(
            name=self.name,
            n=self.agreement.n,
            bias=self.agreement.bias,
            rmse=self.agreement.root_mean_square,
            r=r,
            concordance=self.agreement.concordance,
            coverage=shares,
            width=self.coverage.widths,
            shrinkage=self.on_z.shrinkage,
            verdict=verdict,
            regions=tuple(self._region(k, again) for k in range(REGIONS)),
            would_have_found=self._would_have_found(again),
        )

    def _would_have_found(self, again: _Again) -> WouldHaveFound | None:
        bias, shrinkage = self.agreement.bias.error, self.on_z.shrinkage.error
        n = self.agreement.n
        if n < LEAST_FITS or not (bias > 0 and shrinkage > 0):
            return None
        return WouldHaveFound(
            bias=found_difference(bias),
            shrinkage=found_difference(shrinkage),
            interval_width=self.distances.found_narrowing(0.9, self.coverage.shares["90"].error),
            half=replicates_for(0.5, 1.0, max(1, round(n / again.size))),
            unit=again.unit,
        )

    def _region(self, k: int, again: _Again) -> RegionScores:
        natural, on_z, widths, coverage = self.regions[k]
        error, width = on_z.root_mean_square, widths.bias
        relative = Score(error.value / self.sd, error.error / self.sd)
        # Of what is simulated more, a third falls into a region.
        n, size = natural.n, again.size / REGIONS
        verdict = judge_region(width.value, n=n, error=width.error, unit=again.unit, size=size)
        low, high = float(self.natural[k]), float(self.natural[k + 1])
        held = coverage.shares["90"]
        return RegionScores(low, high, natural.n, natural.bias, relative, width, held, verdict)
