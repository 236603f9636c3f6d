"""Model recovery: simulate each of several models, fit all of them, and see which is best.

A data set is one replicate of one model: its subjects' scores are summed, and the rival with the
best sum wins. Scores that agree to within TIE decide nothing (*undecided*); a data set that one
of the rivals could not be fitted to is *failed*. Both stay in the denominator. The verdicts are
those of `verdicts`.

The two shares are p(best fit = model | simulated = model), the diagonal of the confusion matrix,
and p(simulated = model | best fit = model), that of the inversion matrix (Wilson and Collins
2019): a criterion that always names the same model gives it a perfect first and a poor second.

Intervals of the confusion matrix are Wilson's. Those of the inversion matrix, which takes all
models as equally probable beforehand, come from its posterior: each share p(best fit = j |
simulated = i) is Beta(count + 1/2, n - count + 1/2) after Jeffreys' prior, the shares in a column
rest on different data sets and are independent, and 4,000 draws of them give the quantiles of
p(j | i) / sum over i' of p(j | i').
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from knownminds.agents import AGENTS, Model, Selection
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, session_stream, unknown
from knownminds.environments.record.outcome_rates import wilson
from knownminds.inference.fits.cross_validation import Folds, cross_validate, kept_apart, probes
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.inference.posteriors.arviz_scores import LARGEST_PARETO_K
from knownminds.inference.posteriors.comparison import leave_one_sequence_out
from knownminds.validation.engine.arguments import (
    check_lapse,
    check_truth,
    one_of,
    resolve_environment,
    resolve_model,
    selection_of,
    several,
)
from knownminds.validation.engine.cells import Cell, CellAnalysis, Population
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.population import PlayedSessions, draw_subjects, live
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Score, share
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.engine.verdicts import (
    ABOVE_CHANCE,
    CONFUSED_SHARE,
    LEAST_DATA_SETS,
    RECOVERABLE_SHARE,
    RECOVERY,
    JudgedNumber,
    Verdict,
    judge,
    too_few,
)
from knownminds.validation.pages import figures as draw
from knownminds.validation.power.pilot import pilot_of

from .questions import Confuse

# What each is called, how rivals are fitted, and whether a larger score is the better one.
CRITERIA: Mapping[str, tuple[str, str, bool]] = {
    "aic": ("AIC", "maximum likelihood", False),
    "bic": ("BIC", "maximum likelihood", False),
    "cv": ("cross-validation", "maximum likelihood", True),
    "loo": ("PSIS-LOO", "posteriors", True),
}
LEFT_OUT = ("cv", "loo")  # criteria that leave sequences out
SIZES = ("subjects", "sessions", "trials")
EACH = "simulated subjects"  # what a unit is: all models are fitted to it
NAMED = 3  # models that heads name; more have numbers

TIE = 1e-5  # scores this close are equal: optima are exact to within 1e-6 per subject
MASS = 0.95
INVERSION_DRAWS = 4_000
BATCH = 256  # subjects: some 3 s of simulating and fitting with all criteria
NOTES = (
    f"share: p(best fit | simulated), with {MASS:.0%} intervals of Wilson; inversion: p(simulated "
    "| best fit), the models being equally probable beforehand. Data sets without a winner "
    "(undecided) and data sets that one of the models could not be fitted to (failed) stay in the "
    "denominators. poor Pareto k: decided data sets of PSIS-LOO with a k above "
    f"{LARGEST_PARETO_K}.",
    f"Recoverable: both shares on the diagonals are {RECOVERABLE_SHARE} or more; weak: at least "
    f"{ABOVE_CHANCE} above chance; where the interval of one holds a limit, the verdict is between "
    f"two words. confused: the interval of that share begins above {CONFUSED_SHARE}. At least "
    f"{LEAST_DATA_SETS} data sets are needed.",
)


@dataclass(frozen=True)
class ModelChoice:
    """How the best of several models is found, as `Analysis` says how a measure is tested.

    Parameters
    ----------
    criterion : One of `CRITERIA`.
    """

    criterion: str

    @property
    def larger(self) -> bool:
        """Whether larger scores are better."""
        return CRITERIA[self.criterion][2]

    def best(self, totals: Array) -> NDArray[np.int64]:
        """Return the column with the best total in each row; -1 where two are equal, one is NaN.

        Parameters
        ----------
        totals : Scores of the data sets by model, [n, M].
        """
        scores = totals if self.larger else -totals
        best = scores.max(axis=1, keepdims=True)
        # A score of minus infinity has lost, and equals nothing.
        tied = (scores >= best - TIE) & np.isfinite(best)
        return np.where(tied.sum(axis=1) == 1, scores.argmax(axis=1), -1).astype(np.int64)

    def __str__(self) -> str:
        name, fits, _ = CRITERIA[self.criterion]
        end = "largest" if self.larger else "smallest"
        return f"{name}: {fits} of each subject; the model with the {end} sum over subjects is best"


def confusion_study(question: Confuse) -> Study:
    """Check the options and return the study: a cell for each design and model."""
    environment = resolve_environment(question.environment)
    rivals = [resolve_model(model) for model in question.models]
    check_rivals(rivals, environment)
    _check_criteria(question.criteria)
    held = truth_by_model(rivals, question.truth)
    pilot = pilot_of(
        question.pilot, question.unconverged, environment.name, rivals, {"--set": question.truth}
    )
    grids = {name: several(getattr(question, name)) for name in SIZES}
    cells = []
    for subjects, sessions, trials in product(*grids.values()):
        if min(subjects, sessions) < 1:
            raise ValueError(f"Subjects and sessions are at least 1; got {subjects}, {sessions}.")
        there = resolve_environment(environment, trials)
        analysis = _analysis(question, there, rivals, sessions)
        cells += [
            Cell(
                there.name,
                there.settings,
                model.name,
                held[model.name],
                check_lapse(question.lapse),
                population=pilot.population
                if pilot is not None and pilot.model == model.name
                else Population(),
                sessions=sessions,
                subjects=subjects,
                analysis=analysis,
                batch=subjects * max(1, BATCH // subjects),
            )
            for model in rivals
        ]
    if not cells:
        raise ValueError("A design needs subjects, sessions and trials; got none of one of them.")
    lengths = list(dict.fromkeys(cell.make().n_trials for cell in cells))
    content = question.option_values() | grids | {"trials": lengths}
    return Study("confuse", tuple(cells), question.replicates, question.seed, "subject", content)


def _analysis(
    question: Confuse, environment: Environment, rivals: Sequence[type[Model]], sessions: int
) -> CellAnalysis:
    """Return how the rivals are compared; what they have in common shows in a single subject."""
    selection = common_selection(rivals, question.all_trials)
    first = Cell(environment.name, environment.settings, rivals[0].name, sessions=sessions)
    study = Study("confuse", (first,), seed=question.seed)
    played = live(study, Batch(0, 0, 1), draw_subjects(study, Batch(0, 0, 1)))
    data = [played.data(model, selection=selection) for model in rivals]
    separate = None
    if not set(LEFT_OUT).isdisjoint(question.criteria):
        separate = list(kept_apart(data, _stimuli(played, rivals)))
        _folds(played, separate)
    return CellAnalysis(
        rivals=[model.name for model in rivals],
        criteria=list(question.criteria),
        all_trials=question.all_trials,
        lapse_in=[d.model.name for d in data if question.fit_lapse and _heeds_lapse(d)],
        separate=separate,
    )


def check_rivals(rivals: Sequence[type[Model]], environment: Environment) -> None:
    """Raise ValueError unless several models, each named once, play in an experiment."""
    names = [model.name for model in rivals]
    if len(names) < 2:
        got = f"only {names[0]}" if names else "none"
        raise ValueError(
            f"Model recovery sets at least 2 models against each other; got {got}. "
            "Name another one (--model)."
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"Each rival is named once; got {twice} twice. Leave one out.")
    for model in rivals:
        model.check_plays(environment)


def _check_criteria(criteria: Sequence[str]) -> None:
    if not criteria:
        raise ValueError(
            f"Models are compared by at least one criterion of {', '.join(CRITERIA)}; got none."
        )
    for name in criteria:
        one_of("criterion", name, CRITERIA)
    if len(set(criteria)) < len(criteria):
        raise ValueError(f"Each criterion is named once; got {', '.join(criteria)}.")


def truth_by_model(
    rivals: Sequence[type[Model]], truth: Mapping[str, float] | None
) -> dict[str, dict[str, float]]:
    """Give each model those of the true values that it has."""
    known = dict.fromkeys(name for model in rivals for name in model.parameters.names)
    for name in truth or {}:
        if name not in known:
            raise ValueError(unknown("parameter", name, known))
    return {
        model.name: check_truth(
            model.parameters,
            {n: v for n, v in (truth or {}).items() if n in model.parameters.names},
        )
        for model in rivals
    }


def common_selection(rivals: Sequence[type[Model]], all_trials: bool) -> Selection | None:
    """Return the trials to which all rivals are fitted, so that their scores can be compared.

    Those to which one of them is fitted alone; all trials where a rival goes by earlier ones,
    which would be left out.
    """
    selections = [model.selection for model in rivals if model.selection is not None]
    if all_trials and not selections:
        selection_of(rivals[0], all_trials)
    if all_trials or not selections or any(model.remembers for model in rivals):
        return None
    return selections[0]


def _heeds_lapse(data: ModelData) -> bool:
    """Say whether a lapse rate changes anything: it does not where all choices are guesses."""
    parameters = data.model.parameters
    for z in probes(parameters):
        theta = np.broadcast_to(parameters.constrain(z), (len(data), len(parameters)))
        _, gradient = data.log_likelihood(theta, np.full(len(data), 0.1))
        if np.any(gradient[:, -1]):
            return True
    return False


def _stimuli(
    sessions: PlayedSessions, rivals: Sequence[type[Model]]
) -> dict[str, NDArray[np.int64]]:
    names = dict.fromkeys(name for model in rivals for name in model.separate)
    return {
        name: sessions.columns[name].astype(np.int64) for name in names if name in sessions.columns
    }


def _folds(sessions: PlayedSessions, separate: Sequence[str]) -> Folds:
    columns = {"session": sessions.session}
    columns |= {name: sessions.columns[name].astype(np.int64) for name in separate}
    names = list(map(str, range(sessions.n_subjects)))
    return Folds.of_columns(sessions.subject, columns, names)


def score_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Simulate a batch and score every rival: the work of a model-recovery study.

    Columns are CRITERION_MODEL (NaN where the fit failed), pareto_k_MODEL and refitted_MODEL
    for "loo", and the true parameters.
    """
    cell = study.cells[batch.cell]
    analysis = cell.analysis
    subjects = draw_subjects(study, batch)
    sessions = live(study, batch, subjects)
    folds = None if analysis.separate is None else _folds(sessions, analysis.separate)
    true = {f"true_{n}": subjects.theta[:, k] for k, n in enumerate(_names(cell))}
    columns: dict[str, Any] = {}
    why: list[list[str]] = [[] for _ in range(len(batch))]
    rivals = [AGENTS[rival] for rival in analysis.rivals]
    selection = common_selection(rivals, analysis.all_trials)
    for rival in analysis.rivals:
        data = sessions.data(AGENTS[rival], selection=selection)
        scores, reasons = score_model(data, folds, analysis, threads)
        columns |= {f"{name}_{rival}": values for name, values in scores.items()}
        for i, reason in reasons:
            why[i].append(f"{rival}: {reason}")
    status = ["failed" if reasons else "ok" for reasons in why]
    message = ["; ".join(dict.fromkeys(reasons)) for reasons in why]
    return pd.DataFrame(true | columns | {"status": status, "message": message})


