"""How an estimate and its test behave over many data sets whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, make, session_stream
from knownminds.inference import FittedMeasure, Measure, SubjectMeasure
from knownminds.validation.engine.group_fits import sample_group
from knownminds.validation.engine.group_law import COLUMN, design_of_sessions
from knownminds.validation.engine.monte_carlo import (
    NOTHING,
    Agreement,
    Coverage,
    Score,
    Tally,
    share,
)
from knownminds.validation.engine.population import Lived, Subjects, draw_subjects, live
from knownminds.validation.engine.study import Batch, Cell, Rows, Study

from .aims import INNER, LEVEL, MASS, NORMAL, Aim, null_of, sample_tests
from .dials import GroupDial, resolve_measure

COMPARISONS = ("one", "between", "paired")
ESTIMATORS = ("two_stage", "hierarchical")
_EFFECT = 2**31  # last part of the address of a replicate's own effect
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


@dataclass(frozen=True)
class Characteristics:
    """What becomes of a design's data sets, each number with its Monte-Carlo error.

    Parameters
    ----------
    cell
        The design.
    effect
        Mean true effect of the data sets.
    attempted, failed, excluded
        Data sets; those without an estimate, which count as not rejecting; subjects or sessions
        left out of the others.
    rejected
        Share of all data sets whose test rejects at 5%: power, or size if there is no effect. Of
        an `Aim`, the share that reaches it.
    bias, spread, standard_error
        Mean error of the estimates; standard deviation of that error (its own error holds for
        normal estimates); the mean standard error that the analysis itself reports.
    coverage, width
        Of the 95% intervals.
    sign_error, exaggeration
        Among the rejecting data sets: share with the wrong sign; mean |estimate| over mean
        |effect|, both from the null value (Gelman and Carlin 2014). NaN where there is no effect.
    messages, doubts
        Why data sets failed, and what speaks against those that did not (sampling that did not
        converge), each with how often.
    """

    cell: Cell
    effect: float
    attempted: int
    failed: int
    excluded: int
    rejected: Score
    bias: Score
    spread: Score
    standard_error: Score
    coverage: Score
    width: Score
    sign_error: Score
    exaggeration: Score
    messages: Mapping[str, int]
    doubts: Mapping[str, int]
    seconds: float

    @property
    def trials(self) -> int:
        """Trials per session."""
        return self.cell.make().n_trials

    @property
    def unit(self) -> str:
        """What the sample is made of: participants, or repeats of one mind."""
        return "repeat" if self.cell.subjects == 1 else "participant"

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name; scores as NAME and NAME_error."""
        told: dict[str, Any] = {
            "model": self.cell.model,
            "subjects": self.cell.subjects,
            "sessions": self.cell.sessions,
            "trials": self.trials,
            "unit": self.unit,
            "effect": self.effect,
            "attempted": self.attempted,
            "failed": self.failed,
            "excluded": self.excluded,
        }
        if "dollars" in self.cell.options:
            told |= dict(zip(DOLLARS, self.cell.options["dollars"], strict=True))
        for name in SCORES:
            score: Score = getattr(self, name)
            told[name], told[f"{name}_error"] = score.value, score.error
        return told


DOLLARS = ("dollars_low", "dollars_high")
SCORES = (
    "rejected",
    "bias",
    "spread",
    "standard_error",
    "coverage",
    "width",
    "sign_error",
    "exaggeration",
)


def test_batch(study: Study, batch: Batch, threads: int | None) -> pd.DataFrame:
    """Simulate the data sets of a batch of replicates and test each: one row per data set."""
    cell = study.cells[batch.cell]
    model = AGENTS[cell.model]
    environment = make(cell.environment, **cell.settings)
    measure = resolve_measure(cell.options["measure"], model, environment)
    effect, lived = conditions_lived(study, batch, measure)
    if cell.method == "hierarchical":
        rows = _hierarchical(study, batch, measure, lived, threads)
    elif isinstance(measure, SubjectMeasure):
        rows = _two_stage(cell, measure, lived, len(batch), threads)
    else:
        rows = _own_test(cell, measure, lived, len(batch))
    rows["effect"] = effect
    if "status" not in rows:
        tested = np.isfinite(null_of(measure, cell.options["comparison"]))
        needed = rows["p_value" if tested else "standard_error"]
        rows["status"] = np.where(np.isfinite(needed), "ok", "failed")
        rows["message"] = np.where(
            rows["status"] == "ok", "", "the sample has no spread, or too few values"
        )
    return rows


test_batch.__test__ = False  # type: ignore[attr-defined]  # no test of ours for pytest


