"""What the standing audit knows of a measure's test at a size: `docs/conclusions.py` writes it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from knownminds.environments import Environment, make
from knownminds.environments.conditions import SHARED_DESIGN
from knownminds.inference import MEASURES
from knownminds.validation.engine.arguments import set_to

STORED = Path(__file__).with_name("audited.csv")
NOT_AUDITED = "not audited at this size"


@cache
def audits() -> pd.DataFrame:
    """Read the stored audits: a row for each conclusion, size and kind of players."""
    return pd.read_csv(STORED)


def known_of(name: str, environment: Environment, unit: str, n: int) -> str:
    """Say how often the test of a measure errs, covers and finds an effect at a size.

    Numbers between sizes that were run are interpolated, along the logarithm of the size. Nothing
    is said beyond these, and of an experiment with other settings.

    Parameters
    ----------
    name : The measure.
    environment : The experiment, as it was taken.
    unit, n : What the estimate rests on, and how many of it.
    """
    table = audits()
    rows = table[(table["conclusion"] == name) & (table["unit"] == unit)]
    rows = rows[rows["players"] != "none"]
    sizes = np.sort(rows["units"].unique())
    within = len(sizes) > 0 and sizes[0] <= n <= sizes[-1]
    if not within or not _as_audited(name, environment):
        return NOT_AUDITED
    said = []
    without, found = rows[rows["players"] == "without"], rows[rows["players"] == "with"]
    if len(without):  # of two kinds of players without the effect the worse one counts
        said.append(f"errs in {_between(without, 'rejected', n, 'max'):.0%}")
    said.append(f"covers {_between(rows, 'coverage', n, 'min'):.0%}")
    if len(without) and len(found):
        powers = {
            float(effect): _between(found[found["effect"] == effect], "rejected", n, "min")
            for effect in found["effect"].unique()
        }
        effect = min(powers, key=lambda one: abs(powers[one] - 0.5))
        said.append(f"finds {effect:.2g} in {powers[effect]:.0%}")
    return "; ".join(said)


def smallest_found(conclusion: str, kind: str, unit: str, n: int, power: float = 0.8) -> float:
    """Return the smallest effect that a test finds with a power, by the standing audit.

    Between audited sizes and effects shares are interpolated. NaN where no audited effect is found
    so often, or the size is outside those that were run.

    Parameters
    ----------
    conclusion, kind : A page, and a test on it.
    unit, n : What the test rests on, and how many of it.
    """
    table = audits()
    rows = table[(table["conclusion"] == conclusion) & (table["kind"] == kind)]
    rows = rows[(rows["unit"] == unit) & (rows["players"] == "with")]
    if not len(rows) or not rows["units"].min() <= n <= rows["units"].max():
        return np.nan
    effects = np.sort(rows["effect"].unique())
    shares = [_between(rows[rows["effect"] == one], "rejected", n, "min") for one in effects]
    rising = np.maximum.accumulate([0.0, *shares])  # nothing is found of no effect
    return float(np.interp(power, rising, [0.0, *effects], right=np.nan))


def _as_audited(name: str, environment: Environment) -> bool:
    """Whether an experiment has the settings of the audit, but for those of wording and order."""
    measure = MEASURES[name]
    if environment.name != measure.environments[0]:
        return False
    usual = set_to(make(environment.name), measure.settings).settings
    return all(
        environment.settings[key] == value
        for key, value in usual.items()
        if key not in SHARED_DESIGN
    )


def _between(rows: pd.DataFrame, column: str, n: float, of: str) -> float:
    """Interpolate a share between the sizes that were run."""
    by_size = rows.groupby("units")[column].agg(of)
    return float(np.interp(np.log(n), np.log(by_size.index.to_numpy(dtype=float)), by_size))