def _names(cell: Cell) -> tuple[str, ...]:
    return AGENTS[cell.model].parameters.names


def score_model(
    data: ModelData, folds: Folds | None, analysis: CellAnalysis, threads: int | None
) -> tuple[dict[str, Array], list[tuple[int, str]]]:
    """Score one rival by all the criteria; also each subject it failed for, and why."""
    criteria, lapse = analysis.criteria, data.model.name in analysis.lapse_in
    scores: dict[str, Array] = {}
    reasons: list[tuple[int, str]] = []
    if not {"aic", "bic"}.isdisjoint(criteria):
        fit = maximum_likelihood(data.model, data, lapse=lapse, workers=threads)
        failed = np.array(fit.status) == "failed"
        scores |= {
            name: np.where(failed, np.nan, getattr(fit, name))
            for name in ("aic", "bic")
            if name in criteria
        }
        reasons += [(i, fit.message[i]) for i in np.flatnonzero(failed).tolist()]
    if "cv" in criteria and folds is not None:
        left_out = cross_validate(data, folds, lapse=lapse, workers=threads)
        scores["cv"] = left_out["log_score"].to_numpy()
        reasons += [(i, why) for i, why in enumerate(left_out["message"]) if why]
    if "loo" in criteria and folds is not None:
        loo = leave_one_sequence_out(data, folds, lapse=lapse, workers=threads)
        scores |= {
            "loo": loo.elpd,
            "pareto_k": loo.pareto_k,
            "refitted": loo.refitted.astype(float),
        }
        lost = np.flatnonzero(np.isnan(loo.elpd)).tolist()
        reasons += [(i, "no posterior to leave sequences out from") for i in lost]
    return scores, reasons


