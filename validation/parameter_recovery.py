"""Parameter recovery: simulate known minds, fit them, and set truth beside estimate."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.agents import AGENTS, LAPSE, Agent, Parameters, play
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import ENVIRONMENTS, Environment, Trials, make, session_stream, unknown
from knownminds.inference.model_data import ModelData, Unknowns
from knownminds.inference.point import maximum_a_posteriori, maximum_likelihood
from knownminds.inference.posterior import posterior

from .study import Batch, Cell, Progress, Study, collect, finite, run
from .verdicts import Verdict, judge_recovery

Method = Literal["map", "mle", "hierarchical"]
METHODS = ("map", "mle", "hierarchical")
INTERVALS = ("posterior", "laplace")
MASSES = (0.5, 0.8, 0.9, 0.95)
NOT_CONVERGED = "not converged"


@dataclass(frozen=True)
class Score:
    """A number and its Monte-Carlo standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        """Value and error."""
        return f"{self.value:.3f} ({self.error:.3f})"


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


@dataclass(frozen=True)
class Recovery:
    """The outcome of a recovery study.

    Monte-Carlo standard errors are closed: the standard deviation of the statistic's influence
    function over the square root of n (delta method), Agresti and Coull's (1998) for shares. With
    several hierarchical replicates the influences are summed within replicates first, because
    subjects fitted together do not err independently.

    Parameters
    ----------
    rows
        One row per attempted subject: `true_NAME`, `NAME` (estimate), `z_true_NAME`, `z_NAME`,
        `low_90_NAME`, ... , status, message.
    attempted, failed, statuses
        Subjects; those without an estimate (left out of all but the counts); all by status.
    seconds
        Computing time, summed over processes and over the runs of a resumed study.
    """

    study: Study
    parameters: tuple[ParameterScores, ...]
    attempted: int
    failed: int
    statuses: Mapping[str, int]
    notes: tuple[str, ...]
    seconds: float
    versions: Mapping[str, str]
    rows: pd.DataFrame

    @property
    def cell(self) -> Cell:
        """Design, truth and method."""
        return self.study.cells[0]

    def __getitem__(self, name: str) -> ParameterScores:
        """Return the scores of a parameter."""
        for scores in self.parameters:
            if scores.name == name:
                return scores
        raise ValueError(unknown("parameter", name, [s.name for s in self.parameters]))

    def to_frame(self) -> pd.DataFrame:
        """One row per parameter: each score and, as NAME_error, its Monte-Carlo error."""
        rows = []
        for s in self.parameters:
            row: dict[str, Any] = {"parameter": s.name, "n": s.n}
            for name, score in _flat(s).items():
                row[name], row[f"{name}_error"] = score.value, score.error
            rows.append(row | {"verdict": s.verdict.word, "reasons": " ".join(s.verdict.reasons)})
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """The content of `to_json`."""
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
                "verdict": s.verdict.word,
                "reasons": list(s.verdict.reasons),
                "monte_carlo_error": errors,
            }
        content: dict[str, Any] = finite(
            {
                "environment": self.cell.environment,
                "settings": dict(self.cell.settings),
                "model": self.cell.model,
                "method": self.cell.method,
                "options": dict(self.cell.options),
                "truth": dict(self.cell.truth),
                "lapse": self.cell.lapse,
                "subjects": self.study.subjects,
                "replicates": self.study.replicates,
                "sessions": self.cell.sessions,
                "seed": self.study.seed,
                "attempted": self.attempted,
                "failed": self.failed,
                "statuses": dict(self.statuses),
                "notes": list(self.notes),
                "parameters": parameters,
                "seconds": round(self.seconds, 3),
                "versions": dict(self.versions),
            }
        )
        return content

    def to_json(self) -> str:
        """Return design, counts and scores as JSON."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        """One line per parameter, then the counts and the reasons."""
        c, s = self.cell, self.study
        lines = [f"recovery of {c.model} in {c.environment}, {c.method}, {s.subjects} subjects"]
        if s.replicates > 1:
            lines[0] += f" x {s.replicates} replicates"
        head = ("bias", "RMSE", "r", "concordance", "90% cov.", "verdict")
        lines.append(f"{'parameter':<16}" + "".join(f"{h:>16}" for h in head))
        for p in self.parameters:
            scores = (p.bias, p.rmse, p.r, p.concordance, p.coverage["90"], p.verdict.word)
            lines.append(f"{p.name:<16}" + "".join(f"{x!s:>16}" for x in scores))
        counts = ", ".join(f"{n} {status}" for status, n in self.statuses.items())
        lines.append(f"{self.attempted} attempted: {counts} (Monte-Carlo errors in parentheses)")
        return "\n".join([*lines, *self.notes])


def _flat(s: ParameterScores) -> dict[str, Score]:
    flat = {n: getattr(s, n) for n in ("bias", "rmse", "r", "concordance", "shrinkage")}
    flat |= {f"coverage_{mass}": score for mass, score in s.coverage.items()}
    return flat | {f"width_{mass}": score for mass, score in s.width.items()}


def recover(
    environment: Environment | str,
    model: type[Agent] | str,
    *,
    subjects: int = 100,
    replicates: int = 1,
    sessions: int = 1,
    trials: int | None = None,
    method: Method = "map",
    seed: int = 0,
    truth: Mapping[str, float] | None = None,
    lapse: float = 0.0,
    fixed: Mapping[str, float] | None = None,
    fit_lapse: bool = False,
    intervals: Literal["posterior", "laplace"] = "posterior",
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Ask whether a design gives a model's parameters back.

    Subjects are drawn from the model's priors, live the experiment, and are fitted. One of them
    is lived again through the step interface, which must give the same session.

    Parameters
    ----------
    trials
        Trials per session, where the experiment lets one choose; its own number if None.
    method
        "map" and "mle" fit each subject alone, "hierarchical" all of a replicate together.
    truth
        Parameters that are the same for all subjects; the others are drawn.
    lapse, fit_lapse
        Lapse rate of the subjects; whether the fit estimates one.
    fixed
        Parameters held at a value in the fit.
    intervals
        Of "map": from each subject's own posterior (right, and ten times slower) or Laplace's
        normal approximation, which covers too little with few trials; "mle" has only the latter.
    workers, out, progress
        See `study.run`.

    Raises
    ------
    ValueError
        At the first argument that does not fit the rules; nothing is written then.
    """
    place = resolve_environment(environment, trials)
    agent = resolve_model(model)
    agent.check_plays(place)
    _one_of("method", method, METHODS)
    _one_of("intervals", intervals, INTERVALS)
    for name, value in (truth or {}).items():
        _check_value(agent.parameters, name, value)
    if not LAPSE.support.contains(np.asarray(lapse, dtype=float)):
        raise ValueError(f"lapse lies in {LAPSE.support}; got {lapse:g}.")
    unknowns = Unknowns.of(agent, fixed, fit_lapse)
    if len(unknowns.parameters) == 0:
        raise ValueError(f"Recovery needs a parameter to estimate; {agent.name} has none left.")
    if method == "hierarchical" and subjects < 2:
        raise ValueError(f"A hierarchical fit needs at least 2 subjects; got {subjects}.")
    options: dict[str, Any] = {"fixed": dict(fixed or {}), "fit_lapse": fit_lapse}
    if method == "map":
        options["intervals"] = intervals
    cell = Cell(
        place.name,
        place.settings,
        agent.name,
        {name: float(value) for name, value in (truth or {}).items()},
        float(lapse),
        sessions,
        method,
        options,
    )
    study = Study("recover", (cell,), subjects, replicates, seed)
    check_step_loop(study)
    rows = run(study, fit_batch, folder=out, workers=workers, progress=progress)
    return summarise(study, rows, study.identity()["versions"])


