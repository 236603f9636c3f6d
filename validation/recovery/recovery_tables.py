"""Tables and figures of a recovery: how well estimates agree with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy
from matplotlib.figure import Figure

from knownminds.agents import Parameter, Parameters
from knownminds.agents.parameters import Array
from knownminds.validation.engine import scores as score
from knownminds.validation.engine.result import Drawing
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.verdicts import (
    HIGHEST_COVERAGE,
    LOWEST_COVERAGE,
    MOST_FAILURES,
    OPEN,
    RECOVERABLE_R,
    RECOVERABLE_WIDTH,
    WEAK_R,
    WEAK_WIDTH,
    Verdict,
    judge_recovery,
    judge_region,
)
from knownminds.validation.pages import figures as draw

from .readable_range import unreadable

MASSES = (0.5, 0.8, 0.9, 0.95)
REGIONS = 3
LOOK = draw.styles(1)[0]
SIZES = ["subjects", "sessions", "trials"]
NOTES = (
    "Monte-Carlo standard errors in parentheses. bias, rmse: mean and root mean square of estimate "
    "- truth; concordance: Lin (1989); shrinkage: 1 - slope of estimate on truth on the "
    "unconstrained scale. Failed fits are left out of the scores and counted; flat and boundary "
    "estimates are kept. A missing interval does not hold the truth.",
    f"Recoverable: r at least {RECOVERABLE_R}, 90% intervals that cover {LOWEST_COVERAGE} to "
    f"{HIGHEST_COVERAGE}, and at most {MOST_FAILURES} of the fits failed or not converged; weak: r "
    f"at least {WEAK_R}. In a region of true values: 90% intervals on the unconstrained scale at "
    f"most {RECOVERABLE_WIDTH} times as wide as the prior's (relative width); weak: at most "
    f"{WEAK_WIDTH}. Relative error: root mean square error on that scale in standard deviations of "
    "the prior.",
    "Statuses: flat, the trials say next to nothing about a parameter; boundary, the data ask for "
    "an infinite value; failed, no trustworthy estimate.",
)


@dataclass(frozen=True)
class Recovered:
    """The tables of a design, and the verdict on each parameter."""

    tables: dict[str, pd.DataFrame]
    verdicts: dict[str, Verdict]


def recovered(
    rows: pd.DataFrame,
    parameters: Parameters,
    *,
    clustered: bool = False,
    unit: str = "subject",
    size: int = 1,
) -> Recovered:
    """Score the fits of a design.

    Parameters
    ----------
    rows
        A row for each subject, as `fit_known` returns them.
    clustered
        Whether the subjects of a replicate depend on each other.
    unit, size
        What more can be simulated where a verdict is open, and how many fits one of it brings.

    Returns
    -------
    Tables "Estimates", "Intervals", "Regions of true values" and "Unreadable values".
    """
    usable = rows[rows["status"] != "failed"]
    unsound = float(rows["status"].isin(["failed", "not converged"]).mean())
    clusters = usable["replicate"].to_numpy() if clustered else None
    estimates, intervals, regions, verdicts = [], [], [], {}
    widths = {}
    for parameter in parameters:
        fits = _Fits.of(usable, parameter, clusters)
        agreement, ends = fits.agreement, fits.intervals()
        verdict = judge_recovery(
            agreement.r,
            ends["90% covers"],
            n=agreement.n,
            failed=unsound,
            attempted=len(rows),
            varies=agreement.truth_varies,
            finite=agreement.finite,
            unit=unit,
            size=size,
        )
        name = {"parameter": parameter.name}
        numbers = {k: getattr(agreement, k) for k in ("n", "bias", "rmse", "r", "concordance")}
        shrinkage = {"shrinkage": fits.on_z.shrinkage}
        estimates.append({**name, **numbers, **shrinkage, "verdict": verdict.word})
        intervals.append({**name, **ends})
        regions += [{**name, **region} for region in fits.regions(unit, size)]
        verdicts[parameter.name] = verdict
        widths[parameter.name] = (fits.z_true, fits.width)
    tables = {
        "Estimates": pd.DataFrame(estimates),
        "Intervals": pd.DataFrame(intervals),
        "Regions of true values": pd.DataFrame(regions),
        "Unreadable values": unreadable(parameters, widths, clusters),
    }
    return Recovered(tables, verdicts)


@dataclass(frozen=True)
class _Fits:
    """The usable fits of one parameter: truths, estimates and interval ends, [n] each."""

    parameter: Parameter
    true: Array
    estimate: Array
    z_true: Array
    z: Array
    ends: Mapping[float, tuple[Array, Array]]
    clusters: score.Clusters

    @classmethod
    def of(cls, usable: pd.DataFrame, parameter: Parameter, clusters: score.Clusters) -> _Fits:
        name = parameter.name

        def column(prefix: str) -> Array:
            return usable[f"{prefix}{name}"].to_numpy(dtype=float)

        ends = {
            mass: (column(f"low_{mass * 100:g}_"), column(f"high_{mass * 100:g}_"))
            for mass in MASSES
        }
        columns = (column("true_"), column(""), column("z_true_"), column("z_"))
        return cls(parameter, *columns, ends, clusters)

    @property
    def agreement(self) -> score.Agreement:
        """Estimates against truths on the natural scale."""
        return score.agreement(self.true, self.estimate, self.clusters)

    @property
    def on_z(self) -> score.Agreement:
        """The same on the unconstrained scale."""
        return score.agreement(self.z_true, self.z, self.clusters)

    def intervals(self) -> dict[str, Score]:
        """Share of the intervals of each mass that hold the truth, and mean width of the 90%."""
        shares = {}
        for mass, (low, high) in self.ends.items():
            shares[f"{mass * 100:g}% covers"], width = score.coverage(
                self.true, low, high, self.clusters
            )
            if mass == 0.9:
                ninety = width
        return {**shares, "width of 90%": ninety}

    @property
    def width(self) -> Array:
        """Widths of the 90% intervals over that of the prior, unconstrained scale; 1 at most."""
        low, high = self.ends[0.9]
        support = self.parameter.support
        with np.errstate(invalid="ignore"):
            span = support.unconstrain(high) - support.unconstrain(low)
        width = span / (2 * scipy.stats.norm.ppf(0.95) * self.parameter.sd)
        return np.where(width < 1, width, 1.0)

    def regions(self, unit: str, size: int) -> list[dict[str, Any]]:
        """Scores in thirds of the prior, from low true values to high ones."""
        prior, support = self.parameter, self.parameter.support
        inner = prior.mean + prior.sd * scipy.stats.norm.ppf(np.arange(1, REGIONS) / REGIONS)
        ends = [support.lower, *support.constrain(inner).tolist(), support.upper]
        region = np.searchsorted(inner, self.z_true, side="right")
        low, high = self.ends[0.9]
        rows = []
        for k in range(REGIONS):
            here = region == k
            clusters = None if self.clusters is None else self.clusters[here]
            error = score.agreement(self.z_true[here], self.z[here], clusters).rmse
            width = score.mean(self.width[here], clusters)
            covers, _ = score.coverage(self.true[here], low[here], high[here], clusters)
            # Of what is simulated more, a third falls into a region.
            verdict = judge_region(width, n=int(here.sum()), unit=unit, size=size / REGIONS)
            rows.append(
                {
                    "low": ends[k],
                    "high": ends[k + 1],
                    "n": int(here.sum()),
                    "bias": score.agreement(self.true[here], self.estimate[here], clusters).bias,
                    "relative_error": Score(error.value / prior.sd, error.error / prior.sd),
                    "relative_width": width,
                    "90% covers": covers,
                    "verdict": verdict.word,
                }
            )
        return rows


def correlation_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Score how the correlations of parameters over subjects came back, a value per replicate."""
    usable = rows[rows["status"] != "failed"].drop_duplicates("replicate")
    table = []
    for column in (str(c) for c in usable if str(c).startswith("true cor(")):
        pair = column.removeprefix("true ")
        names = (column, pair, f"low {pair}", f"high {pair}")
        true, estimate, low, high = (usable[name].to_numpy(dtype=float) for name in names)
        agreement = score.agreement(true, estimate)
        covers, _ = score.coverage(true, low, high)
        row = {"pair": pair.removeprefix("cor(").removesuffix(")"), "n": agreement.n}
        row |= {
            "bias": agreement.bias,
            "rmse": agreement.rmse,
            "r": agreement.r,
            "90% covers": covers,
        }
        table.append(row)
    return pd.DataFrame(table)