# What the rows say


@dataclass(frozen=True)
class Winners:
    """Which model won the data sets of which, by one criterion in one design, [M] or [M, M].

    Parameters
    ----------
    counts : Data sets of model i (row) for which model j (column) was best.
    undecided, failed, unreliable : Data sets of each model with equal best scores; with a fit that
        failed; decided, but with a Pareto k above 0.7 (of "loo" alone).
    """

    counts: NDArray[np.int64]
    undecided: NDArray[np.int64]
    failed: NDArray[np.int64]
    unreliable: NDArray[np.int64]

    @property
    def n(self) -> NDArray[np.int64]:
        """Data sets of each model."""
        total: NDArray[np.int64] = self.counts.sum(axis=1) + self.undecided + self.failed
        return total


def winners(tables: Sequence[pd.DataFrame], criterion: str, models: Sequence[str]) -> Winners:
    """Count the winners of each model's data sets by one criterion.

    Parameters
    ----------
    tables : The rows of each model's data sets, a row for each subject.
    """
    m = len(models)
    counts = np.zeros((m, m), dtype=np.int64)
    undecided, failed, unreliable = (np.zeros(m, dtype=np.int64) for _ in range(3))
    for i, table in enumerate(tables):
        # A study in which every row failed has no scores at all.
        scores = table.reindex(columns=[f"{criterion}_{name}" for name in models]).astype(float)
        totals = scores.groupby(table["replicate"]).sum().to_numpy(copy=True)
        lost = scores.isna().any(axis=1).groupby(table["replicate"]).any().to_numpy()
        totals[lost] = np.nan
        winner = ModelChoice(criterion).best(totals)
        counts[i] = np.bincount(winner[winner >= 0], minlength=m)
        failed[i] = lost.sum()
        undecided[i] = ((winner < 0) & ~lost).sum()
        if criterion == "loo":
            k = table.reindex(columns=[f"pareto_k_{name}" for name in models]).astype(float)
            poor = (~(k <= LARGEST_PARETO_K)).any(axis=1).groupby(table["replicate"]).any()
            unreliable[i] = (poor.to_numpy() & (winner >= 0)).sum()
    return Winners(counts, undecided, failed, unreliable)


