"""How an estimate and its test behave over many data sets whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, make, session_stream
from knownminds.inference import (
    Analysis,
    Estimate,
    FittedMeasure,
    Measure,
    StoppingRule,
    SubjectMeasure,
    Unknowns,
)
from knownminds.inference.analysis import LEVEL
from knownminds.inference.groups.contrasts import drawn_contrasts, drawn_means
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.groups.marginal import marginal
from knownminds.inference.measure import UNBOUNDED, interval_tests
from knownminds.validation.engine import scores
from knownminds.validation.engine.cells import Cell
from knownminds.validation.engine.drawn_groups import COLUMN, design_of_sessions
from knownminds.validation.engine.group_fits import sample_group
from knownminds.validation.engine.population import PlayedSessions, Subjects, draw_subjects, live
from knownminds.validation.engine.scores import NOTHING, Score
from knownminds.validation.engine.study import Batch, Study

from .aims import INNER, MASS, Aim
from .dials import GroupDial, resolve_measure
from .one_agent import agent_values

ESTIMATORS = ("marginal", "hierarchical")
OF_TESTS = ("standard_error", "low", "high", "p_value", "n")  # beside their estimate
_EFFECT = 2**31  # last part of the address of a replicate's effect


def test_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Simulate the data sets of a batch of replicates and test each: one row per data set."""
    cell = study.cells[batch.cell]
    model = AGENTS[cell.model]
    environment = make(cell.environment, **cell.settings)
    measure = resolve_measure(cell.analysis.measure, model, environment)
    effect, sessions = conditions_lived(study, batch, measure)
    analysis = analysis_of(cell, measure)
    if analysis.estimator in ESTIMATORS:
        rows = _of_groups(study, batch, measure, sessions, threads)
    elif isinstance(measure, SubjectMeasure):
        rows = _over_units(cell, analysis, sessions, len(batch), threads)
    else:
        rows = _own_test(cell, measure, sessions, len(batch))
    rows["effect"] = effect
    told = rows.reindex(columns=["status", "message"]).astype(object)  # that of sampled groups
    usable = np.isfinite(rows["p_value" if np.isfinite(analysis.null) else "standard_error"])
    rows["status"] = told["status"].fillna(usable.map({True: "ok", False: "failed"}))
    why = usable.map({True: "", False: "the sample has no spread, or too few values"})
    rows["message"] = told["message"].fillna(why)
    return rows


test_batch.__test__ = False  # type: ignore[attr-defined]  # no test of ours for pytest


def conditions_lived(
    study: Study, batch: Batch, measure: Measure
) -> tuple[Array, list[PlayedSessions]]:
    """Return the true effect of each replicate, [R], and the sessions of each condition."""
    cell = study.cells[batch.cell]
    comparison = cell.analysis.comparison
    base = draw_subjects(study, batch)
    others = replace(cell, population=replace(cell.population, condition="second"))
    cells = tuple(others if c == batch.cell else one for c, one in enumerate(study.cells))
    elsewhere = replace(study, cells=cells)
    second = draw_subjects(elsewhere, batch) if comparison == "between" else None
    effect = _effects(study, batch, measure, base, second)
    turned = _turned(cell, measure, base, effect)
    first = turned if comparison == "one" else base
    sessions = [live(study, batch, first)]
    if second is not None:
        sessions.append(live(elsewhere, batch, _turned(cell, measure, second, effect)))
    elif comparison == "paired":
        sessions.append(live(study, batch, turned, first_session=cell.sessions))
    return effect, sessions


def _effects(
    study: Study, batch: Batch, measure: Measure, base: Subjects, second: Subjects | None = None
) -> Array:
    """Return the true effect of each replicate, [R]: the given one, or what its subjects are.

    Of two groups of a pilot it is what the second has more than the first.
    """
    cell = study.cells[batch.cell]
    if cell.population.effect is None:
        groups = base.theta.reshape(len(batch), cell.subjects, -1)
        return np.array([measure.group_truth(AGENTS[cell.model], theta) for theta in groups])
    if cell.population.own_effect:
        rest: Array = np.array([dial.rest for dial in _dials(cell, measure, base)])
        if second is None:
            return rest
        return np.array([d.rest for d in _dials(cell, measure, second)], dtype=float) - rest
    effect = np.full(len(batch), float(cell.population.effect))
    spread = cell.population.effect_sd or 0.0
    if spread:  # for assurance
        for r, replicate in enumerate(range(batch.first, batch.last)):
            rng = session_stream(study.seed, cell.data_key, replicate, _EFFECT)
            effect[r] += spread * rng.standard_normal()
    return effect


