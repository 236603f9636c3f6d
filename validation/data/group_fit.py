"""The hierarchical part of a fit: group values, contrasts, and whether it converged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.agents import Model
from knownminds.environments import ANSWERED, Trials
from knownminds.inference.fits.model_data import Unknowns
from knownminds.inference.groups.crossed_levels import units_of
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.verdicts import Verdict
from knownminds.validation.power.pilot import CONTRASTS

from .fit_figures import draw_contrasts, draw_levels
from .support import MASS

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit

    from .questions import AskFit

LEVELS = "Values by group"
BY_GROUP = "Values by group with 90% intervals."
DIFFERENCES = "Contrasts with 90% intervals; shaded, what counts as no difference."
ABOUT_CONTRASTS = (
    "A contrast is of the group's typical member, one whose deviations are 0, averaged over "
    "the subjects as they are in all other columns. Direction: share of the posterior on its side "
    "of 0. Rope: half the width of the region that counts as no difference, a tenth of the spread "
    "of the model's prior or as given by --rope; inside: the share of the posterior there."
)
ABOUT_SPREADS = (
    "Bayes factor: for subjects or levels that differ against subjects or levels that are alike; "
    "10 or more and 0.1 or less settle it. A spread is above 0 whatever the data say."
)
ABOUT_ROWS = "With columns within subjects, each of their values that a subject had has a row."
ABOUT_CROSSED = (
    "Levels of a crossed factor are taken for a sample of many, with deviations of one kind: how "
    "far they spread is estimated, and no contrast between two of them."
)
ABOUT_TRIED = (
    "A posterior that did not converge is not to be used. Smaller steps (a larger --sampling "
    "target_accept=...), fewer free parameters (--fix) or more trials may help."
)


def rows_of(
    agent: type[Model],
    trials: Trials,
    formula: Sequence[str] | None,
    unit: Sequence[str] | None,
    unknowns: Unknowns,
    correlated: bool,
) -> tuple[pd.Series[Any], tuple[str, ...]]:
    """Name of each trial what has a row of parameters, and the columns within subjects.

    Raises
    ------
    ValueError : If the formula cannot be read, or a row would have a single trial.
    """
    names = units_of(trials, unit or ("subject",))
    if not formula:
        return names, ()
    from knownminds.inference.groups.formulas import GroupDesign

    by_unit = Trials.from_frame(trials.frame.assign(subject=names)) if unit else trials
    design = GroupDesign.of(
        list(formula),
        by_unit.frame,
        agent,
        unknowns.parameters,
        unit=tuple(unit or ("subject",)),
        correlated=correlated,
    )
    if not design.within:
        return names, ()
    count = design.of_trial.value_counts()
    if count.min() < 2:
        raise ValueError(
            "A report looks at each row of parameters, and needs 2 trials of each; "
            f'"{count.idxmin()}" has a single one. Take fewer values of '
            f"{' and '.join(design.within)}, or fit it in Python (`hierarchical`)."
        )
    return design.of_trial, design.within


def group_fit(
    agent: type[Model], trials: Trials, question: AskFit, usual: Mapping[str, float]
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...], HierarchicalFit, Result]:
    """Sample a group.

    Parameters
    ----------
    usual : Sampling options where none are given.

    Returns
    -------
    Subjects, group values, names of the estimated parameters, the fit itself, and what more there
    is to report; see `Estimates`.
    """
    from knownminds.inference import hierarchical  # PyMC: only where it is needed

    n_units = units_of(trials, question.unit or ("subject",)).nunique()
    if n_units < 2:
        raise ValueError(
            f"A hierarchical fit needs at least 2 subjects; got {n_units}. Use --method map."
        )
    if not trials.frame["outcome"].isin(ANSWERED).any():
        n = len(trials.frame)
        raise ValueError(
            f"A hierarchical fit needs answers; none of {n} trials has one that could be read "
            f"({', '.join(sorted(trials.frame['outcome'].unique()))}). Look at what was answered."
        )
    sampling = {**usual, **(question.sampling or {})}
    fitted = hierarchical(
        agent,
        trials,
        formula=question.formula or None,
        unit=question.unit or None,
        crossed=question.crossed or None,
        fixed=question.fixed,
        lapse=question.fit_lapse,
        all_trials=question.all_trials,
        correlated=question.correlated,
        target_accept=sampling["target_accept"],
        seed=question.seed,
        cores=question.workers,
        seconds=60.0 * sampling["minutes"],
        tell=question.tell,
    )
    subjects = fitted.to_frame(MASS).assign(message="; ".join(fitted.reasons))
    values = _values(fitted)
    return subjects, values, fitted.names, fitted, _more(fitted, question.rope)


def _values(fitted: HierarchicalFit) -> pd.DataFrame:
    """Return group means on the natural scale, and what else was estimated on the other."""
    rows = []
    for term, row in fitted.group.iterrows():
        name = str(term)
        inner = name.removeprefix("sd(").removesuffix(")")
        keys = ("mean", "low", "high")
        if name in fitted.names:
            keys = ("natural", "natural_low", "natural_high")
            at = fitted.design.reference(name)
            meaning, quantity = "group mean" + (f" at {at}" if at else ""), "group_mean"
        elif name in fitted.effects:
            meaning = "regression weight per unit of the column"
            quantity = "weight"
        elif name.startswith("cor("):
            meaning, quantity = "correlation", "correlation"
        else:
            of = "levels" if " | " in name else "subjects"
            of += "' effects" if inner in fitted.slopes else ""
            meaning, quantity = f"sd of {of}", "spread"
        factor = fitted.spread_differs(name) if name.startswith("sd(") else np.nan
        estimate = dict(
            zip(("estimate", "low", "high"), (float(row[k]) for k in keys), strict=True)
        )
        columns = {"meaning": meaning, "quantity": quantity, "bayes_factor": factor}
        rows.append({"parameter": name, **estimate, **columns})
    return pd.DataFrame(rows)


def _more(fitted: HierarchicalFit, rope: Mapping[str, float] | None) -> Result:
    """Return convergence, contrasts, traces and ranks."""
    from knownminds.inference.groups.contrasts import contrasts_of, values_of_levels

    table, levels = contrasts_of(fitted, rope), values_of_levels(fitted)
    converged = fitted.verdict == "converged"
    verdicts = {"sampling": Verdict(fitted.verdict, (*fitted.reasons, *(fitted.tried[1:])))}
    for row in table.itertuples() if converged else ():
        reason = (
            f"90% interval {row.low:.3f} to {row.high:.3f}, no difference within {row.rope:.3f}"
        )
        verdicts[str(row.contrast)] = Verdict(str(row.verdict), (reason,))
    notes = [ABOUT_SPREADS]
    notes += [] if converged else [ABOUT_TRIED]
    notes += [ABOUT_CONTRASTS] if len(table) else []
    notes += _sentences(levels, table) if converged else []
    notes += [ABOUT_ROWS] if fitted.design.within else []
    notes += [
        f"{column!r} is taken for a number, as it holds whole ones. If these are names of groups, "
        f"write C({column}), which gives each a value."
        for column in fitted.design.codes
    ]
    notes += [ABOUT_CROSSED] if fitted.levels is not None else []
    figures = {BY_GROUP: Drawing(levels, draw_levels)} if len(levels) else {}
    figures |= {DIFFERENCES: Drawing(table, draw_contrasts)} if len(table) else {}
    sampling = fitted.convergence.table.rename_axis("term").reset_index()
    return Result(
        "",
        verdicts=verdicts,
        tables={LEVELS: levels, CONTRASTS: table, "Sampling": sampling},
        figures=figures,
        notes=notes,
        options={"divergent draws": fitted.convergence.divergences},
    )


def _sentences(levels: pd.DataFrame, contrasts: pd.DataFrame) -> list[str]:
    """Say for a paper what each parameter is in each group, and what their differences are."""
    sentences = []
    for (parameter, column), rows in levels.groupby(["parameter", "column"]) if len(levels) else ():
        values = [f"{row.level} {_with_interval(row)}" for row in rows.itertuples()]
        mine = (contrasts["parameter"] == parameter) & (contrasts["column"] == column)
        differences = [
            f"{row.high_value} - {row.low_value} {_with_interval(row)}"
            for row in contrasts[mine & (contrasts["at"] == "")].itertuples()
        ]
        sentences.append(
            f"For a paper: {parameter} by {column} (posterior mean and 90% interval): "
            f"{', '.join(values)}; {', '.join(differences)}."
        )
    return sentences


def _with_interval(row: Any) -> str:
    return f"{row.estimate:.3f} ({row.low:.3f} to {row.high:.3f})"