@dataclass(frozen=True)
class ShareMatrix:
    """A matrix of shares with its 95% intervals; rows are simulated, columns best fitted.

    Parameters
    ----------
    value, low, high : [M, M]; NaN in an inversion matrix where a model was never the best.
    """

    value: Array
    low: Array
    high: Array


def confusion_shares(counts: NDArray[np.int64], n: NDArray[np.int64]) -> ShareMatrix:
    """Return counts [M, M] as shares of the data sets n [M] of each row, with Wilson's intervals.

    (Wilson 1927.)
    """
    low, high = wilson(counts, n[:, None], MASS)
    return ShareMatrix(counts / n[:, None], low, high)


def inversion_shares(
    counts: NDArray[np.int64], n: NDArray[np.int64], rng: np.random.Generator
) -> ShareMatrix:
    """Return p(simulated | best fit) under equal prior probabilities, [M, M].

    Quantiles of the posterior under Jeffreys' prior (module docstring); as is usual, an interval
    reaches 0 where the share is 0 and 1 where it is 1 (Brown, Cai and DasGupta 2001).
    """
    share = counts / n[:, None]
    total = share.sum(axis=0)
    with np.errstate(invalid="ignore"):
        value = share / total
    draws = rng.beta(counts + 0.5, n[:, None] - counts + 0.5, (INVERSION_DRAWS, *counts.shape))
    draws /= draws.sum(axis=1, keepdims=True)
    low, high = np.quantile(draws, [0.5 - MASS / 2, 0.5 + MASS / 2], axis=0)
    # fmin and fmax: the ends stay what they are where the value is NaN
    low, high = np.fmin(low, value), np.fmax(high, value)
    never = total == 0
    low[:, never], high[:, never] = np.nan, np.nan
    return ShareMatrix(value, low, high)