def _turned(cell: Cell, measure: Measure, base: Subjects, effect: Array) -> Subjects:
    """Turn the measure's dial on the subjects, so that their group has the effect."""
    if cell.population.effect is None or cell.population.own_effect:
        return base
    dial = dial_of(cell, measure)
    one = cell.analysis.comparison == "one"
    if cell.population.group_draws:
        dials = _dials(cell, measure, base)
        wanted = [
            each + (0.0 if one else dial.rest) for dial, each in zip(dials, effect, strict=True)
        ]
        turns = np.array(
            [dial.turn_to(np.array([size]))[0] for dial, size in zip(dials, wanted, strict=True)]
        )
    else:
        turns = dial.turn_to((0.0 if one else dial.rest) + effect)
    position = np.unique(base.replicate, return_inverse=True)[1]
    parameters = AGENTS[cell.model].parameters
    z = parameters.unconstrain(base.theta) + turns[position][:, None] * dial.direction
    return replace(base, theta=parameters.constrain(z))


def _dials(cell: Cell, measure: Measure, base: Subjects) -> list[GroupDial]:
    """Return the measure's dial on the group of each replicate."""
    model = AGENTS[cell.model]
    groups = zip(base.group_mean, base.group_sd, strict=True)
    return [GroupDial(measure, model, *group) for group in groups]


def dial_of(cell: Cell, measure: Measure) -> GroupDial:
    """Return the measure's dial on the group of a cell."""
    model = AGENTS[cell.model]
    names = model.parameters.names
    mean, spread = (
        np.array([of[name] for name in names])
        for of in (cell.population.group_mean, cell.population.group_sd)
    )
    return GroupDial(measure, model, mean, spread)


def analysis_of(cell: Cell, measure: Measure) -> Analysis:
    """Return the analysis of a cell's data sets."""
    rule = cell.analysis.rule
    return Analysis.of(
        measure, cell.subjects, cell.analysis.comparison,
        "hierarchical" if cell.method == "hierarchical" else "marginal",
        StoppingRule.of(rule) if rule else None,
    )  # fmt: skip


def said(cells: Sequence[Cell]) -> list[str]:
    """Return the analyses of some cells, as a methods section says them."""
    measures = [resolve_measure(one.analysis.measure, AGENTS[one.model]) for one in cells]
    every = (str(analysis_of(*pair)) for pair in zip(cells, measures, strict=True))
    return list(dict.fromkeys(every))


def estimator_of(
    measure: Measure, subjects: int, of_groups: Literal["marginal", "hierarchical"] = "marginal"
) -> str:
    """Return the method of a cell; "map" where no group is estimated."""
    estimator = Analysis.of(measure, subjects, estimator=of_groups).estimator
    return estimator if estimator in ESTIMATORS else "map"


def samples_of(
    analysis: Analysis, liveds: list[PlayedSessions], replicates: int, threads: int | None
) -> list[Any]:
    """Read the measure off every subject of each condition, as `Analysis.tests` takes it."""
    measure = analysis.measure
    assert isinstance(measure, SubjectMeasure)
    if analysis.estimator == "together":
        return [agent_values(measure, one, threads) for one in liveds]
    return [sample_of(measure, one, replicates, threads) for one in liveds]