def read_recovery(folder: str | os.PathLike[str]) -> Recovery:
    """Read a finished recovery study from its folder; nothing is computed anew."""
    study, identity = Study.read(Path(folder))
    return summarise(study, collect(study, Path(folder)), identity["versions"])


def resolve_environment(environment: Environment | str, trials: int | None = None) -> Environment:
    """Return the experiment, with the given number of trials per session if that can be set."""
    place = make(environment) if isinstance(environment, str) else environment
    if trials is None:
        return place
    if place.name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", place.name, ENVIRONMENTS))
    settings = place.settings
    if "n_trials" in settings:
        return make(place.name, **settings | {"n_trials": trials})
    if "n_visits" not in settings:
        raise ValueError(f"The number of trials of {place.name} is fixed at {place.n_trials}.")
    per_visit = place.n_trials // settings["n_visits"]
    if trials < per_visit or trials % per_visit:
        raise ValueError(
            f"Sessions of {place.name} have a multiple of {per_visit} trials; got {trials}."
        )
    return make(place.name, **settings | {"n_visits": trials // per_visit})


def resolve_model(model: type[Agent] | str) -> type[Agent]:
    """Return the model class of this name; ValueError names the nearest ones."""
    name = model if isinstance(model, str) else model.name
    if name not in AGENTS:
        raise ValueError(unknown("model", name, AGENTS))
    return AGENTS[name]


def _one_of(kind: str, value: str, names: Sequence[str]) -> None:
    if value not in names:
        raise ValueError(unknown(kind, value, names))


def _check_value(parameters: Parameters, name: str, value: float) -> None:
    support = parameters[name].support
    if not support.contains(np.asarray(value, dtype=float)):
        raise ValueError(
            f"{name} lies in {support}; got {value:g}. Choose a value inside its support."
        )


def draw_truth(study: Study, batch: Batch) -> Array:
    """Draw theta[n, P] of the batch's subjects, each from the address (data key, replicate, i)."""
    cell = study.cells[batch.cell]
    parameters = AGENTS[cell.model].parameters
    key = cell.data_key
    z = np.empty((batch.last - batch.first, len(parameters)))
    for row, i in enumerate(range(batch.first, batch.last)):
        rng = session_stream(study.seed, key, batch.replicate, i)
        z[row] = rng.normal(parameters.mean, parameters.sd)
    theta = parameters.constrain(z)
    for name, value in cell.truth.items():
        theta[:, parameters.index(name)] = value
    return theta


def simulate_batch(study: Study, batch: Batch) -> tuple[Array, ModelData]:
    """Return theta[n, P] and what the model reads of the sessions these subjects live."""
    cell = study.cells[batch.cell]
    model, environment = AGENTS[cell.model], cell.make()
    theta = draw_truth(study, batch)
    numbers = range(batch.first, batch.last)
    lived = [
        simulate_sessions(
            model,
            theta,
            environment,
            study.seed,
            address=(cell.data_key, batch.replicate, session),
            subjects=numbers,
            lapse=cell.lapse or None,
        )
        for session in range(cell.sessions)
    ]
    columns = {
        name: np.concatenate([sessions.columns[name] for sessions in lived])
        for name in lived[0].columns
    }
    subject = np.concatenate([sessions.subject for sessions in lived])
    session = np.repeat(np.arange(cell.sessions), len(lived[0].subject))
    separate = [session, *(columns[n].astype(np.int64) for n in model.separate if n in columns)]
    data = ModelData.of_columns(
        model, [str(i) for i in numbers], subject, separate, columns, environment.n_actions
    )
    return theta, data


def check_step_loop(study: Study) -> None:
    """Live the first session of each cell through the step interface as well.

    Raises
    ------
    RuntimeError
        If it differs from the compiled simulation: no study may rest on either then.
    """
    for c, cell in enumerate(study.cells):
        model, environment = AGENTS[cell.model], cell.make()
        theta = draw_truth(study, Batch(c, 0, 0, 1))
        address = (cell.data_key, 0, 0)
        fast = simulate_sessions(
            model, theta, environment, study.seed, address=address, lapse=cell.lapse or None
        )
        agent = model.from_theta(theta[0], lapse=cell.lapse, actions=environment.n_actions)
        slow = play(agent, environment, study.seed, *address, 0).frame
        for name in ("action", "reward"):
            if not np.array_equal(fast.columns[name], slow[name].to_numpy(dtype=float)):
                raise RuntimeError(
                    f"{cell.model} plays differently in {cell.environment} step by step and "
                    f"compiled (column {name}); no study may rest on either."
                )


def fit_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Simulate and fit a batch: the work of a recovery study."""
    cell = study.cells[batch.cell]
    theta, data = simulate_batch(study, batch)
    model, options = AGENTS[cell.model], cell.options
    fixed, lapse = options["fixed"], options["fit_lapse"]
    unknowns = Unknowns.of(model, fixed, lapse)
    true = theta[:, unknowns.columns]
    if lapse:
        true = np.column_stack([true, np.full(len(true), cell.lapse)])
    columns: dict[str, Any] = {"subject": np.arange(batch.first, batch.last)}
    if cell.method == "hierarchical":
        fit = _sample_group(data, cell, study.seed, batch.replicate, threads)
        converged = fit.verdict == "converged"
        columns["status"] = "ok" if converged else NOT_CONVERGED
        columns["message"] = "; ".join(fit.reasons)
        estimate, interval = fit.estimate, fit.interval
        z = fit.z_draws.mean(axis=0)
    else:
        own = None
        if options.get("intervals") == "posterior":
            own = posterior(model, data, fixed=fixed, lapse=lapse, seed=study.seed, workers=threads)
            point = own.fit
        else:
            fitter = maximum_likelihood if cell.method == "mle" else maximum_a_posteriori
            point = fitter(model, data, fixed=fixed, lapse=lapse, workers=threads)
        estimate, interval, z = point.estimate, point.interval, point.z
        status, message = list(point.status), list(point.message)
        if own is not None:
            interval = own.interval
            for i, (before, after) in enumerate(zip(point.status, own.status, strict=True)):
                if after == "failed" != before:
                    status[i], message[i] = after, "the posterior's importance weights are poor"
        columns["status"], columns["message"] = status, message
    ends = {mass: interval(mass) for mass in MASSES}
    parameters = unknowns.parameters
    with np.errstate(divide="ignore"):
        z_true = parameters.unconstrain(true)
    for k, name in enumerate(parameters.names):
        columns |= {f"true_{name}": true[:, k], name: estimate[:, k]}
        columns |= {f"z_true_{name}": z_true[:, k], f"z_{name}": z[:, k]}
        for mass, (low, high) in ends.items():
            columns[f"low_{mass * 100:g}_{name}"] = low[:, k]
            columns[f"high_{mass * 100:g}_{name}"] = high[:, k]
    return pd.DataFrame(columns)


_GROUP_MODELS: dict[str, Any] = {}


def _sample_group(
    data: ModelData, cell: Cell, seed: int, replicate: int, threads: int | None
) -> Any:
    """Sample the group's posterior; a process compiles each model once."""
    from knownminds.inference import GroupModel  # PyMC: only where it is needed

    fixed, lapse = cell.options["fixed"], cell.options["fit_lapse"]
    key = json.dumps([cell.model, fixed, lapse, len(data), data.n_actions], sort_keys=True)
    if key not in _GROUP_MODELS:
        _GROUP_MODELS.clear()
        _GROUP_MODELS[key] = GroupModel.build(data, fixed=fixed, lapse=lapse)
    draws_from = np.random.SeedSequence(seed, spawn_key=(cell.data_key, replicate))
    entropy = int(draws_from.generate_state(1)[0]) // 2  # samplers take 31 bits
    return _GROUP_MODELS[key].sample(data, seed=entropy, cores=threads)


def shuffled(trials: Trials, seed: int = 0) -> Trials:
    """Permute (action, reward) pairs within each session: a negative control.

    Frequencies stay, the order that carries learning goes; what is recovered from it is not
    learning. Stimuli stay where they were.
    """
    rng = session_stream(seed)
    frame = trials.to_frame()
    order = np.arange(len(frame))
    for rows in frame.groupby(["subject", "session"], sort=False).indices.values():
        order[rows] = rng.permutation(rows)
    moved = [c for c in ("action", "response", "reward", "outcome") if c in frame]
    frame[moved] = frame[moved].iloc[order].reset_index(drop=True)
    return Trials.from_frame(frame)


def summarise(study: Study, rows: pd.DataFrame, versions: Mapping[str, str]) -> Recovery:
    """Score the rows of a finished study."""
    cell = study.cells[0]
    model = AGENTS[cell.model]
    parameters = Unknowns.of(model, cell.options["fixed"], cell.options["fit_lapse"]).parameters
    counts = {str(k): int(n) for k, n in rows["status"].value_counts().items()}
    failed = counts.get("failed", 0)
    usable = rows[rows["status"] != "failed"]
    unsound = (failed + counts.get(NOT_CONVERGED, 0)) / len(rows)
    clusters = None
    if cell.method == "hierarchical" and study.replicates > 1:
        clusters = usable["replicate"].to_numpy()
    notes = []
    worst = rows.loc[rows["status"].isin(["failed", NOT_CONVERGED]), "message"].value_counts()
    for message, n in worst.head(3).items():
        notes.append(f"{n} of {len(rows)}: {message}")
    with np.errstate(over="ignore"):  # runaway estimates of maximum likelihood
        scores = tuple(_score(name, usable, unsound, clusters) for name in parameters.names)
    seconds = float(rows["seconds"].sum())
    return Recovery(study, scores, len(rows), failed, counts, tuple(notes), seconds, versions, rows)


def _score(
    name: str, rows: pd.DataFrame, unsound: float, clusters: NDArray[Any] | None
) -> ParameterScores:
    n = len(rows)

    def column(prefix: str) -> Array:
        if f"{prefix}{name}" not in rows:  # not one fit succeeded
            return np.full(n, np.nan)
        return rows[f"{prefix}{name}"].to_numpy(dtype=float)

    true, estimate = column("true_"), column("")
    coverage, width = {}, {}
    for mass in MASSES:
        low, high = column(f"low_{mass * 100:g}_"), column(f"high_{mass * 100:g}_")
        held = ((low <= true) & (true <= high)).astype(float)
        coverage[f"{mass * 100:g}"] = _share(held, clusters)
        span = high - low
        width[f"{mass * 100:g}"] = _mean(span[np.isfinite(span)], None)
    r = _correlation(true, estimate, clusters)
    varies = bool(n > 1 and np.ptp(true) > 0)
    verdict = judge_recovery(
        r.value,
        coverage["90"].value,
        coverage["90"].error,
        n=n,
        failed=unsound,
        varies=varies,
    )
    return ParameterScores(
        name=name,
        n=n,
        bias=_mean(estimate - true, clusters),
        rmse=_root_mean_square(estimate - true, clusters),
        r=r,
        concordance=_concordance(true, estimate, clusters),
        coverage=coverage,
        width=width,
        shrinkage=_shrinkage(column("z_true_"), column("z_"), clusters),
        verdict=verdict,
    )


_NOTHING = Score(np.nan, np.nan)


def _error(influence: Array, clusters: NDArray[Any] | None) -> float:
    """Standard error of a statistic from the influences of n rows, summed within clusters."""
    n = len(influence)
    if clusters is None:
        return float(influence.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], influence - influence.mean())
    groups = len(sums)
    return float(np.sqrt(groups / (groups - 1) * (sums**2).sum()) / n) if groups > 1 else np.nan


def _mean(values: Array, clusters: NDArray[Any] | None) -> Score:
    if len(values) == 0:
        return _NOTHING
    return Score(float(values.mean()), _error(values, clusters))


def _share(held: Array, clusters: NDArray[Any] | None) -> Score:
    n = len(held)
    if n == 0:
        return _NOTHING
    share = (held.sum() + 2) / (n + 4)  # so that 0 and 1 have an error too
    closed = float(np.sqrt(share * (1 - share) / (n + 4)))
    error = closed if clusters is None else np.nanmax([closed, _error(held, clusters)])
    return Score(float(held.mean()), float(error))


def _root_mean_square(values: Array, clusters: NDArray[Any] | None) -> Score:
    square = _mean(values**2, clusters)
    root = float(np.sqrt(square.value))
    return Score(root, square.error / (2 * root) if root > 0 else 0.0)


def _varies(*columns: Array) -> bool:
    return all(len(c) > 2 and np.isfinite(c).all() and np.ptp(c) > 0 for c in columns)


def _correlation(x: Array, y: Array, clusters: NDArray[Any] | None) -> Score:
    if not _varies(x, y):
        return _NOTHING
    zx, zy = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    r = float((zx * zy).mean())
    return Score(r, _error(zx * zy - r * (zx**2 + zy**2) / 2, clusters))


def _concordance(x: Array, y: Array, clusters: NDArray[Any] | None) -> Score:
    if not _varies(x, y):
        return _NOTHING
    dx, dy, apart = x - x.mean(), y - y.mean(), x.mean() - y.mean()
    above = 2 * (dx * dy).mean()
    below = x.var() + y.var() + apart**2
    c = above / below
    turn = 2 * dx * dy - above
    stretch = dx**2 - x.var() + dy**2 - y.var() + 2 * apart * (dx - dy)
    return Score(float(c), _error((turn - c * stretch) / below, clusters))


def _shrinkage(x: Array, y: Array, clusters: NDArray[Any] | None) -> Score:
    if not _varies(x, y):
        return _NOTHING
    dx, dy = x - x.mean(), y - y.mean()
    slope = (dx * dy).mean() / x.var()
    return Score(float(1 - slope), _error(dx * (dy - slope * dx) / x.var(), clusters))