def conditions_lived(study: Study, batch: Batch, measure: Measure) -> tuple[Array, list[Lived]]:
    """Return the true effect of each replicate, [R], and what each condition has lived."""
    cell = study.cells[batch.cell]
    comparison = cell.options["comparison"]
    base = draw_subjects(study, batch)
    effect = _effects(study, batch, measure, base)
    turned = _turned(cell, measure, base, effect)
    first = turned if comparison == "one" else base
    lived = [live(study, batch, first)]
    if comparison == "between":
        others = replace(cell, law={**cell.law, "condition": "second"})
        cells = tuple(others if c == batch.cell else own for c, own in enumerate(study.cells))
        elsewhere = replace(study, cells=cells)
        minds = _turned(cell, measure, draw_subjects(elsewhere, batch), effect)
        lived.append(live(elsewhere, batch, minds))
    elif comparison == "paired":
        lived.append(live(study, batch, turned, first_session=cell.sessions))
    return effect, lived


def _effects(study: Study, batch: Batch, measure: Measure, base: Subjects) -> Array:
    """Return the true effect of each replicate, [R]: the given one, or what its subjects are."""
    cell = study.cells[batch.cell]
    if "effect" not in cell.law:
        groups = base.theta.reshape(len(batch), cell.subjects, -1)
        return np.array([measure.group_truth(AGENTS[cell.model], theta) for theta in groups])
    if cell.law.get("own_effect"):
        return np.array([dial.rest for dial in _dials(cell, measure, base)])
    effect = np.full(len(batch), float(cell.law["effect"]))
    spread = cell.law.get("effect_sd", 0.0)
    if spread:  # for assurance
        for r, replicate in enumerate(range(batch.first, batch.last)):
            rng = session_stream(study.seed, cell.data_key, replicate, _EFFECT)
            effect[r] += spread * rng.standard_normal()
    return effect


def _turned(cell: Cell, measure: Measure, base: Subjects, effect: Array) -> Subjects:
    """Turn the measure's dial on the subjects, so that their group has the effect."""
    if "effect" not in cell.law or cell.law.get("own_effect"):
        return base
    dial = dial_of(cell, measure)
    one = cell.options["comparison"] == "one"
    if "group_draws" in cell.law:
        own = _dials(cell, measure, base)
        wanted = [
            each + (0.0 if one else dial.rest) for dial, each in zip(own, effect, strict=True)
        ]
        turns = np.array(
            [dial.turn_to(np.array([size]))[0] for dial, size in zip(own, wanted, strict=True)]
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
        np.array([cell.law[key][name] for name in names]) for key in ("group_mean", "group_sd")
    )
    return GroupDial(measure, model, mean, spread)


def _two_stage(
    cell: Cell, measure: SubjectMeasure, lived: list[Lived], replicates: int, threads: int | None
) -> pd.DataFrame:
    """Read the measure off every unit, and test over units."""
    samples = [sample_of(cell, measure, one, replicates, threads) for one in lived]
    units = samples[0].shape[1]
    comparison = cell.options["comparison"]
    tests = sample_tests(comparison, measure, samples)
    if comparison == "between":
        units += samples[1].shape[1]
    rows = pd.DataFrame(
        {
            "estimate": tests.mean,
            "standard_error": tests.standard_error,
            "low": tests.low,
            "high": tests.high,
            "p_value": tests.p_value,
            "n": tests.n,
            "excluded": units - tests.n,
        }
    )
    if Aim.of(cell.options).rope is None:
        return rows
    inner = sample_tests(comparison, measure, samples, MASS)
    return rows.assign(**dict(zip(INNER, (inner.low, inner.high), strict=True)))


def sample_of(
    cell: Cell, measure: SubjectMeasure, lived: Lived, replicates: int, threads: int | None
) -> Array:
    """Values of the units of each replicate, [R, n]; sessions are the units of one mind."""
    apart = cell.subjects == 1
    if isinstance(measure, FittedMeasure):
        values = measure.values_of(lived.data(measure.model, apart=apart), workers=threads).value
    else:
        values = measure.values(lived.trials(apart=apart)).value
    if apart:
        return values.reshape(cell.sessions, replicates).T
    return values.reshape(replicates, cell.subjects)