def smallest_designs(estimates: pd.DataFrame) -> pd.DataFrame:
    """Return the smallest design from which on each parameter is recoverable, and perhaps is.

    Parameters
    ----------
    estimates
        parameter, subjects, sessions, trials and verdict of each design.

    Returns
    -------
    For each parameter the sizes of the smallest design such that it and every design of the grid
    that is at least as large in all sizes is recoverable; "perhaps" where no clear verdict says
    that it is not. Of several, the one with the fewest trials in all; "-" where there is none.
    """
    perhaps = ("recoverable", "not judged", *OPEN)
    rows = []
    for name, group in estimates.groupby("parameter", sort=False):
        words = dict(
            zip(group[SIZES].itertuples(index=False, name=None), group["verdict"], strict=True)
        )
        rows.append(
            {
                "parameter": name,
                "recoverable from": _size_text(_smallest(words, ("recoverable",))),
                "perhaps from": _size_text(_smallest(words, perhaps)),
            }
        )
    return pd.DataFrame(rows)


def _smallest(words: Mapping[tuple[int, ...], str], good: Sequence[str]) -> tuple[int, ...] | None:
    def larger(size: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return all(a <= b for a, b in zip(size, other, strict=True))

    sizes = [
        size
        for size in words
        if all(word in good for other, word in words.items() if larger(size, other))
    ]
    return min(sizes, key=lambda size: (int(np.prod(size)), size), default=None)


def _size_text(size: tuple[int, ...] | None) -> str:
    return "-" if size is None else " x ".join(map(str, size))


# Figures


def recovery_figures(rows: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> dict[str, Drawing]:
    """Return the figures of one design."""
    names = list(tables["Estimates"]["parameter"])
    usable = rows[rows["status"] != "failed"]
    if len(usable) == 0:
        return {}
    pairs = pd.concat(
        [
            pd.DataFrame(
                {
                    "parameter": name,
                    "truth": usable[f"true_{name}"],
                    "estimate": usable[name],
                    "low": usable[f"low_90_{name}"],
                    "high": usable[f"high_90_{name}"],
                }
            )
            for name in names
        ],
        ignore_index=True,
    )
    covers = (
        tables["Intervals"].drop(columns="width of 90%").melt("parameter", None, "mass", "share")
    )
    covers["mass"] = covers["mass"].str.removesuffix("% covers").astype(float) / 100
    return {
        "Estimate against truth, with 90% intervals.": Drawing(pairs, draw_estimates),
        "Error against truth; the line joins means of groups.": Drawing(pairs, draw_errors),
        "Coverage of the intervals less their mass, with 2 standard errors.": Drawing(
            covers.assign(n=len(usable)), draw_coverage
        ),
    }


def draw_estimates(pairs: pd.DataFrame) -> Figure:
    """Draw estimate against truth, a panel per parameter, with 90% intervals lightly."""
    figure, panels = draw.panel_each(pairs)
    for axis, rows in panels:
        draw.dots(axis, rows, "truth", "estimate", LOOK)
        draw.diagonal(axis, rows, "truth", "estimate")
        axis.set(xlabel="truth", ylabel="estimate")
    return figure


def draw_errors(pairs: pd.DataFrame) -> Figure:
    """Draw error against truth, with the mean error in groups of subjects, ten if they are 100."""
    errors = pairs.assign(error=pairs["estimate"] - pairs["truth"]).drop(columns=["low", "high"])
    figure, panels = draw.panel_each(errors)
    for axis, rows in panels:
        draw.limit(axis, 0, "-")
        draw.dots(axis, rows, "truth", "error", LOOK)
        truth, error = rows["truth"].to_numpy(), rows["error"].to_numpy()
        tenths = np.array_split(np.argsort(truth), max(min(10, len(truth) // 10), 1))
        axis.plot(
            [truth[t].mean() for t in tenths], [error[t].mean() for t in tenths],
            color=draw.ORANGE, linewidth=1.6,
        )  # fmt: skip
        axis.set(xlim=draw.limits(truth), ylim=draw.limits(error))
        axis.set(xlabel="truth", ylabel="estimate - truth")
    return figure


def draw_coverage(covers: pd.DataFrame) -> Figure:
    """Draw coverage less mass, with the band in which 95% of exact intervals would lie."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(6.4, 2.9)
    grid = np.linspace(0.45, 0.98, 60)
    half = 1.96 * np.sqrt(grid * (1 - grid) / covers["n"].iloc[0])
    axis.fill_between(grid, -half, half, color=draw.GREY, alpha=0.2, label="95% by chance")
    draw.limit(axis, 0, "-")
    groups = list(covers.groupby("parameter", sort=False))
    shifts = np.linspace(-0.008, 0.008, len(groups))
    for (name, rows), shift, style in zip(groups, shifts, draw.styles(len(groups)), strict=True):
        shares = [
            Score(s.value - m, s.error) for s, m in zip(rows["share"], rows["mass"], strict=True)
        ]
        draw.curve(axis, list(rows["mass"] + shift), shares, (*style[:2], "none"), str(name))
    axis.set(xlabel="nominal mass of the interval", ylabel="coverage - nominal")
    axis.set_xticks(MASSES, [f"{mass:.0%}" for mass in MASSES])
    axis.legend(frameon=False, fontsize=draw.SMALL, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def surface_figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, Drawing]:
    """Return the figures of a grid of designs."""
    estimates, intervals = tables["Estimates"], tables["Intervals"]
    r = estimates[["parameter", *SIZES]].assign(score=estimates["r"])
    covers = intervals[["parameter", *SIZES]].assign(score=intervals["90% covers"])
    return {
        f"Correlation of estimate and truth, with 2 standard errors. Dashed: {WEAK_R} (weak) and "
        f"{RECOVERABLE_R} (recoverable).": Drawing(r, draw_correlations),
        "Share of the 90% intervals that hold the truth, with 2 standard errors. Dashed: "
        f"{LOWEST_COVERAGE} and {HIGHEST_COVERAGE}.": Drawing(covers, draw_shares),
        "Width of the 90% intervals over that of the prior, by region of true values (rows) "
        "and design (subjects x sessions x trials).": Drawing(
            tables["Regions of true values"], draw_regions
        ),
    }


def draw_correlations(frame: pd.DataFrame) -> Figure:
    """Draw r against the size of the design."""
    return _size_curves(frame, (WEAK_R, RECOVERABLE_R), "r", 0.0, 1.02)


def draw_shares(frame: pd.DataFrame) -> Figure:
    """Draw the coverage of 90% intervals against the size of the design."""
    return _size_curves(frame, (LOWEST_COVERAGE, HIGHEST_COVERAGE), "90% covers", 0.78, 1.0)


def _size_curves(
    frame: pd.DataFrame, limits: Sequence[float], label: str, low: float, high: float
) -> Figure:
    figure, panels = draw.panel_each(frame, height=2.5)
    for axis, rows in panels:
        draw.size_curves(
            axis, list(rows[SIZES].itertuples(index=False, name=None)), list(rows["score"])
        )
        for value in limits:
            draw.limit(axis, value)
        axis.set_ylim(min(low, axis.get_ylim()[0]), max(high, axis.get_ylim()[1]))
    panels[0][0].set_ylabel(label)
    draw.key(figure, panels[0][0])
    return figure


def draw_regions(regions: pd.DataFrame) -> Figure:
    """Draw the relative width in each region of true values (rows) of each design (columns)."""
    groups = list(regions.groupby("parameter", sort=False))
    designs = [" x ".join(map(str, size)) for size in regions[SIZES].drop_duplicates().to_numpy()]
    figure, axes = draw.panels(len(groups), columns=1, height=1.1)
    figure.set_size_inches(max(5.0, 1.6 + 0.55 * len(designs)), 1.15 * len(groups) + 0.7)
    for axis, (name, part) in zip(axes, groups, strict=True):
        widths = part["relative_width"].map(float).to_numpy().reshape(len(designs), REGIONS).T
        ends = part[["low", "high"]].to_numpy()[:REGIONS]
        rows = [f"{low:.2g} to {high:.2g}".replace("inf", "∞") for low, high in ends]
        last = axis is axes[-1]
        draw.heat_map(axis, widths, rows, designs if last else [""] * len(designs))
        draw.entitle(axis, str(name), "left")
    return figure
