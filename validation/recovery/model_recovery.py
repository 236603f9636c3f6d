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

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from knownminds.agents import AGENTS, Agent, Selection
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, session_stream, unknown
from knownminds.environments.record.result import Result
from knownminds.environments.record.text_table import text_table
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
)
from knownminds.validation.engine.engine import read, run
from knownminds.validation.engine.population import Lived, check_step_loop, draw_subjects, live
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.sensitivity import found_share, trials_for_share
from knownminds.validation.engine.study import Batch, Cell, Rows, Study
from knownminds.validation.engine.verdicts import (
    ABOVE_CHANCE,
    CONFUSED_SHARE,
    LEAST_DATA_SETS,
    NOTICED,
    RECOVERABLE_SHARE,
    RECOVERY,
    Reading,
    Verdict,
    combined,
    read_against,
)

from .questions import Confuse

Criterion = Literal["aic", "bic", "cv", "loo"]
# What each is called, and whether a larger score is the better one.
CRITERIA: Mapping[str, tuple[str, bool]] = {
    "aic": ("AIC", False),
    "bic": ("BIC", False),
    "cv": ("cross-validation", True),
    "loo": ("PSIS-LOO", True),
}
LEFT_OUT = ("cv", "loo")  # criteria that leave sequences out

TIE = 1e-5  # scores this close are equal: optima are found to within 1e-6 per subject
MASS = 0.95
INVERSION_DRAWS = 4_000
BATCH = 256  # subjects: some 3 s of simulating and fitting with all criteria