def _own_test(cell: Cell, measure: Measure, lived: list[Lived], replicates: int) -> pd.DataFrame:
    """Let the measure estimate and test each data set itself."""
    rows = []
    for r in range(replicates):
        found = [measure.estimate(trials_of(one, r, cell)) for one in lived]
        last, first = found[-1], found[0]
        row = {
            "estimate": last.value,
            "standard_error": last.standard_error,
            "low": last.low,
            "high": last.high,
            "p_value": last.p_value,
            "n": last.n,
            "excluded": sum(sum(one.excluded.values()) for one in found),
        }
        if len(found) == 2:
            row |= _difference(first.value, first.standard_error, last.value, last.standard_error)
            row["n"] = first.n + last.n
        rows.append(row)
    table = pd.DataFrame(rows)
    if Aim.of(cell.options).rope is None:
        return table
    half = NORMAL * table["standard_error"]
    ends = (table["estimate"] - half, table["estimate"] + half)
    return table.assign(**dict(zip(INNER, ends, strict=True)))


def _difference(a: float, error_a: float, b: float, error_b: float) -> dict[str, float]:
    """Return the normal test of b - a from two estimates and their standard errors."""
    error = float(np.hypot(error_a, error_b))
    return {
        "estimate": b - a,
        "standard_error": error,
        "low": b - a - 1.959964 * error,
        "high": b - a + 1.959964 * error,
        "p_value": float(2 * scipy.stats.norm.sf(abs(b - a) / error)) if error > 0 else np.nan,
    }


def trials_of(lived: Lived, replicate: int, cell: Cell) -> Trials:
    """Return the trials of one replicate of a batch; the sessions of one mind are subjects."""
    first = replicate * cell.subjects
    return lived.of(np.arange(first, first + cell.subjects)).trials(apart=cell.subjects == 1)


def _hierarchical(
    study: Study,
    batch: Batch,
    measure: Measure,
    lived: list[Lived],
    threads: int | None,
) -> pd.DataFrame:
    """Sample the group of each replicate (of each condition) and read the contrast off it."""
    cell = study.cells[batch.cell]
    if not isinstance(measure, FittedMeasure):
        raise TypeError(f"{measure.name} is no contrast of parameters")
    rows = []
    for r, replicate in enumerate(range(batch.first, batch.last)):
        draws: list[Array] = []
        reasons: list[str] = []
        own_subjects = np.arange(r * cell.subjects, (r + 1) * cell.subjects)
        whole = [one.of(own_subjects) for one in lived]
        if cell.options["comparison"] == "paired":
            place = (cell.data_key, replicate, 0)
            first, second = whole
            contrast, reasons = _within(cell, measure, first, second, study.seed, place, threads)
            rows.append(_group_row(cell, contrast, 0.0, reasons))
            continue
        for condition, mine in enumerate(whole):
            data = mine.data(measure.model, apart=cell.subjects == 1)
            place = (cell.data_key, replicate, condition)
            together = bool(cell.law.get("correlation"))
            fit = sample_group(
                data, {}, False, study.seed, *place, threads=threads, correlated=together
            )
            draws.append(_group_contrast(measure, fit))
            reasons += fit.reasons
        # Groups are sampled apart, and one that needed more draws has more.
        least = min(map(len, draws))
        own = [d[((np.arange(least) + 0.5) * len(d) / least).astype(int)] for d in draws]
        contrast = own[-1] - (own[0] if len(own) == 2 else 0.0)
        null = 0.0 if len(own) == 2 else measure.null
        rows.append(_group_row(cell, contrast, null, reasons))
    return pd.DataFrame(rows)


def _group_row(cell: Cell, contrast: Array, null: float, reasons: list[str]) -> dict[str, Any]:
    """Say what the draws of a contrast of a group tell of it."""
    low, high = np.quantile(contrast, [0.025, 0.975])
    below = (np.sum(contrast < null) + 0.5) / (len(contrast) + 1)
    inner = np.quantile(contrast, [LEVEL, 1 - LEVEL])
    aim = Aim.of(cell.options)
    groups = 2 if cell.options["comparison"] == "between" else 1
    return {
        "estimate": contrast.mean(),
        "standard_error": contrast.std(ddof=1),
        "low": low,
        "high": high,
        "p_value": 2 * min(below, 1 - below),
        "n": (cell.sessions if cell.subjects == 1 else cell.subjects) * groups,
        "excluded": 0,
        **(dict(zip(INNER, inner, strict=True)) if aim.rope is not None else {}),
        "status": "not converged" if reasons else "ok",
        "message": "; ".join(reasons),
    }


