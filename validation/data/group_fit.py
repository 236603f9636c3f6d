"""The hierarchical part of a fit: group values, contrasts, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.agents import Agent
from knownminds.environments import ANSWERED, Trials
from knownminds.inference.fits.model_data import Unknowns
from knownminds.inference.posteriors.crossed_levels import units_of

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit

NOT_CONVERGED = "The sampling did not converge; do not use these numbers: "
CLEAR_FACTOR, MOST_FACTOR = 10.0, 100.0  # Bayes factors that settle a question; largest told


@dataclass(frozen=True)
class GroupValue:
    """What holds for the group: an estimate with its 90% interval.

    Of the spread over the levels of a crossed factor also the Bayes factor for levels that differ
    against levels that are alike: a spread is above 0 whatever the data say.
    """

    estimate: float
    low: float
    high: float
    meaning: str
    bayes_factor: float | None = None


@dataclass(frozen=True)
class GroupFound:
    """What a hierarchical fit found of the group.

    Parameters
    ----------
    fitted
        The fit itself.
    group, effects
        Values by term, see `Fit`.
    contrasts
        Rows of `Contrast.row`.
    sentences
        What is said of it.
    """

    fitted: HierarchicalFit
    group: Mapping[str, GroupValue]
    effects: Mapping[str, GroupValue]
    contrasts: tuple[Mapping[str, Any], ...] = ()
    sentences: tuple[str, ...] = field(default=())


def rows_of(
    agent: type[Agent],
    trials: Trials,
    formula: Sequence[str] | None,
    unit: Sequence[str] | None,
    unknowns: Unknowns,
    correlated: bool,
) -> tuple[pd.Series[Any], tuple[str, ...]]:
    """Name of each trial what has a row of parameters, and the columns within subjects.

    Raises
    ------
    ValueError
        If the formula cannot be read, or a row would have a single trial.
    """
    names = units_of(trials, unit or ("subject",))
    if not formula:
        return names, ()
    from knownminds.inference.groups.formulas import GroupDesign

    own = Trials.from_frame(trials.frame.assign(subject=names)) if unit else trials
    design = GroupDesign.of(
        list(formula),
        own.frame,
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
    agent: type[Agent],
    trials: Trials,
    levels: Mapping[str, Sequence[str] | None],
    fixed: Mapping[str, float] | None,
    fit_lapse: bool,
    rope: Mapping[str, float] | None,
    sampling: Mapping[str, Any],
) -> GroupFound:
    """Sample a group, and say what was found."""
    from knownminds.inference import hierarchical  # PyMC: only where it is needed
    from knownminds.inference.groups.contrasts import contrasts_of

    n_units = units_of(trials, levels["unit"] or ("subject",)).nunique()
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
    fitted = hierarchical(
        agent,
        trials,
        formula=levels["formula"] or None,
        unit=levels["unit"] or None,
        crossed=levels["crossed"] or None,
        fixed=fixed,
        lapse=fit_lapse,
        **sampling,
    )
    group, effects = {}, {}
    for term, row in fitted.group.iterrows():
        name = str(term)
        if name in fitted.names:
            keys = ("natural", "natural_low", "natural_high")
            meaning = "group mean" + (" at reference level" if levels["formula"] else "")
            group[name] = _group_row(row, keys, meaning)
            continue
        keys = ("mean", "low", "high")
        if name in fitted.effects:
            effects[name] = _group_row(row, keys, "on the unconstrained scale")
        elif name.startswith("cor("):
            effects[name] = _group_row(row, keys, "correlation, unconstrained scale")
        elif name.removeprefix("sd(").removesuffix(")") in fitted.slopes:
            value = _group_row(row, keys, "sd of subjects' own effects, unconstrained scale")
            factor = fitted.subjects_differ(name.removeprefix("sd(").removesuffix(")"))
            effects[name] = replace(value, bayes_factor=factor)
        elif " | " in name:
            value = _group_row(row, keys, "sd of levels, unconstrained scale")
            effects[name] = replace(value, bayes_factor=fitted.levels_differ(name))
    contrasts = contrasts_of(fitted, rope)
    told = _warning(fitted)
    if fitted.verdict == "converged":
        quoted = tuple(one.sentence() for one in contrasts)
        told = (*_about_spreads(fitted), *_quoted(fitted), *quoted)
    told = (*_about_rows(fitted), *_about_crossed(fitted), *told)
    return GroupFound(fitted, group, effects, tuple(one.row() for one in contrasts), told)


def _about_rows(fitted: HierarchicalFit) -> tuple[str, ...]:
    """Say whose the rows of parameters are."""
    if not fitted.within:
        return ()
    return (
        f"They are of {len(fitted.owners)} subjects, each with parameters for every value of "
        f"{' and '.join(fitted.within)} that it had; a subject's own lie together.",
    )


def _about_crossed(fitted: HierarchicalFit) -> tuple[str, ...]:
    """Say what crossed factors are."""
    if fitted.levels is None:
        return ()
    return tuple(
        f"{factor} is a crossed factor: its {count} levels are taken for a sample of many, with "
        "deviations from one law. What is told is how far they spread, and no contrast between two "
        "of them."
        for factor, count in zip(fitted.levels.factors, fitted.levels.count, strict=True)
    )


def _about_spreads(fitted: HierarchicalFit) -> tuple[str, ...]:
    """Say of which parameters nobody's can be told from another's: a result, and no failure."""
    told = []
    for name in (*fitted.names, *fitted.slopes):
        factor = 1.0 / fitted.subjects_differ(name)
        if factor >= CLEAR_FACTOR:
            draws = fitted.spread_of(name)
            size = f"over {MOST_FACTOR:g}" if factor >= MOST_FACTOR else f"{factor:.2g}"
            told.append(
                f"{name}: no difference between subjects can be seen. Their spread on the "
                f"unconstrained scale is below {np.quantile(draws, 0.95):.2g} (95%), and the Bayes "
                f"factor for subjects alike against subjects that differ is {size}."
            )
    return tuple(told)


def _quoted(fitted: HierarchicalFit) -> tuple[str, ...]:
    """Return a sentence for each regression weight, as a paper quotes it."""
    from knownminds.inference.posteriors.apa import apa_sentence

    effect = fitted.posterior["effect"] if fitted.effects else None
    if effect is None:
        return ()
    return tuple(
        apa_sentence(name, effect.sel(term=name).transpose("chain", "draw").to_numpy())
        for name in fitted.effects
    )


def _group_row(row: pd.Series[Any], keys: tuple[str, str, str], meaning: str) -> GroupValue:
    estimate, low, high = (float(row[key]) for key in keys)
    return GroupValue(estimate, low, high, meaning)


def _warning(fitted: HierarchicalFit) -> tuple[str, ...]:
    told = [
        f"{NOT_CONVERGED}{'; '.join(fitted.reasons)}.",
        f"What was tried: {' | '.join(fitted.tried)}.",
    ]
    if fitted.divergences:
        told.append(
            "Smaller steps still are to be had by a --target-accept above "
            f"{fitted.settings.target_accept:g}; fewer free parameters (--fix) or more trials "
            "leave less to stumble over."
        )
    return tuple(told)