def _over_units(
    cell: Cell,
    analysis: Analysis,
    liveds: list[PlayedSessions],
    replicates: int,
    threads: int | None,
) -> pd.DataFrame:
    """Test over subjects, or over one agent's sessions."""
    samples = samples_of(analysis, liveds, replicates, threads)
    tests, inner = (analysis.tests(samples, mass) for mass in (1 - LEVEL, MASS))
    units = cell.sessions if cell.subjects == 1 else cell.subjects
    units *= 2 if analysis.comparison == "between" else 1
    numbers = {"estimate": tests.mean} | {name: getattr(tests, name) for name in OF_TESTS}
    numbers |= dict(zip(INNER, (inner.low, inner.high), strict=True))
    return pd.DataFrame(numbers).assign(excluded=units - tests.n)


def sample_of(
    measure: SubjectMeasure, sessions: PlayedSessions, replicates: int, threads: int | None
) -> Array:
    """Values of the subjects of each replicate, [R, n]."""
    if isinstance(measure, FittedMeasure):
        values = measure.values_of(sessions.data(measure.model), workers=threads).value
    else:
        values = measure.values(sessions.trials()).value
    return values.reshape(replicates, -1)


def _own_test(
    cell: Cell, measure: Measure, liveds: list[PlayedSessions], replicates: int
) -> pd.DataFrame:
    """Let the measure estimate and test each data set itself."""
    rows = []
    for r in range(replicates):
        estimates = [measure.estimate(trials_of(one, r, cell)) for one in liveds]
        last = estimates[-1]
        row = {"estimate": last.value} | {name: getattr(last, name) for name in OF_TESTS}
        value, error, freedom = last.value, last.standard_error, last.freedom
        if len(estimates) == 2:
            value, error, freedom = _difference(*estimates)
            n = sum(one.n for one in estimates)
            row = {"estimate": value, "n": n} | _interval(value, error, freedom, 1 - LEVEL)
        inner = _interval(value, error, freedom, MASS)
        row |= dict(zip(INNER, (inner["low"], inner["high"]), strict=True))
        row["excluded"] = sum(sum(one.excluded.values()) for one in estimates)
        rows.append(row)
    return pd.DataFrame(rows)


def _difference(first: Estimate, second: Estimate) -> tuple[float, float, float]:
    """Return second - first with its error and degrees of freedom (Welch 1947)."""
    squares = [one.standard_error**2 for one in (first, second)]
    parts = [s**2 / one.freedom for s, one in zip(squares, (first, second), strict=True)]
    freedom = sum(squares) ** 2 / sum(parts) if sum(parts) > 0 else np.inf
    return second.value - first.value, float(np.sqrt(sum(squares))), freedom


def _interval(value: float, error: float, freedom: float, mass: float) -> dict[str, float]:
    """Return standard error, interval and p-value of an estimate, by Student's t."""
    law = scipy.stats.t(freedom)
    half = float(law.ppf(0.5 + mass / 2)) * error
    p_value = float(2 * law.sf(abs(value) / error)) if error > 0 else np.nan
    ends = {"low": value - half, "high": value + half}
    return {"standard_error": error, **ends, "p_value": p_value}


def trials_of(sessions: PlayedSessions, replicate: int, cell: Cell) -> Trials:
    """Return the trials of one replicate of a batch."""
    first = replicate * cell.subjects
    return sessions.of(np.arange(first, first + cell.subjects)).trials()


def _of_groups(
    study: Study, batch: Batch, measure: Measure, liveds: list[PlayedSessions], threads: int | None
) -> pd.DataFrame:
    """Estimate the group of each replicate (of each condition) and test the contrast in it."""
    cell = study.cells[batch.cell]
    if not isinstance(measure, FittedMeasure):
        raise TypeError(f"{measure.name} is no contrast of parameters")
    rows = []
    for r, replicate in enumerate(range(batch.first, batch.last)):
        own_subjects = np.arange(r * cell.subjects, (r + 1) * cell.subjects)
        whole = [one.of(own_subjects) for one in liveds]
        row = None if cell.method == "hierarchical" else _marginal_row(cell, measure, whole)
        if row is None:
            address = (cell.data_key, replicate)
            row = _sampled_row(cell, measure, whole, study.seed, address, threads)
        rows.append(row)
    return pd.DataFrame(rows)