def _within(
    cell: Cell,
    measure: FittedMeasure,
    first: Lived,
    second: Lived,
    seed: int,
    place: tuple[int, ...],
    threads: int | None,
) -> tuple[Array, list[str]]:
    """Sample a group whose parameters differ between two conditions; draws of the contrast.

    Each parameter of the contrast has a change from one condition to the other, and subjects
    deviate in it: parameter ~ condition + (condition | subject).
    """
    from knownminds.inference.groups.contrasts import contrasts_of

    model = measure.model
    changing = [f"{name} ~ {COLUMN} + ({COLUMN} | subject)" for name in measure.contrast]
    design = design_of_sessions(changing, model, model.parameters, cell.subjects, 2, False)
    data = first.beside(second).data(model)
    fit = sample_group(data, {}, False, seed, *place, threads=threads, design=design)
    found = {one.parameter: one.draws for one in contrasts_of(fit)}
    total = sum(weight * found[name] for name, weight in measure.contrast.items())
    return np.asarray(total), list(fit.reasons)


def _group_contrast(measure: FittedMeasure, fit: Any) -> Array:
    """Draws of the group's mean of the contrast on the natural scale, [draws].

    The mean over the group's law, by Gauss-Hermite quadrature for each parameter.
    """
    total = 0.0
    for name, weight in measure.contrast.items():
        support = fit.parameters[name].support
        mean = fit.posterior["group_mean"].sel(parameter=name).to_numpy().ravel()
        spread = fit.posterior["group_sd"].sel(parameter=name).to_numpy().ravel()
        natural = support.constrain(mean[:, None] + spread[:, None] * NODES)
        total = total + weight * (natural @ WEIGHTS) / WEIGHTS.sum()
    return np.asarray(total)


def characteristics(rows: Rows, cell: int) -> Characteristics:
    """Gather what became of the data sets of a cell."""
    study, design = rows.study, rows.study.cells[cell]
    agreement, coverage = Agreement(), Coverage((0.95,))
    errors = Agreement()  # of the reported standard error against nothing
    failed = excluded = rejected = wrong = 0
    seconds = total = 0.0
    sizes = Tally()  # |estimate| and |effect| of the rejecting data sets
    null, aim = _null(design), Aim.of(design.options)
    messages: dict[str, int] = {}
    doubts: dict[str, int] = {}
    for table in rows.tables(cell=cell):
        seconds += float(table["seconds"].sum())
        broken = table["status"] == "failed"
        failed += int(broken.sum())
        for which, counts in ((broken, messages), (~broken & (table["status"] != "ok"), doubts)):
            for message, n in table.loc[which, "message"].value_counts().items():
                counts[str(message)] = counts.get(str(message), 0) + int(n)
        usable = table[~broken]
        if len(usable) == 0:
            continue
        effect, estimate = (usable[c].to_numpy(dtype=float) for c in ("effect", "estimate"))
        total += float(effect.sum())
        excluded += int(usable["excluded"].sum())
        agreement.add(effect, estimate)
        error = usable["standard_error"].to_numpy(dtype=float)
        errors.add(np.zeros(len(error)), error)
        ends = [usable[c].to_numpy(dtype=float)[:, None] for c in ("low", "high")]
        coverage.add(effect, *ends)
        hit = aim.reached(usable, null)
        rejected += int(hit.sum())
        real = hit & (effect != null) & aim.tests
        pair = np.column_stack([estimate[real], effect[real]]) - null
        wrong += int((np.sign(pair[:, 0]) != np.sign(pair[:, 1])).sum())
        sizes.add(np.abs(pair))
    n = study.units(cell)
    return Characteristics(
        cell=design,
        effect=total / agreement.n if agreement.n else np.nan,
        attempted=n,
        failed=failed,
        excluded=excluded,
        rejected=share(rejected, n) if np.isfinite(null) or aim.width else NOTHING,
        bias=agreement.bias,
        spread=_spread(agreement),
        standard_error=errors.bias,
        coverage=coverage.shares["95"],
        width=coverage.widths["95"],
        sign_error=share(wrong, sizes.n),
        exaggeration=_ratio(sizes),
        messages=messages,
        doubts=doubts,
        seconds=seconds,
    )


def _spread(agreement: Agreement) -> Score:
    if agreement.n < 2:
        return NOTHING
    square = agreement.root_mean_square.value**2 - agreement.bias.value**2
    deviation = float(np.sqrt(max(square, 0.0) * agreement.n / (agreement.n - 1)))
    return Score(deviation, deviation / float(np.sqrt(2 * (agreement.n - 1))))


def _null(cell: Cell) -> float:
    """Return the value from which the effects of a cell are counted."""
    measure = resolve_measure(cell.options["measure"], AGENTS[cell.model])
    return null_of(measure, cell.options["comparison"])


def _ratio(sizes: Tally) -> Score:
    """Return the ratio of two means with its error by the delta method."""
    if sizes.n == 0:
        return NOTHING
    value, other = sizes.mean
    ratio = float(value / other)
    return Score(ratio, sizes.error(np.array([1.0, -ratio])) / float(other))