@dataclass(frozen=True)
class Shares:
    """A matrix of shares with its 95% intervals; rows are simulated, columns best fitted.

    Parameters
    ----------
    value, low, high
        [M, M]; NaN in an inversion matrix where a model was never the best.
    """

    value: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Confusion(Result):
    """Which model won the data sets of which, by one criterion.

    Parameters
    ----------
    criterion
        "aic", "bic", "cv" or "loo".
    models
        Names of the rows and columns.
    counts
        Data sets of model i (row) for which model j (column) was best, [M, M].
    undecided, failed, unreliable
        Data sets of each model with equal best scores; with a fit that failed; decided, but with
        a Pareto k above 0.7 (of "loo" alone), [M].
    confusion
        p(best fit = j | simulated = i); failed and undecided data sets are in the denominator.
    inversion
        p(simulated = i | best fit = j), the models being equally probable beforehand.
    verdicts
        One for each model.
    """

    criterion: str
    models: tuple[str, ...]
    counts: NDArray[np.int64]
    undecided: NDArray[np.int64]
    failed: NDArray[np.int64]
    unreliable: NDArray[np.int64]
    confusion: Shares
    inversion: Shares
    verdicts: tuple[Verdict, ...]

    @property
    def n(self) -> NDArray[np.int64]:
        """Data sets of each model, [M]."""
        total: NDArray[np.int64] = self.counts.sum(axis=1) + self.undecided + self.failed
        return total

    @classmethod
    def of(
        cls,
        criterion: str,
        models: Sequence[str],
        counts: NDArray[np.int64],
        undecided: NDArray[np.int64],
        failed: NDArray[np.int64],
        unreliable: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Confusion:
        """Turn counts into shares, intervals and verdicts."""
        n = counts.sum(axis=1) + undecided + failed
        confusion, inversion = confusion_shares(counts, n), inversion_shares(counts, n, rng)
        verdicts = tuple(
            judge_model(models, i, n[i], confusion, inversion, undecided[i], failed[i])
            for i in range(len(models))
        )
        return cls(
            criterion,
            tuple(models),
            counts,
            undecided,
            failed,
            unreliable,
            confusion,
            inversion,
            verdicts,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of simulated and fitted model."""
        rows = []
        for i, simulated in enumerate(self.models):
            for j, fitted in enumerate(self.models):
                row: dict[str, Any] = {
                    "criterion": self.criterion,
                    "simulated": simulated,
                    "fitted": fitted,
                    "n": self.n[i],
                    "best": self.counts[i, j],
                }
                for prefix, shares in (("", self.confusion), ("inversion_", self.inversion)):
                    row[prefix + "share"] = shares.value[i, j]
                    row[prefix + "low"] = shares.low[i, j]
                    row[prefix + "high"] = shares.high[i, j]
                for name in ("undecided", "failed", "unreliable"):
                    row[name] = getattr(self, name)[i]
                rows.append(row | {"verdict": self.verdicts[i].word if i == j else ""})
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        """Both matrices, rows simulated and columns best fitted, and the verdicts."""
        title, _ = CRITERIA[self.criterion]
        m, named = len(self.models), list(enumerate(self.models))
        lines = []
        for told, shares in (
            ("p(best fit | simulated)", self.confusion),
            ("p(simulated | best fit)", self.inversion),
        ):
            lines.append(f"{title}: {told}")
            cells = [[name, *(_cell(shares, i, j) for j in range(m))] for i, name in named]
            lines += text_table(("simulated", *self.models), cells)
        if not (self.undecided.any() or self.failed.any()):
            lines.append(f"{self.n[0]} data sets of each model, none undecided, none failed")
        else:
            counts = [(name, self.n[i], self.undecided[i], self.failed[i]) for i, name in named]
            lines += text_table(("simulated", "data sets", "undecided", "failed"), counts)
        for name, verdict in zip(self.models, self.verdicts, strict=True):
            lines.append(f"{name}: {verdict}")
        if self.unreliable.any():
            lines.append(
                f"{self.unreliable.sum()} of {self.n.sum()} data sets rest on a Pareto k above "
                f"{LARGEST_PARETO_K}."
            )
        return "\n".join(lines)


def _cell(shares: Shares, i: int, j: int) -> str:
    value, low, high = (matrix[i, j] for matrix in (shares.value, shares.low, shares.high))
    return "-" if np.isnan(value) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def confusion_shares(counts: NDArray[np.int64], n: NDArray[np.int64]) -> Shares:
    """Return counts [M, M] as shares of the data sets n [M] of each row, with Wilson's intervals.

    (Wilson 1927.)
    """
    low, high = np.empty(counts.shape), np.empty(counts.shape)
    for i, j in np.ndindex(counts.shape):
        interval = scipy.stats.binomtest(int(counts[i, j]), int(n[i])).proportion_ci(
            MASS, method="wilson"
        )
        low[i, j], high[i, j] = interval.low, interval.high
    return Shares(counts / n[:, None], low, high)


def inversion_shares(
    counts: NDArray[np.int64], n: NDArray[np.int64], rng: np.random.Generator
) -> Shares:
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
    return Shares(value, low, high)


def judge_model(
    models: Sequence[str],
    i: int,
    n: int,
    confusion: Shares,
    inversion: Shares,
    undecided: int,
    failed: int,
) -> Verdict:
    """Judge whether data of model number i can be told from those of its rivals.

    Parameters
    ----------
    n, undecided, failed
        Data sets of this model: all, those without a winner, those with a failed fit.
    """
    if n < LEAST_DATA_SETS:
        return Verdict("not judged", (f"Data sets: {n}; {LEAST_DATA_SETS} are needed.",))
    name = models[i]
    reasons = [f"Its data are best fitted by itself in {_cell(confusion, i, i)}."]
    if np.isnan(inversion.value[i, i]):
        reasons.append("It was never the best.")
    else:
        reasons.append(f"Where it is the best, it is the truth in {_cell(inversion, i, i)}.")
    for j, other in enumerate(models):
        if j != i and confusion.low[i, j] > CONFUSED_SHARE:
            reasons.append(f"Data of {name} are taken for {other} in {_cell(confusion, i, j)}.")
    if undecided:
        reasons.append(f"{undecided} of {n} data sets are explained equally well by the best.")
    if failed:
        reasons.append(f"One model or several could not be fitted to {failed} of {n} data sets.")
    least = 1 / len(models) + ABOVE_CHANCE
    readings = [_read_share(shares, i, least) for shares in (confusion, inversion)]
    word, more = combined(RECOVERY, readings, n, unit="data set")
    if more is not None:
        reasons.append(
            f"Intervals that hold {RECOVERABLE_SHARE} (recoverable) or {least:.2f} (weak) leave "
            "the word open."
        )
        reasons.append(str(more))
    return Verdict(word, tuple(reasons), more)


def _read_share(shares: Shares, i: int, least: float) -> Reading:
    """Hold a share on the diagonal against its thresholds, falling; none is the worst of all."""
    value, low, high = (float(m[i, i]) for m in (shares.value, shares.low, shares.high))
    if np.isnan(value):
        return Reading(2, 2, {})
    return read_against(-value, -high, -low, (-RECOVERABLE_SHARE, -least))


@dataclass(frozen=True)
class ModelRecovery(Reported):
    """The outcome of a model-recovery study.

    Parameters
    ----------
    confusions
        One for each criterion.
    attempted, failed
        Data sets; those that failed by at least one criterion.
    notes
        The most frequent reasons of failures, and how often sequences had to be left out by
        fitting anew.
    seconds
        Computing time, summed over processes and over the runs of a resumed study.
    """

    study: Study
    models: tuple[str, ...]
    criteria: tuple[str, ...]
    confusions: tuple[Confusion, ...]
    attempted: int
    failed: int
    notes: tuple[str, ...]
    seconds: float
    versions: Mapping[str, str] = field(repr=False)

    def __getitem__(self, criterion: str) -> Confusion:
        """Return the matrices of a criterion."""
        one_of("criterion", criterion, self.criteria)
        return self.confusions[self.criteria.index(criterion)]

    @property
    def missed(self) -> str:
        """Say which confusions so many data sets would have found."""
        n = self.study.replicates
        share = found_share(n, CONFUSED_SHARE)
        if np.isnan(share):
            return f"With {n} data sets of each model no confusion, however common, is named."
        half = (share + CONFUSED_SHARE) / 2
        return (
            f"With {n} data sets of each model, a rival that truly takes at least {share:.1%} of "
            f"them is named with a chance of {NOTICED:.0%}; for one that takes {half:.1%} about "
            f"{trials_for_share(half, CONFUSED_SHARE):,} are needed."
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per criterion and pair of simulated and fitted model."""
        return pd.concat([c.to_frame() for c in self.confusions], ignore_index=True)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        cell = self.study.cells[0]
        matrices: dict[str, dict[str, Any]] = {"confusion": {}, "inversion": {}, "verdicts": {}}
        counts: dict[str, dict[str, Any]] = {"undecided": {}, "failures": {}, "unreliable": {}}
        for c in self.confusions:
            for name in ("confusion", "inversion"):
                matrices[name][c.criterion] = _nested(c, getattr(c, name))
            matrices["verdicts"][c.criterion] = {
                model: verdict.to_dict()
                for model, verdict in zip(c.models, c.verdicts, strict=True)
            }
            for name, numbers in (
                ("undecided", c.undecided),
                ("failures", c.failed),
                ("unreliable", c.unreliable),
            ):
                counts[name][c.criterion] = dict(zip(c.models, numbers.tolist(), strict=True))
        return {
            "environment": cell.environment,
            "settings": dict(cell.settings),
            "models": list(self.models),
            "criteria": list(self.criteria),
            "sequences": ["session", *cell.options["separate"]]
            if "separate" in cell.options
            else None,
            "lapse_in": list(cell.options["lapse_in"]),
            "all_trials": cell.options.get("all_trials", True),
            "truth": {c.model: dict(c.truth) for c in self.study.cells if c.truth},
            "lapse": cell.lapse,
            "subjects": cell.subjects,
            "replicates": self.study.replicates,
            "sessions": cell.sessions,
            "seed": self.study.seed,
            "attempted": self.attempted,
            "failed": self.failed,
            **matrices,
            **counts,
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """Both matrices for each criterion, and the verdicts."""
        cell, replicates = self.study.cells[0], self.study.replicates
        subjects = "1 subject" if cell.subjects == 1 else f"{cell.subjects} subjects"
        lines = [
            f"model recovery in {cell.environment}, {replicates} data sets of {subjects} per model "
            "(95% intervals in brackets)"
        ]
        for confusion in self.confusions:
            lines += ["", str(confusion)]
        lines += ["", self.missed]
        lines += [f"{self.attempted} data sets attempted, {self.failed} failed", *self.notes]
        return "\n".join(lines)


def _nested(c: Confusion, shares: Shares) -> dict[str, Any]:
    return {
        simulated: {
            fitted: {
                "count": int(c.counts[i, j]),
                "share": shares.value[i, j],
                "low": shares.low[i, j],
                "high": shares.high[i, j],
            }
            for j, fitted in enumerate(c.models)
        }
        for i, simulated in enumerate(c.models)
    }


confuse = verb(Confuse, __name__)


def compute(question: Confuse) -> ModelRecovery:
    """Answer what `confuse` is asked."""
    return run(confusion_study(question), score_batch, summarise, **question.running)


def read_confusion(folder: str | os.PathLike[str]) -> ModelRecovery:
    """Read a finished model-recovery study from its folder; nothing is computed anew."""
    return read(folder, "confuse", summarise)


def confusion_study(question: Confuse) -> Study:
    """Check what `confuse` is asked and return the study."""
    environment = resolve_environment(question.environment, question.trials)
    rivals = [resolve_model(model) for model in question.models]
    names = [model.name for model in rivals]
    check_rivals(rivals, environment)
    _check_criteria(question.criteria)
    held = truth_by_model(rivals, question.truth)
    subjects, sessions = question.subjects, question.sessions
    options: dict[str, Any] = {
        "rivals": names,
        "criteria": list(question.criteria),
        "all_trials": question.all_trials,
    }
    selection = common_selection(rivals, question.all_trials)

    def study_with(options: Mapping[str, Any]) -> Study:
        cells = tuple(
            Cell(
                environment.name,
                environment.settings,
                model.name,
                held[model.name],
                check_lapse(question.lapse),
                sessions=sessions,
                subjects=subjects,
                options=options,
                # Whole data sets in each part: their scores are summed there.
                batch=subjects * max(1, BATCH // max(subjects, 1)),
            )
            for model in rivals
        )
        asked = question.asked() | {"trials": environment.n_trials}
        seed = question.seed
        return Study("confuse", cells, question.replicates, seed, "subject", asked)

    # What the rivals have in common shows in the sessions of a single subject.
    study = study_with(options)
    lived = live(study, Batch(0, 0, 1), draw_subjects(study, Batch(0, 0, 1)))
    data = [lived.data(model, selection=selection) for model in rivals]
    options["lapse_in"] = [d.model.name for d in data if question.fit_lapse and _heeds_lapse(d)]
    if not set(LEFT_OUT).isdisjoint(question.criteria):
        stimuli = _stimuli(lived, rivals)
        options["separate"] = list(kept_apart(data, stimuli))
        _folds(lived, options["separate"])
    study = study_with(options)
    check_step_loop(study)
    return study


def check_rivals(rivals: Sequence[type[Agent]], environment: Environment) -> None:
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
    rivals: Sequence[type[Agent]], truth: Mapping[str, float] | None
) -> dict[str, dict[str, float]]:
    """Give each model those of the true values that are its own."""
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


def common_selection(rivals: Sequence[type[Agent]], all_trials: bool) -> Selection | None:
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


def _about_trials(rivals: Sequence[type[Agent]], all_trials: bool) -> list[str]:
    """Say which trials were fitted where that is not all without saying."""
    told = [model.selection for model in rivals if model.selection is not None][:1]
    if told and not all_trials and common_selection(rivals, all_trials) is None:
        went = ", ".join(model.name for model in rivals if model.remembers)
        return [f"All trials were fitted, not the {told[0].trials} alone: {went} go by all trials."]
    return [selection.told(all_trials) for selection in told]


def _heeds_lapse(data: ModelData) -> bool:
    """Say whether a lapse rate changes anything: it does not where all choices are guesses."""
    parameters = data.model.parameters
    for z in probes(parameters):
        theta = np.broadcast_to(parameters.constrain(z), (len(data), len(parameters)))
        _, gradient = data.log_likelihood(theta, np.full(len(data), 0.1))
        if np.any(gradient[:, -1]):
            return True
    return False


def _stimuli(lived: Lived, rivals: Sequence[type[Agent]]) -> dict[str, NDArray[np.int64]]:
    names = dict.fromkeys(name for model in rivals for name in model.separate)
    return {name: lived.columns[name].astype(np.int64) for name in names if name in lived.columns}


def _folds(lived: Lived, separate: Sequence[str]) -> Folds:
    columns = {"session": lived.session}
    columns |= {name: lived.columns[name].astype(np.int64) for name in separate}
    names = list(map(str, range(lived.n_subjects)))
    return Folds.of_columns(lived.subject, columns, names)


def score_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Simulate a batch and score every rival: the work of a model-recovery study.

    Columns are CRITERION_MODEL (NaN where the fit failed), pareto_k_MODEL and refitted_MODEL
    for "loo", and the true parameters.
    """
    cell = study.cells[batch.cell]
    options = cell.options
    subjects = draw_subjects(study, batch)
    lived = live(study, batch, subjects)
    folds = _folds(lived, options["separate"]) if "separate" in options else None
    true = {f"true_{n}": subjects.theta[:, k] for k, n in enumerate(_names(cell))}
    columns: dict[str, Any] = {}
    why: list[list[str]] = [[] for _ in range(len(batch))]
    rivals = [AGENTS[rival] for rival in options["rivals"]]
    selection = common_selection(rivals, options["all_trials"])
    for rival in options["rivals"]:
        data = lived.data(AGENTS[rival], selection=selection)
        scores, reasons = score_model(data, folds, options, threads)
        columns |= {f"{name}_{rival}": values for name, values in scores.items()}
        for i, reason in reasons:
            why[i].append(f"{rival}: {reason}")
    status = ["failed" if reasons else "ok" for reasons in why]
    message = ["; ".join(dict.fromkeys(reasons)) for reasons in why]
    return pd.DataFrame(true | columns | {"status": status, "message": message})


def _names(cell: Cell) -> tuple[str, ...]:
    return AGENTS[cell.model].parameters.names


def score_model(
    data: ModelData, folds: Folds | None, options: Mapping[str, Any], threads: int | None
) -> tuple[dict[str, Array], list[tuple[int, str]]]:
    """Score one rival by all the criteria; also each subject it failed for, and why."""
    criteria, lapse = options["criteria"], data.model.name in options["lapse_in"]
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
        scores["cv"] = left_out.log_score
        reasons += [(i, why) for i, why in enumerate(left_out.message) if why]
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


def summarise(rows: Rows) -> ModelRecovery:
    """Name the winners of a finished study and count them."""
    study = rows.study
    options = study.cells[0].options
    models, criteria = tuple(options["rivals"]), tuple(options["criteria"])
    tallies = {name: _Tally.of(name, len(models)) for name in criteria}
    messages: dict[str, int] = {}
    seconds, refitted, failed = 0.0, 0, 0
    for c in range(len(study.cells)):
        for table in _data_sets(rows, c):
            seconds += float(table["seconds"].sum())
            _, data_set = np.unique(table["replicate"], return_inverse=True)
            lost = np.zeros(data_set.max() + 1, dtype=bool)
            for tally in tallies.values():
                lost |= tally.add(c, table, data_set, models)
            failed += int(lost.sum())
            for message in table.loc[table["status"] == "failed", "message"]:
                messages[message] = messages.get(message, 0) + 1
            for name in models:
                if f"refitted_{name}" in table:
                    refitted += int(np.nansum(table[f"refitted_{name}"]))
    worst = sorted(messages.items(), key=lambda item: -item[1])[:3]
    n_subjects = sum(study.units(c) for c in range(len(study.cells)))
    notes = _about_trials([AGENTS[name] for name in models], options.get("all_trials", True))
    notes += [f"{n} of {n_subjects} subjects: {message}" for message, n in worst]
    if refitted:
        notes.append(
            f"{refitted} sequences with a Pareto k above {LARGEST_PARETO_K} were predicted by a "
            "posterior drawn without them."
        )
    return ModelRecovery(
        study=study,
        models=models,
        criteria=criteria,
        confusions=tuple(t.confusion(models, study.seed) for t in tallies.values()),
        attempted=study.replicates * len(models),
        failed=failed,
        notes=tuple(notes),
        seconds=seconds,
        versions=rows.versions,
    )


def _data_sets(rows: Rows, cell: int) -> Iterator[pd.DataFrame]:
    """Go through the parts of a cell, rearranged so that no data set lies in two of them."""
    size = rows.study.cells[cell].subjects
    left = pd.DataFrame()
    for part in rows.tables(cell=cell):
        table = pd.concat([left, part], ignore_index=True) if len(left) else part
        whole = len(table) - len(table) % size
        left = table[whole:]
        if whole:
            yield table[:whole]


@dataclass
class _Tally:
    """Winners by one criterion, counted while the parts go by."""

    criterion: str
    counts: NDArray[np.int64]
    undecided: NDArray[np.int64]
    failed: NDArray[np.int64]
    unreliable: NDArray[np.int64]

    @classmethod
    def of(cls, criterion: str, m: int) -> _Tally:
        def none() -> NDArray[np.int64]:
            return np.zeros(m, dtype=np.int64)

        return cls(criterion, np.zeros((m, m), dtype=np.int64), none(), none(), none())

    def add(
        self, c: int, table: pd.DataFrame, data_set: NDArray[np.int64], models: Sequence[str]
    ) -> NDArray[np.bool_]:
        """Count the data sets of a part of cell c; return which of them failed."""
        # A part in which every row failed has no scores at all.
        scores = table.reindex(columns=[f"{self.criterion}_{name}" for name in models])
        totals = np.zeros((int(data_set.max()) + 1, len(models)))
        np.add.at(totals, data_set, scores.to_numpy(dtype=float))
        lost: NDArray[np.bool_] = np.any(np.isnan(totals), axis=1)
        winner = best_of(totals, larger=CRITERIA[self.criterion][1])
        self.counts[c] += np.bincount(winner[winner >= 0], minlength=len(models))
        self.failed[c] += int(lost.sum())
        self.undecided[c] += int(((winner < 0) & ~lost).sum())
        if self.criterion == "loo":
            k = table.reindex(columns=[f"pareto_k_{name}" for name in models]).to_numpy(dtype=float)
            poor = np.any(~(k <= LARGEST_PARETO_K), axis=1)
            any_poor = np.bincount(data_set, poor.astype(float)) > 0
            self.unreliable[c] += int((any_poor & (winner >= 0)).sum())
        return lost

    def confusion(self, models: Sequence[str], seed: int) -> Confusion:
        return Confusion.of(
            self.criterion,
            models,
            self.counts,
            self.undecided,
            self.failed,
            self.unreliable,
            session_stream(seed),
        )


def best_of(totals: Array, *, larger: bool) -> NDArray[np.int64]:
    """Return the column with the best total in each row; -1 where two are equal or one is NaN.

    Parameters
    ----------
    totals
        Scores of the data sets by model, [n, M].
    larger
        Whether larger scores are better.
    """
    scores = totals if larger else -totals
    best = scores.max(axis=1, keepdims=True)
    # A score of minus infinity has lost, and equals nothing.
    tied = (scores >= best - TIE) & np.isfinite(best)
    return np.where(tied.sum(axis=1) == 1, scores.argmax(axis=1), -1).astype(np.int64)