def _marginal_row(
    cell: Cell, measure: FittedMeasure, whole: list[PlayedSessions]
) -> dict[str, Any] | None:
    """Test the contrast by marginal likelihoods; None where a group is not to be trusted."""
    unknowns = Unknowns.of(measure.model)
    share = None
    if cell.analysis.comparison == "paired":
        design = _paired_design(cell, measure)
        data = [whole[0].beside(whole[1]).data(measure.model)]
        share = np.repeat([-1.0, 1.0], cell.subjects) / cell.subjects
    else:
        data = [one.data(measure.model) for one in whole]
        together = bool(cell.population.correlation)
        design = GroupDesign.plain(unknowns.parameters, data[0].subjects, together)
    groups = [marginal(one, unknowns, design) for one in data]
    if any(group.message for group in groups):
        return None
    found = np.array([group.mean_of(measure.contrast, share) for group in groups])
    value = found[-1, 0] - (found[0, 0] if len(found) == 2 else 0.0)
    variance, freedom = found[:, 1] ** 2, np.array([group.freedom for group in groups])
    one = cell.analysis.comparison == "one"
    about = (
        np.array([value]),
        np.sqrt(variance.sum(keepdims=True)),
        variance.sum(keepdims=True) ** 2 / (variance**2 / freedom).sum(),  # Welch 1947
        np.array([len(groups) * cell.subjects]),
        _null(cell),
    )
    bounds = measure.bounds if one else UNBOUNDED
    tests, inner = (interval_tests(*about, mass, bounds).first for mass in (1 - LEVEL, MASS))
    row = {"estimate": tests["mean"]} | {name: tests[name] for name in OF_TESTS}
    return row | dict(zip(INNER, (inner["low"], inner["high"]), strict=True)) | {"excluded": 0}


def _sampled_row(
    cell: Cell,
    measure: FittedMeasure,
    whole: list[PlayedSessions],
    seed: int,
    address: tuple[int, int],
    threads: int | None,
) -> dict[str, Any]:
    """Sample the group of each condition and read the contrast off its draws."""
    if cell.analysis.comparison == "paired":
        first, second = whole
        contrast, reasons = _within(cell, measure, first, second, seed, (*address, 0), threads)
        return _group_row(cell, contrast, 0.0, reasons)
    draws: list[Array] = []
    reasons = []
    for condition, mine in enumerate(whole):
        data = mine.data(measure.model, apart=cell.subjects == 1)
        together = bool(cell.population.correlation)
        fit = sample_group(
            data, {}, False, seed, *address, condition, threads=threads, correlated=together
        )
        draws.append(drawn_means(fit, measure.contrast))
        reasons += fit.reasons
    # Groups are sampled apart, and one that needed more draws has more.
    least = min(map(len, draws))
    thinned = [d[((np.arange(least) + 0.5) * len(d) / least).astype(int)] for d in draws]
    contrast = thinned[-1] - (thinned[0] if len(thinned) == 2 else 0.0)
    return _group_row(cell, contrast, _null(cell), reasons)


def _group_row(cell: Cell, contrast: Array, null: float, reasons: list[str]) -> dict[str, Any]:
    """Say what the draws of a contrast of a group tell of it."""
    low, high = np.quantile(contrast, [0.025, 0.975])
    below = (np.sum(contrast < null) + 0.5) / (len(contrast) + 1)
    inner = np.quantile(contrast, [LEVEL, 1 - LEVEL])
    groups = 2 if cell.analysis.comparison == "between" else 1
    return {
        "estimate": contrast.mean(),
        "standard_error": contrast.std(ddof=1),
        "low": low,
        "high": high,
        "p_value": 2 * min(below, 1 - below),
        "n": (cell.sessions if cell.subjects == 1 else cell.subjects) * groups,
        "excluded": 0,
        "sampled": 1,
        **dict(zip(INNER, inner, strict=True)),
        "status": "not converged" if reasons else "ok",
        "message": "; ".join(reasons),
    }