def judge_model(won: Winners, i: int, confusion: ShareMatrix, inversion: ShareMatrix) -> Verdict:
    """Judge whether data of model number i can be distinguished from those of its rivals."""
    n = int(won.n[i])
    if n < LEAST_DATA_SETS:
        return too_few(n, LEAST_DATA_SETS, "data sets")
    least = 1 / len(won.n) + ABOVE_CHANCE
    held = [
        _held("best fitted by itself", confusion, i, least),
        _held("the truth where best", inversion, i, least),
    ]
    return judge(RECOVERY, held, n, unit="data set")


def _held(name: str, shares: ShareMatrix, i: int, least: float) -> JudgedNumber:
    """Hold a share on the diagonal against its thresholds, falling; none is the worst of all."""
    value, low, high = (float(m[i, i]) for m in (shares.value, shares.low, shares.high))
    limits = (-RECOVERABLE_SHARE, -least)
    if np.isnan(value):
        return JudgedNumber(limits, 0.0, 0.0, 0.0, f"{name} never")
    text = f"{name} {value:.3f} [{low:.3f}, {high:.3f}], limits {least:.3g}, {RECOVERABLE_SHARE}"
    return JudgedNumber(limits, -value, -high, -low, text)


def say(rows: Rows) -> Result:
    """Name the winners of a study and count them, by design and criterion."""
    study, first = rows.study, rows.study.cells[0]
    models, criteria = list(first.analysis.rivals), list(first.analysis.criteria)
    grid = len(study.cells) > len(models)
    pairs, counts, verdicts, figures = [], [], {}, {}
    lost: set[tuple[int, int]] = set()
    for start in range(0, len(study.cells), len(models)):
        cell = study.cells[start]
        tables = [_whole(rows.of(start + i), cell.subjects) for i in range(len(models))]
        if min(map(len, tables)) == 0:
            continue
        size = dict(zip(SIZES, (cell.subjects, cell.sessions, cell.make().n_trials), strict=True))
        for criterion in criteria:
            title = CRITERIA[criterion][0]
            design: dict[str, Any] = {"criterion": title, **(size if grid else {})}
            won = winners(tables, criterion, models)
            confusion = confusion_shares(won.counts, won.n)
            inversion = inversion_shares(won.counts, won.n, session_stream(study.seed))
            for i, model in enumerate(models):
                verdict = judge_model(won, i, confusion, inversion)
                verdicts[", ".join(map(str, (model, *design.values())))] = verdict
                itself = share(int(won.counts[i, i]), int(won.n[i]))
                counts.append({**design, "model": model, **_counts(won, i, criterion, itself)})
                counts[-1]["verdict"] = verdict.word
            pair_rows = _pairs(models, won, confusion, inversion)
            pairs.append(pair_rows.assign(**design))
            caption = (
                f"Confusion (left) and inversion matrix by {', '.join(map(str, design.values()))}"
            )
            figures[f"{caption}. Rows: simulated; columns: best fit."] = Drawing(
                pair_rows, draw_matrices
            )
        for i, table in enumerate(tables):
            failed = table.loc[table["status"] == "failed", "replicate"].unique()
            lost |= {(start + i, int(replicate)) for replicate in failed}
    if not pairs:
        return rows.result(_title(first, models), EACH)
    names = ["criterion", *(SIZES if grid else ())]
    return rows.result(
        _title(first, models),
        EACH,
        verdicts=verdicts,
        tables={
            "Shares best fitted, by the model simulated (rows) and fitted (columns)": _matrix(
                pairs, models, names
            ),
            "Data sets by model": pd.DataFrame(counts).set_index([*names, "model"]),
            "Shares": pd.concat(pairs).set_index([*names, "simulated", "fitted"]),
        },
        figures=figures,
        attempted=study.replicates * len(study.cells),
        failed=len(lost),
        notes=[*_about_selection(models, first.analysis.all_trials), *NOTES],
        options={**study.options, "analysis": [str(ModelChoice(name)) for name in criteria]},
    )


