"""All of magnitude estimation as tidy frames: accuracy, observers, cues and consistency.

Each function reads the prepared answers of the paper; `Answers.once` keeps what it returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.environments import CONDITIONS, Trials
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.magnitudes.consistency_score import REPLICATES, prior_weight
from knownminds.inference.magnitudes.cue_combination import (
    REFERENCES,
    CueCombination,
    cue_combination,
)
from knownminds.inference.magnitudes.evidence_calibration import calibrated_evidence
from knownminds.inference.magnitudes.factor_evidence import FACTORS, factor_evidence
from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
    BOTH,
    IMAGE,
    MULTIMODAL,
    TEXT,
    MagnitudeAnswers,
)
from knownminds.inference.magnitudes.magnitude_composite import (
    MASS,
    ROUNDS,
    MagnitudeComposite,
    magnitude_composite,
)
from knownminds.inference.magnitudes.normalised_error import (
    bias_and_variance,
    error_by_items,
    normalised_error,
)
from knownminds.inference.magnitudes.observer_fits import fit_observers
from knownminds.inference.magnitudes.observer_misfit import misfit_and_nested
from knownminds.inference.posteriors.posterior import posterior
from knownminds.inference.resampling import percentile_interval
from knownminds.validation.magnitudes.evidence_error import REPLAYS, evidence_errors
from knownminds.validation.pages.views import WHO

from .paper import Answers, joined

# Errors from fewer answers are too small: with 12, evidence of two like sides differs in up to .20.
LEAST_REPLAYED = 50
# Conditions and modalities of which claims need the error of evidence.
REPLAYED = (BASE, TEXT), (BASE, IMAGE), (BASE, BOTH), ("numeric", BOTH)
KEY = [WHO, "task", "condition", "modality"]
LINES = 39  # straight lines beside each evidence: two of 40 at or above it make p .05
PREPARED = ["task", "answers_to", "played"]  # columns that the paper adds to trials
# Columns of frames that may have no row.
CUES = [
    WHO, "task", "condition", "reference", "n", "left_out", "matched", "text_weight", "weight_low",
    "weight_high", "error", "reference_error", "efficiency", "low", "high", "reason",
]  # fmt: skip
FITS = [*KEY, "variant", "aic", "status"]
EVIDENCE = [*KEY, "evidence", "low", "high", "p", "lines"]
OBSERVED = [WHO, "over", "parameter", "value", "low", "high", "status", "trials"]
OBSERVER, ALL, OBSERVER_MASS = "bayesian_observer", "all cells", 0.95


def whole_modality(task: str) -> str:
    """Return the modality with all that a task shows."""
    return BOTH if task in MULTIMODAL else TEXT


def estimates(data: Answers) -> MagnitudeAnswers:
    """Return the answers apart by participant, task, condition and modality, with bootstraps."""
    rounds = int(data.about.option("bootstraps", ROUNDS))
    trials = data.trials.drop(columns=PREPARED)
    return MagnitudeAnswers.read(trials, WHO, rounds=rounds, seed=data.about.seed)


def composites(data: Answers) -> dict[str, MagnitudeComposite]:
    """Return accuracy, efficiency and consistency of each participant.

    The accuracy of a task with two modalities is that of the answers to both. The static observer
    behind the consistency score has a prior mean for each window.
    """
    answers = data.once(estimates)
    how = {
        "mass": data.about.option("mass", MASS),
        "replicates": data.about.option("replicates", REPLICATES),
        "seed": data.about.seed,
    }
    return {who: magnitude_composite(answers, who, **how) for who in answers.participants}


def composite(data: Answers) -> pd.DataFrame:
    """Return one row per participant and part (A, E, C, S): value, low, high, missing."""
    return joined(one.to_frame() for one in data.once(composites).values())


def consistency(data: Answers) -> pd.DataFrame:
    """Return one row per participant and comparison: prior weights, shift, score."""
    return joined(
        one.consistency.to_frame().assign(**{WHO: who})
        for who, one in data.once(composites).items()
    )


def shifts(data: Answers) -> pd.DataFrame:
    """Return one row per participant and set of comparisons: shift with low, high and p_value."""
    return joined(
        one.consistency.effects.assign(**{WHO: who}) for who, one in data.once(composites).items()
    )


def known_observers(data: Answers) -> pd.DataFrame:
    """Return one row per participant and known observer, in the same design with the same noise.

    Expected score, sd, and reaching: the share that scores at least what the participant does.
    """
    columns = [WHO, "score", "low", "high", "observer", "expected", "sd", "reaching"]
    rows = []
    for who, one in data.once(composites).items():
        own = one.consistency
        score = float(own.total[0])
        for observer, scores in own.known.items():
            expected = float(scores.mean()), float(scores.std(ddof=1))
            reaching = float((scores >= score).mean())
            rows.append((who, score, own.low, own.high, observer, *expected, reaching))
    return pd.DataFrame(rows, columns=columns)


def fits(data: Answers) -> pd.DataFrame:
    """Return one row per cell and variant of an observer: aic, status, and its parameters."""
    usable, keys = _by_cell(data.once(estimates).frame)
    if not len(usable):
        return pd.DataFrame(columns=FITS)
    rows: list[dict[str, Any]] = []
    for variant, fit in fit_observers(Trials.from_frame(usable)).items():
        for i, subject in enumerate(fit.subjects):
            aic = float(fit.aic[i]) if fit.status[i] != "failed" else np.nan
            row = dict(zip(FITS, (*keys[int(subject)], variant, aic, fit.status[i]), strict=True))
            rows.append(row | dict(zip(fit.names, fit.estimate[i].tolist(), strict=True)))
    return pd.DataFrame(rows)


def _by_cell(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[tuple[str, ...]]]:
    """Return the trials of cells with two answers or more, each cell a subject, and their names."""
    names = [WHO, "task", "condition_name", "modality_name"]
    cell = frame.groupby(names, sort=False).ngroup()
    keys = list(frame.drop_duplicates(names)[names].itertuples(index=False, name=None))
    answered = frame["response"].notna().groupby(cell).sum()
    enough = cell.map(answered >= 2).to_numpy(dtype=bool)
    sessions = frame["subject"].astype("str") + "/" + frame["session"].astype("str")
    return frame.assign(subject=cell.astype(str), session=sessions)[enough], keys


def evidence(data: Answers) -> pd.DataFrame:
    """Return evidence for a Bayesian observer in the base condition, one row per participant, task.

    Low and high are 5% and 95% of that of straight lines, p the share of them that show as much;
    no row where no lines are wanted.
    """
    lines, frame = data.about.option("lines", 0), data.once(estimates).frame
    whole = frame["task"].map(whole_modality)
    base = (frame["condition_name"] == BASE) & (frame["modality_name"] == whole)
    usable, keys = _by_cell(frame[base])
    if not lines or not len(usable):
        return pd.DataFrame(columns=EVIDENCE)
    table = calibrated_evidence(Trials.from_frame(usable), replicates=lines, seed=data.about.seed)
    names = pd.DataFrame([keys[int(subject)] for subject in table["subject"]], columns=KEY)
    table = table.rename(columns={"null_low": "low", "null_high": "high", "p_value": "p"})
    return pd.concat([names, table], axis=1).assign(lines=float(lines))[EVIDENCE]


def cells(data: Answers) -> pd.DataFrame:
    """Return one row per participant, task, condition and modality.

    n, missing (answers), at_an_end, error (NRMSE) with low and high, bias and variance (its parts,
    squared), prior_weight with prior_low and prior_high, and the evidence for each factor.
    """
    aics = data.once(fits).pivot_table(index=KEY, columns="variant", values="aic", dropna=False)
    factors: dict[Any, Any] = {}
    if len(aics):
        table = factor_evidence({str(name): aics[name].to_numpy(dtype=float) for name in aics})
        factors = dict(zip(aics.index, table[list(FACTORS)].to_dict("records"), strict=True))
    nothing, mass = dict.fromkeys(FACTORS, np.nan), data.about.option("mass", MASS)
    answers = data.once(estimates)
    rows: list[dict[str, Any]] = []
    for key, cell in (one for who in answers.participants for one in answers.of(who)):
        error, weight = normalised_error(cell), prior_weight(cell)
        bias, variance = bias_and_variance(cell)
        rows.append(
            dict(zip(KEY, key, strict=True))
            | {"n": len(cell), "missing": cell.missing, "at_an_end": cell.at_an_end}
            | _with_ends(("error", "low", "high"), error, mass)
            | {"bias": bias, "variance": variance}
            | _with_ends(("prior_weight", "prior_low", "prior_high"), weight, mass)
            | factors.get(key, nothing)
        )
    return pd.DataFrame(rows)


def means(data: Answers) -> pd.DataFrame:
    """Return error and evidence for observers as scores, means over tasks by condition, modality.

    Means of a modality are over the tasks that have pictures, so that two of them are of the same
    tasks; the modality `whole` is all that each task shows. Who lacks a task of these has no mean.
    Errors are of one participant alone: those of the NRMSE are over answers; of evidence, over
    answers to the same stimuli by what was fitted, for the conditions in `REPLAYED`.
    """
    table, answers = data.once(cells), data.once(estimates)
    keys = list(table[KEY].itertuples(index=False, name=None))
    known = dict(zip(keys, (error_by_items(answers.cells[key]) for key in keys), strict=True))
    again, rounds = data.once(replayed), float(data.about.option("replays", REPLAYS) - 1)
    whole = table[table["modality"] == table["task"].map(whole_modality)]
    pictured = table[table["task"].isin(MULTIMODAL)]
    some = pd.concat([whole.assign(shown="whole"), pictured.assign(shown=pictured["modality"])])
    rows: list[dict[str, Any]] = []
    for (condition, shown), part in some.groupby(["condition", "shown"], sort=False):
        tasks = part["task"].nunique()
        of_tasks = (one for one in part.groupby(WHO, sort=False) if len(one[1]) == tasks)
        for who, mine in of_tasks if tasks >= len(MULTIMODAL) else ():
            own = list(mine[KEY].itertuples(index=False, name=None))
            for name in ("error", *FACTORS):
                each = [known[key] if name == "error" else (again.get((key, name), np.nan), rounds)
                        for key in own]  # fmt: skip
                variance, freedom = np.array(each).T[0] ** 2, np.array(each).T[1]
                spread = float((variance**2 / freedom).sum())  # Satterthwaite (1946)
                rows.append({
                    WHO: who, "score": f"mean {name}: {condition}, {shown}",
                    "value": float(mine[name].mean(skipna=False)),
                    "standard_error": float(np.sqrt(variance.sum())) / tasks,
                    "freedom": variance.sum() ** 2 / spread if spread > 0 else np.nan,
                })  # fmt: skip
    return pd.DataFrame(rows)


def replayed(data: Answers) -> dict[tuple[tuple[str, ...], str], float]:
    """Return the deviation of evidence by cell and factor; no cell with fewer than 50 answers."""
    usable, keys = _by_cell(data.once(estimates).frame)
    wanted = [str(k) for k, key in enumerate(keys) if key[1] in MULTIMODAL and key[2:] in REPLAYED]
    answered = usable["response"].notna().groupby(usable["subject"]).transform("sum")
    usable = usable[usable["subject"].isin(wanted) & (answered >= LEAST_REPLAYED)]
    replays = data.about.option("replays", REPLAYS)
    if replays < 2 or not len(usable):
        return {}
    table = evidence_errors(usable, replays, data.about.seed)
    rows = [(keys[int(str(k))], row) for k, row in table.iterrows()]
    return {(key, name): float(row[name]) for key, row in rows for name in FACTORS}


def _with_ends(names: tuple[str, str, str], values: Any, mass: float) -> dict[str, float]:
    """Return an estimate, which is the first of the values, with the interval of the others."""
    return dict(zip(names, (float(values[0]), *percentile_interval(values, mass)), strict=True))


def cues(data: Answers) -> pd.DataFrame:
    """Return one row per participant, task, condition and reference.

    n, left_out, text_weight, error (of the combined answers), reference_error, efficiency (RRE)
    with low and high, reason.
    """
    answers, mass = data.once(estimates), data.about.option("mass", MASS)
    rows = []
    for who in answers.participants:
        for task in MULTIMODAL:
            for condition in CONDITIONS:
                combination = cue_combination(answers, who, task, condition)
                if combination is not None:
                    names = {WHO: who, "task": task, "condition": condition}
                    rows += [
                        names | _cue_row(combination, reference, mass) for reference in REFERENCES
                    ]
    return pd.DataFrame(rows, columns=CUES)


def _cue_row(combination: CueCombination, reference: str, mass: float) -> dict[str, Any]:
    weight = combination.text_weight[reference]
    return {
        "reference": reference, "n": combination.n, "left_out": combination.left_out,
        "matched": combination.matched, "error": float(combination.error[0]),
        "reason": combination.reason,
        "reference_error": float(combination.reference_error[reference][0]),
        **_with_ends(("text_weight", "weight_low", "weight_high"), weight, mass),
        **_with_ends(("efficiency", "low", "high"), combination.efficiency[reference], mass),
    }  # fmt: skip


def observer_data(data: Answers, over: str) -> ModelData | None:
    """Return the answers of each participant as one subject's, over all cells or those of a task.

    Who answered fewer than two questions has no row; None if nobody has.
    """
    frame = data.once(estimates).frame
    part = frame if over == ALL else frame[frame["task"] == over]
    answered = part["response"].notna().groupby(part[WHO]).transform("sum")
    part = part[answered >= 2]
    if not len(part):
        return None
    names = ["task", "condition_name", "modality_name", "subject", "session"]
    session = part[names].astype(str).agg("/".join, axis=1)
    trials = Trials.from_frame(part.assign(subject=part[WHO], session=session))
    return ModelData.read(AGENTS[OBSERVER], trials)


def observer(data: Answers) -> pd.DataFrame:
    """Return one row per participant, set of cells and parameter of the observer of all magnitudes.

    Value and ends are the posterior mean and the 95% interval, NaN where the fit failed.
    """
    rows = []
    for over in (ALL, *MULTIMODAL):
        read = observer_data(data, over)
        if read is None:
            continue
        fit = posterior(read.model, read, seed=data.about.seed, workers=1, nuts=False)
        status = fit.status
        usable = np.array([one != "failed" for one in status])[:, None]
        ends = [np.where(usable, x, np.nan) for x in (fit.estimate, *fit.interval(OBSERVER_MASS))]
        for i, who in enumerate(fit.subjects):
            for k, name in enumerate(fit.names):
                values = (float(x[i, k]) for x in ends)
                rows.append((who, over, name, *values, status[i], int(read.n_trials[i])))
    return pd.DataFrame(rows, columns=OBSERVED)


def observer_tests(data: Answers) -> pd.DataFrame:
    """Return one row per participant: the p of misfit, and of each observer nested in the one.

    If the observer does not describe the cells (a misfit with p below .05), nested ones are not
    tested, and have NaN.
    """
    read = observer_data(data, ALL)
    if read is None:
        return pd.DataFrame(columns=[WHO, "without", "p"])
    return misfit_and_nested(read.model, read, workers=1).rename(columns={"subject": WHO})