def _paired_design(cell: Cell, measure: FittedMeasure) -> GroupDesign:
    """Return the design of two conditions, all first ones first.

    Each parameter of the contrast has a change from one condition to the other, and subjects
    deviate in it: parameter ~ condition + (condition | subject).
    """
    model = measure.model
    changing = [f"{name} ~ {COLUMN} + ({COLUMN} | subject)" for name in measure.contrast]
    return design_of_sessions(changing, model, model.parameters, cell.subjects, 2, False)


def _within(
    cell: Cell,
    measure: FittedMeasure,
    first: PlayedSessions,
    second: PlayedSessions,
    seed: int,
    address: tuple[int, ...],
    threads: int | None,
) -> tuple[Array, list[str]]:
    """Sample a group whose parameters differ between two conditions; draws of the contrast."""
    design = _paired_design(cell, measure)
    data = first.beside(second).data(measure.model)
    fit = sample_group(data, {}, False, seed, *address, threads=threads, design=design)
    draws_by_name = {about["parameter"]: draws for about, draws in drawn_contrasts(fit)}
    total = sum(weight * draws_by_name[name] for name, weight in measure.contrast.items())
    return np.asarray(total), list(fit.reasons)


def characteristics(cell: Cell, rows: pd.DataFrame) -> dict[str, Any]:
    """Return what becomes of the data sets of a cell, by the names of a table's columns.

    The first is called as `Aim.name` says: the share of all data sets whose test rejects at 5%, or
    that reach the aim; failed ones do not. Wrong sign and exaggeration are of the rejecting data
    sets: mean |estimate| over mean |effect|, both from the null value (Gelman and Carlin 2014).
    """
    null, aim = _null(cell), Aim(cell.analysis.width, cell.analysis.rope)
    usable = rows[rows["status"] != "failed"]
    columns = ("effect", "estimate", "standard_error", "low", "high", "excluded", "sampled")
    effect, estimate, error, low, high, excluded, sampled = (
        usable.reindex(columns=[name])[name].to_numpy(dtype=float) for name in columns
    )
    agreement = scores.agreement(effect, estimate)
    covers, width = scores.coverage(effect, low, high)
    hit = aim.reached(usable, null) if len(usable) else np.zeros(0, dtype=bool)
    real = hit & (effect != null) & aim.tests
    signed = np.sign(estimate[real] - null) != np.sign(effect[real] - null)
    judged = np.isfinite(null) or aim.width is not None
    name = aim.name(cell.population.effect_sd or 0.0)
    of_tests = {
        "wrong sign": scores.share(int(signed.sum()), int(real.sum())),
        "exaggeration": _ratio(abs(estimate[real] - null), abs(effect[real] - null)),
    }
    return {
        "effect": float(effect.mean()) if len(effect) else np.nan,
        "data sets": len(rows),
        name: scores.share(int(hit.sum()), len(rows)) if judged else NOTHING,
        **(of_tests if aim.tests else {}),
        "95% width": width,
        "bias": agreement.bias,
        "spread": _spread(agreement),
        "standard error": scores.mean(error),
        "95% covers": covers,
        "failed": int((rows["status"] == "failed").sum()),
        "left out": int(np.nansum(excluded)),
        **({} if cell.method != "marginal" else {"sampled": int(np.nansum(sampled))}),
    }


def _spread(agreement: scores.Agreement) -> Score:
    """Return the standard deviation of the errors; its error holds for normal estimates."""
    if agreement.n < 2:
        return NOTHING
    square = agreement.rmse.value**2 - agreement.bias.value**2
    deviation = float(np.sqrt(max(square, 0.0) * agreement.n / (agreement.n - 1)))
    return Score(deviation, deviation / float(np.sqrt(2 * (agreement.n - 1))))


def _null(cell: Cell) -> float:
    """Return the value from which the effects of a cell are counted."""
    measure = resolve_measure(cell.analysis.measure, AGENTS[cell.model])
    return analysis_of(cell, measure).null


def _ratio(values: Array, others: Array) -> Score:
    """Return the ratio of two means with its error by the delta method."""
    if len(values) == 0:
        return NOTHING
    ratio = float(values.mean() / others.mean())
    return Score(ratio, scores.error_of(values - ratio * others) / float(others.mean()))
