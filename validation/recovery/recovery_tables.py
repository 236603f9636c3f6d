"""Tables and figures of a recovery: how well estimates agree with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import Parameter, Parameters
from knownminds.agents.parameters import Array
from knownminds.validation.engine import scores as score
from knownminds.validation.engine.parts import Drawing
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
from knownminds.validation.pages.views import Curves, against_size, size_text

from .readable_range import unreadable

MASSES = (0.5, 0.8, 0.9, 0.95)
REGIONS = 3
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
    f"{WEAK_WIDTH}. Relative rmse: root mean square error on that scale in standard deviations of "
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
    rows : A row for each subject, as `fit_known` returns them.
    clustered : Whether the subjects of a replicate depend on each other.
    unit, size : What more can be simulated where a verdict is open, and how many fits one of it
        brings.

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
        fits = _fits(usable, parameter)
        agreement = score.agreement(fits["true"], fits["estimate"], clusters)
        ends = {}
        for mass in MASSES:
            low_high = fits[f"low {mass}"], fits[f"high {mass}"]
            ends[f"{mass:.0%} covers"], width = score.coverage(fits["true"], *low_high, clusters)
            if mass == 0.9:
                ninety = width
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
        shrinkage = score.agreement(fits["z_true"], fits["z"], clusters).shrinkage
        estimates.append({**name, **numbers, "shrinkage": shrinkage, "verdict": verdict.word})
        intervals.append({**name, **ends, "width of 90%": ninety})
        regions += [
            {**name, **region} for region in _regions(parameter, fits, clusters, unit, size)
        ]
        verdicts[parameter.name] = verdict
        widths[parameter.name] = (fits["z_true"], fits["width"])
    tables = {
        "Estimates": pd.DataFrame(estimates),
        "Intervals": pd.DataFrame(intervals),
        "Regions of true values": pd.DataFrame(regions),
        "Unreadable values": unreadable(parameters, widths, clusters),
    }
    return Recovered(tables, verdicts)


def _fits(usable: pd.DataFrame, parameter: Parameter) -> dict[str, Array]:
    """Return truths, estimates and interval ends of a parameter, [n] each.

    The width is that of the 90% intervals over the prior's, unconstrained scale; 1 at most.
    """
    prefixes = {"true": "true_", "estimate": "", "z_true": "z_true_", "z": "z_"}
    prefixes |= {f"{end} {m}": f"{end}_{m * 100:g}_" for m in MASSES for end in ("low", "high")}
    fits = {
        name: usable[prefix + parameter.name].to_numpy(dtype=float)
        for name, prefix in prefixes.items()
    }
    unconstrain = parameter.support.unconstrain
    with np.errstate(invalid="ignore"):
        span = unconstrain(fits["high 0.9"]) - unconstrain(fits["low 0.9"])
    width = span / (2 * scipy.stats.norm.ppf(0.95) * parameter.sd)
    return {**fits, "width": np.where(width < 1, width, 1.0)}


def _regions(
    prior: Parameter, fits: Mapping[str, Array], clusters: score.Clusters, unit: str, size: int
) -> list[dict[str, Any]]:
    """Return scores in thirds of the prior, from low true values to high ones."""
    inner = prior.mean + prior.sd * scipy.stats.norm.ppf(np.arange(1, REGIONS) / REGIONS)
    ends = [prior.support.lower, *prior.support.constrain(inner).tolist(), prior.support.upper]
    region = np.searchsorted(inner, fits["z_true"], side="right")
    rows = []
    for k in range(REGIONS):
        here = region == k
        some = {name: values[here] for name, values in fits.items()}
        whose = None if clusters is None else clusters[here]
        error = score.agreement(some["z_true"], some["z"], whose).rmse
        width = score.mean(some["width"], whose)
        covers, _ = score.coverage(some["true"], some["low 0.9"], some["high 0.9"], whose)
        # Of what is simulated more, a third falls into a region.
        verdict = judge_region(width, n=int(here.sum()), unit=unit, size=size / REGIONS)
        rows.append(
            {
                "low": ends[k],
                "high": ends[k + 1],
                "n": int(here.sum()),
                "bias": score.agreement(some["true"], some["estimate"], whose).bias,
                "relative_rmse": Score(error.value / prior.sd, error.error / prior.sd),
                "relative_width": width,
                "90% covers": covers,
                "verdict": verdict.word,
            }
        )
    return rows


def law_table(rows: pd.DataFrame, kinds: Sequence[str], head: str) -> pd.DataFrame:
    """Score how numbers of the groups came back, a value per replicate.

    Parameters
    ----------
    rows : Rows of a study. Columns "true KIND(NAME)", "KIND(NAME)", "low KIND(NAME)" and "high
        KIND(NAME)" hold a number of the replicate's group; groups without an estimate have NaN.
    kinds : "cor", "mean" or "sd".
    head : What the first column is called.
    """
    usable = rows[rows["status"] != "failed"].drop_duplicates("replicate")
    table = []
    for column in (str(c) for c in usable if str(c).startswith(tuple(f"true {k}(" for k in kinds))):
        name = column.removeprefix("true ")
        names = (column, name, f"low {name}", f"high {name}")
        true, estimate, low, high = (usable[name].to_numpy(dtype=float) for name in names)
        held = np.isfinite(estimate)
        agreement = score.agreement(true[held], estimate[held])
        covers, _ = score.coverage(true[held], low[held], high[held])
        said = name if len(kinds) > 1 else name.partition("(")[2].removesuffix(")")
        row = {head: said, "n": agreement.n, "without": int((~held).sum())}
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
    estimates : parameter, subjects, sessions, trials and verdict of each design.

    Returns
    -------
    For each parameter the sizes of the smallest design such that it and every design of the grid
    that is at least as large in all sizes is recoverable; "perhaps" where no clear verdict says
    that it is not. Of several, the one with the fewest trials in all; "-" where there is none.
    """
    perhaps = ("recoverable", "not judged", *OPEN)

    def said(size: tuple[int, ...] | None) -> str:
        return "-" if size is None else size_text(dict(zip(SIZES, size, strict=True)), estimates)

    rows = []
    for name, group in estimates.groupby("parameter", sort=False):
        words = dict(
            zip(group[SIZES].itertuples(index=False, name=None), group["verdict"], strict=True)
        )
        rows.append(
            {
                "parameter": name,
                "recoverable from": said(_smallest(words, ("recoverable",))),
                "perhaps from": said(_smallest(words, perhaps)),
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


# Figures


def recovery_figures(rows: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> dict[str, Drawing]:
    """Return the figures of one design."""
    usable = rows[rows["status"] != "failed"]
    columns = {"truth": "true_{}", "estimate": "{}", "low": "low_90_{}", "high": "high_90_{}"}
    pairs = pd.concat(
        [
            pd.DataFrame({new: usable[old.format(name)] for new, old in columns.items()}).assign(
                parameter=name
            )
            for name in tables["Estimates"]["parameter"]
        ],
        ignore_index=True,
    )
    errors = pairs[["parameter", "truth"]].assign(error=pairs["estimate"] - pairs["truth"])
    covers = (
        tables["Intervals"].drop(columns="width of 90%").melt("parameter", None, "mass", "share")
    )
    mass = covers["mass"].str.removesuffix("% covers").astype(float) / 100
    less: Any = [Score(s.value - m, s.error) for s, m in zip(covers["share"], mass, strict=True)]
    by: Any = {"panel": ("parameter",), "series": (), "joined": False}
    estimates = Curves(
        "Estimate against truth, with 90% intervals.", ("truth", "estimate"), "truth", "estimate",
        **by, diagonal=True,
    )  # fmt: skip
    off = Curves(
        "Error against truth.", ("truth", "estimate - truth"), "truth", "error", **by, limits=(0.0,)
    )
    coverage = Curves(
        "Coverage of the intervals less their mass, with 2 standard errors.",
        ("nominal mass of the interval", "coverage - nominal"), "mass", "less",
        series=("parameter",), joined=False, limits=(0.0,),
    )  # fmt: skip
    return {
        **estimates.drawings(pairs),
        **off.drawings(errors),
        **coverage.drawings(covers.assign(mass=mass, less=less)),
    }


def surface_figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, Drawing]:
    """Return the figures of a grid of designs."""
    figures: dict[str, Drawing] = {}
    for title, column, caption, limits in (
        ("Estimates", "r", "Correlation of estimate and truth", (WEAK_R, RECOVERABLE_R)),
        ("Intervals", "90% covers", "Share of the 90% intervals that hold the truth",
         (LOWEST_COVERAGE, HIGHEST_COVERAGE)),
        ("Regions of true values", "relative_width",
         "Width of the 90% intervals over that of the prior, by region of true values",
         (RECOVERABLE_WIDTH, WEAK_WIDTH)),
    ):  # fmt: skip
        across, rows = against_size(tables[title])
        series = ["design"] if rows["design"].any() else []
        if "low" in rows:
            ends = [f"{low:.2g} to {high:.2g}" for low, high in rows[["low", "high"]].to_numpy()]
            rows, series = (
                rows.drop(columns=["low", "high"]).assign(region=ends),
                ["region", *series],
            )
        figures |= Curves(
            f"{caption}, with 2 standard errors. Dashed: {limits[0]} and {limits[1]}.",
            (across, column.replace("_", " ")), across, column, ("parameter",), series,
            limits=limits, ticks=True,
        ).drawings(rows)  # fmt: skip
    return figures