def _title(cell: Cell, models: Sequence[str]) -> str:
    return f"Does {cell.environment} tell {', '.join(models[:-1])} and {models[-1]} apart?"


def _whole(table: pd.DataFrame, subjects: int) -> pd.DataFrame:
    """Return the rows of those data sets all of whose subjects are there."""
    sizes = table.groupby("replicate")["replicate"].transform("size")
    return table[sizes == subjects]


def _counts(won: Winners, i: int, criterion: str, itself: Score) -> dict[str, Any]:
    numbers = {
        "data sets": int(won.n[i]),
        "best fitted by itself": itself,
        "undecided": int(won.undecided[i]),
        "failed": int(won.failed[i]),
    }
    return numbers | ({"poor Pareto k": int(won.unreliable[i])} if criterion == "loo" else {})


def _pairs(
    models: Sequence[str], won: Winners, confusion: ShareMatrix, inversion: ShareMatrix
) -> pd.DataFrame:
    """Return a row for each pair of simulated and fitted model."""
    rows = []
    for (i, simulated), (j, fitted) in product(enumerate(models), enumerate(models)):
        row: dict[str, Any] = {"simulated": simulated, "fitted": fitted}
        row["best"] = int(won.counts[i, j])
        for name, shares in (("share", confusion), ("inversion", inversion)):
            row[name] = float(shares.value[i, j])
            row[f"{name} low"], row[f"{name} high"] = shares.low[i, j], shares.high[i, j]
        row["confused"] = i != j and bool(confusion.low[i, j] > CONFUSED_SHARE)
        rows.append(row)
    return pd.DataFrame(rows)


def _about_selection(models: Sequence[str], all_trials: bool) -> list[str]:
    """Say which trials were fitted where that is not all without saying."""
    rivals = [AGENTS[name] for name in models]
    chosen = [model.selection for model in rivals if model.selection is not None][:1]
    if chosen and not all_trials and common_selection(rivals, all_trials) is None:
        return ["All trials were fitted, since one of the models goes by all of them."]
    return [selection.describe(all_trials) for selection in chosen]


def _matrix(
    pairs: Sequence[pd.DataFrame], models: Sequence[str], names: Sequence[str]
) -> pd.DataFrame:
    """Return the confusion matrices: if there are many models, heads have their numbers."""
    whole = pd.concat(pairs)
    if len(models) > NAMED:
        numbers = {model: f"{i} {model}" for i, model in enumerate(models, start=1)}
        whole["simulated"] = whole["simulated"].map(numbers)
        whole["fitted"] = "fitted " + whole["fitted"].map(numbers).str.partition(" ")[0]
    matrix = whole.pivot_table("share", [*names, "simulated"], "fitted", sort=False, dropna=False)
    return matrix.rename_axis(columns=None)


def draw_matrices(pairs: pd.DataFrame) -> Figure:
    """Draw the confusion and the inversion matrix, with the share in each cell."""
    models = list(dict.fromkeys(pairs["simulated"]))
    m = len(models)
    figure, axes = draw.panels(2)
    figure.set_size_inches(3.4 + 1.5 * m, 1.5 + 0.5 * m)
    for axis, name, title in zip(
        axes,
        ("share", "inversion"),
        ("p(best fit | simulated)", "p(simulated | best fit)"),
        strict=True,
    ):
        values = pairs[name].to_numpy().reshape(m, m)
        draw.heat_map(axis, values, models if name == "share" else [""] * m, models)
        draw.entitle(axis, title)
        axis.set_xlabel("best fit")
    axes[0].set_ylabel("simulated")
    return figure
